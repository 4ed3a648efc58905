/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of tf-ps that work on a job's directory, --job: init makes it for the tasks of a
 * cluster file, end removes from it what only a running job has, watch prints a line per event in
 * the job.
 */
#ifndef TF_BIN_PS_JOB_H
#define TF_BIN_PS_JOB_H

#include "cli/tool.h"

int ps_init(struct tool *tool, char **operands, struct error *err);
int ps_end(struct tool *tool, char **operands, struct error *err);
int ps_watch(struct tool *tool, char **operands, struct error *err);

/* Warns if tf-run runs the job: tf-run starts stopped tasks again. */
void ps_warn_of_supervisor(const struct tool *tool);

#endif
