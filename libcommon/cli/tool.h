/* SPDX-License-Identifier: Apache-2.0
 *
 * What all executables have in common: options, the standard streams, output files that appear
 * whole or not at all, one line on stderr and the exit status. A program in bin/ is an option table
 * and a function:
 *
 *     static int run(struct tool *tool, int n, char **operands, struct error *err) { ... }
 *     int main(int argc, char **argv) { return tool_main(&table, run, argc, argv); }
 */
#ifndef TF_CLI_TOOL_H
#define TF_CLI_TOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/time.h"
#include "base/version.h"
#include "cli/options.h"
#include "wire/record.h"

struct tool {
    const struct option_table *table;
    int argc;
    char **argv;                  /* as given, for provenance */
    int verbose;                  /* -v, counted */
    bool quiet;                   /* -q */
    struct stream_writer *writer; /* set by tool_open_writer; gets the error record of a failure */
};

/* Rows that every tool has (-o is not among them: use TOOL_OUTPUT_ROW). */
#define TOOL_COMMON_ROWS                                                                           \
    {'q', "quiet", OPTION_FLAG, &tool_quiet, NULL, "no progress, no reports"},                     \
    {                                                                                              \
        'v', "verbose", OPTION_COUNT, &tool_verbose, NULL, "say more; twice: where errors arise"   \
    }
#define TOOL_OUTPUT_ROW                                                                            \
    {                                                                                              \
        'o', "output", OPTION_TEXT, &tool_output, "FILE", "write to FILE instead of stdout"        \
    }
extern bool tool_quiet;
extern int tool_verbose;
extern const char *tool_output;

/* Parses, runs, reports, flushes, closes and checks stdout; returns the exit status. The error line
 * is "tf-opt: TEXT". SIGPIPE keeps its default action. */
int tool_main(const struct option_table *table,
              int (*run)(struct tool *tool, int n_operands, char **operands, struct error *err),
              int argc, char **argv);

/* Opens FILE ("-" or NULL: stdin) for reading. ERR_NOINPUT if missing, ERR_DATA for a directory; if
 * stdin is a terminal, ERR_USAGE with a hint. tool_close_reader frees the reader and closes its
 * file. */
int tool_open_reader(struct tool *tool, const char *path, struct stream_reader **reader,
                     struct error *err);
void tool_close_reader(struct stream_reader *reader);

/* For input that another thread reads: waits until `fd` is readable, as readers of tool_open_reader
 * do before they block. */
int tool_await_input(struct tool *tool, int fd, struct error *err);

/* Makes the reader follow its file as tail -f does: at the end of a regular file without a trailer
 * it waits for more, calling `idle` several times a second, until a signal makes it fail with
 * ERR_CANCELLED; call it after tool_catch_signals. Has no effect on other kinds of input. */
void tool_follow(struct stream_reader *reader, void (*idle)(void *context), void *context);

/* When such a reader is at its end or has failed: returns whether the file was begun anew meanwhile
 * (by tool_limit_output, or by a restarted writer); the reader then continues with the new file. */
bool tool_follow_on(struct stream_reader *reader);

/* Opens the tool's binary output: -o FILE, under a temporary name that tool_main replaces on
 * success, or stdout, which must not be a terminal (ERR_USAGE with "try: ... | tf-show"). Kept in
 * tool->writer; tool_main finishes it. */
int tool_open_writer(struct tool *tool, int64_t expected, struct error *err);

#define TOOL_THREADS_MOST 4096
#define TOOL_LIMIT_LEAST 4096 /* bytes */
/* Checks, before the first record, that stdout is a file that can have a limit. ERR_USAGE. */
int tool_limit_check(struct error *err);
/* Called between two records: if the file exceeds `limit` bytes, its stream ends, the file is
 * renamed from NAME.rec to NAME.old.rec (replacing an older one), and a new one is begun. */
int tool_limit_output(struct tool *tool, int64_t limit, struct error *err);

/* ERR_USAGE if the path of a stream is named like a NumPy array. */
int tool_check_stream_path(const char *path, struct error *err);

/* The same for text output; tool_main finishes *out. */
int tool_open_text(struct tool *tool, FILE **out, struct error *err);

/* Returns "tf-opt 1.0 --report": tool, version and arguments, for a graph's provenance. Static
 * buffer. */
const char *tool_provenance(const struct tool *tool);

/* Formats the time stamp of lines on stderr if TF_LOG_TIMES is set in the environment; else "". */
void tool_stamp(char text[TIME_STAMP_BYTES]);

/* Prints a line on stderr for the user, prefixed with the tool's name; not with -q. */
void tool_say(const struct tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same as a callback of libraries, whose context is the tool. */
static inline void tool_say_line(void *tool, const char *line)
{
    tool_say(tool, "%s", line);
}

/* Returns whether to draw progress: stderr is a terminal, stdout is not a pipe, and no -q. */
bool tool_shows_progress(const struct tool *tool);

/* After tool_catch_signals, SIGINT, SIGTERM and SIGHUP (not under nohup) set tool_signal() to their
 * number; the tool then finishes its step and returns ERR_CANCELLED, which tool_main turns into 128
 * + signal. A second signal ends the process; from the same sender only after a second, as
 * timeout(1) sends each twice. */
void tool_catch_signals(void);
int tool_signal(void);
/* Returns whether there was one: a callback of libraries, without a context. */
static inline bool tool_is_asked(void *unused)
{
    (void)unused;
    return tool_signal();
}

/* Makes *flag, which must live as long as the process, true `seconds` (above 0) after the first
 * signal. Call it after tool_catch_signals. */
int tool_cancel_after(double seconds, atomic_bool *flag, struct error *err);
/* Sets whether the process is ended, as by a second signal, if it still runs ten seconds after
 * that. For states in which nothing can be lost. */
void tool_end_late(bool ends);

/* From now on a signal ends a wait for input only after that time, or earlier if `ends`, which is
 * called a few times a second, returns true: for tools that may have to continue for a while. Call
 * it after tool_cancel_after. */
void tool_read_on(bool (*ends)(void *context), void *context);

/* Calls `idle` a few times a second in each wait for input, with the time that it lasts. If `idle`
 * fails, so does the wait. Call it after tool_catch_signals. */
void tool_when_idle(int (*idle)(void *context, double seconds, struct error *err), void *context);

/* For work that cannot be interrupted: if more than `seconds` (above 0) of computing time pass
 * before tool_end_limit is called, the process ends as if run() had returned `reason`. Until then
 * the caller must not touch the tool's output. One limit at a time. */
int tool_limit_time(struct tool *tool, double seconds, const struct error *reason,
                    struct error *err);
/* The same for time that passes, of which the tool may be waiting: then `expire` is called in
 * another thread, which may not wait for what the tool holds, and ends the process. */
int tool_limit_elapsed(double seconds, void (*expire)(void *context), void *context,
                       struct error *err);
void tool_end_limit(void);

/* A descriptor that is readable after a signal, for event loops; -1: signals are not caught. */
int tool_stop_fd(void);

/* Prints the library's messages about waits for other processes (base/patience.h) only on a
 * terminal or with -v: for tools that cron runs, where silence means success. */
void tool_wait_silently(const struct tool *tool);

/* For waits with texts of their own: prints what is waited for, once a second on a terminal, else
 * every five seconds. */
void tool_say_waiting(void *tool, const char *text);

#endif
