/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files behind tool.h share; nobody else includes it.
 */
#ifndef TF_CLI_TOOL_PRIVATE_H
#define TF_CLI_TOOL_PRIVATE_H

#include "cli/tool.h"

/* Ends the tool after run() has returned: the error line, the output. The exit status. */
int tool_finish(struct tool *tool, int code, struct error *err);

/* Returns the program's name, for handlers of signals. */
const char *tool_own_name(void);

/* Set by tool_catch_signals: readable once a signal came. -1 before. */
extern int tool_signal_fd;

/* Returns whether a wait for input is to end because of a signal; if not, but one came, it is to
 * look again every so often. */
bool tool_ends_wait(void);
bool tool_has_idle(void);
int tool_idle(struct error *err);

/* Returns whether what was asked to end is cancelled: it has not ended in its time
 * (tool_cancel_after). */
bool tool_is_cancelled(void);

/* "stdin: stopped by tf-graph" of an input whose stage before has failed; NULL: of none. */
const char *tool_stopped_text(void);

/* Why output could not be flushed before a wait for input, or NULL: the reader, which passes the
 * error on, puts its own name before it. */
const struct error *tool_output_failure(void);

/* Frees the readers that are still open. */
void tool_close_readers(void);

/* Ends what tool_open_writer and tool_open_text have opened: trailer, flush, rename. */
int tool_finish_output(struct tool *tool, struct error *err);

/* Tells the next stage why this one failed, and removes an unfinished -o FILE. */
void tool_abandon_output(struct tool *tool, const struct error *cause);

/* Flushes what is waiting, before the tool waits itself. */
int tool_flush_output(struct tool *tool, struct error *err);

#endif
