/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files behind tool.h, and private to them.
 */
#ifndef TF_CLI_TOOL_PRIVATE_H
#define TF_CLI_TOOL_PRIVATE_H

#include "cli/tool.h"

/* Finishes the tool after run() has returned: error line, output. Returns the exit status. */
int tool_finish(struct tool *tool, int code, struct error *err);

/* Returns the program's name, for signal handlers. */
const char *tool_own_name(void);

/* Set by tool_catch_signals: readable after a signal. -1 before. */
extern int tool_signal_fd;

/* Returns whether a signal ends a wait for input. If a signal came but this returns false, the wait
 * must check again regularly. */
bool tool_ends_wait(void);
bool tool_has_idle(void);
int tool_idle(double seconds, struct error *err);

/* Returns whether the work was cancelled because it has not ended in time after a signal
 * (tool_cancel_after). */
bool tool_is_cancelled(void);

/* Returns "stdin: stopped by tf-graph" for an input whose previous stage has failed; NULL: none. */
const char *tool_stopped_text(void);

/* Returns why output could not be flushed before a wait for input, or NULL. The reader, which
 * passes the error on, would prefix it with its own name. */
const struct error *tool_output_failure(void);

/* Frees the readers that are still open. */
void tool_close_readers(void);

/* Finishes what tool_open_writer and tool_open_text have opened: trailer, flush, rename. */
int tool_finish_output(struct tool *tool, struct error *err);

/* Tells the next stage why this one has failed, and removes an unfinished -o FILE. */
void tool_abandon_output(struct tool *tool, const struct error *cause);

/* Flushes buffered output before the tool itself waits. */
int tool_flush_output(struct tool *tool, struct error *err);

#endif
