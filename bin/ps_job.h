/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of tf-ps that are about a job's directory, --job: init makes it for the tasks of a
 * cluster file, end removes from it what only a running job has, watch writes a line for all that
 * happens in it.
 */
#ifndef TF_BIN_PS_JOB_H
#define TF_BIN_PS_JOB_H

#include "cli/tool.h"

int ps_init(struct tool *tool, char **operands, struct error *err);
int ps_end(struct tool *tool, char **operands, struct error *err);
int ps_watch(struct tool *tool, char **operands, struct error *err);

/* Says so if tf-run runs the job: what it watches over does not stay stopped. */
void ps_warn_of_supervisor(const struct tool *tool);

#endif
