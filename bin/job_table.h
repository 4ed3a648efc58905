/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a job (supervise/job_state.h) for eyes.
 */
#ifndef TF_BIN_JOB_TABLE_H
#define TF_BIN_JOB_TABLE_H

#include "base/str.h"

/* Appends a line for the job, then one for each task. A text that is no state is appended as it is.
 */
void job_table_print(const char *folder, const struct str *state, struct str *out);

#endif
