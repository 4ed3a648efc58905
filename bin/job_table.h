/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the state of a job (supervise/job_state.h) for humans.
 */
#ifndef TF_BIN_JOB_TABLE_H
#define TF_BIN_JOB_TABLE_H

#include "base/str.h"

/* Appends a line for the job, then one per task. Text that is no state is appended unchanged. */
void job_table_print(const char *folder, const struct str *state, struct str *out);

#endif
