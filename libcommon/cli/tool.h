/* SPDX-License-Identifier: Apache-2.0
 *
 * What every executable does alike: options, the standard streams, output files that appear whole
 * or not at all, one line on stderr and the exit status. A program in bin/ is an option table and a
 * function; it looks so:
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
    struct stream_writer *writer; /* set by tool_open_writer; gets the error record on failure */
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

/* Parses, runs, reports, flushes, closes and checks stdout; returns the exit status. Error line:
 * "tf-opt: TEXT". SIGPIPE keeps its default action. */
int tool_main(const struct option_table *table,
              int (*run)(struct tool *tool, int n_operands, char **operands, struct error *err),
              int argc, char **argv);

/* Opens FILE ("-" or NULL: stdin) for reading. ERR_NOINPUT when missing, ERR_DATA for a directory;
 * stdin that is a terminal is ERR_USAGE with a hint. tool_close_input frees the reader and its fd.
 */
int tool_open_reader(struct tool *tool, const char *path, struct stream_reader **reader,
                     struct error *err);
void tool_close_reader(struct stream_reader *reader);

/* Waits, for input that another thread reads, until `fd` can be read, as the reader of
 * tool_open_reader does before it blocks. */
int tool_await_input(struct tool *tool, int fd, struct error *err);

/* As tail -f: where a regular file ends without a trailer the reader waits for more, until a signal
 * comes, when it fails with ERR_CANCELLED; after tool_catch_signals. `idle` is called meanwhile,
 * some times a second. Nothing happens for other kinds of input. */
void tool_follow(struct stream_reader *reader, void (*idle)(void *context), void *context);

/* Returns, when such a reader is at its end or has failed, whether the file was begun anew
 * meanwhile (tool_limit_output, or its writer was started again); it is read then. */
bool tool_follow_on(struct stream_reader *reader);

/* The tool's binary output: -o FILE through a temporary name that tool_main renames on success, or
 * stdout, which must not be a terminal (ERR_USAGE with "try: ... | tf-show"). Kept in tool->writer;
 * finished by tool_main. */
int tool_open_writer(struct tool *tool, int64_t expected, struct error *err);

/* Checks, before the first record, that stdout is a file that can have a limit. ERR_USAGE. */
int tool_limit_check(struct error *err);
/* Called between two records: if the file has more than `limit` bytes, its stream ends, it is
 * called NAME.old.rec (instead of NAME.rec; an older one is gone), and a new one begins. */
int tool_limit_output(struct tool *tool, int64_t limit, struct error *err);

/* ERR_USAGE for the path of a stream that is named as an array of NumPy's. */
int tool_check_stream_path(const char *path, struct error *err);

/* Opens as above for text output; FILE is finished by tool_main. */
int tool_open_text(struct tool *tool, FILE **out, struct error *err);

/* "tf-opt 1.0 --report": tool, version and arguments, for a graph's provenance. In a static buffer.
 */
const char *tool_provenance(const struct tool *tool);

/* Prints the time as each line on stderr begins, with TF_LOG_TIMES in the environment; else "". */
void tool_stamp(char text[TIME_STAMP_BYTES]);

/* A line for the user on stderr, prefixed with the tool's name; not with -q. */
void tool_say(const struct tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True when progress may be drawn: stderr is a terminal, stdout is not a pipe, and no -q. */
bool tool_shows_progress(const struct tool *tool);

/* SIGINT, SIGTERM and SIGHUP (not under nohup) set this to the signal's number once
 * tool_catch_signals was called; the tool then finishes its step and returns ERR_CANCELLED, which
 * tool_main turns into 128 + signal. A second one ends the process; of one sender, a second later,
 * as timeout(1) sends each twice. */
void tool_catch_signals(void);
int tool_signal(void);

/* Makes *flag, which lives as long as the process, true when more than `seconds` (above 0) have
 * passed since the first signal. After tool_catch_signals. */
int tool_cancel_after(double seconds, atomic_bool *flag, struct error *err);
/* Says whether the process is ended where that has not helped after ten more seconds, as a second
 * signal would end it. For states in which nothing can be lost by it. */
void tool_end_late(bool ends);

/* From now on a signal ends a wait for input only when that time has passed, or `ends`, which is
 * asked a few times a second, says so: for who may have to go on a little. After tool_cancel_after.
 */
void tool_read_on(bool (*ends)(void *context), void *context);

/* Has `idle` called once in each wait for input that lasts longer than a second. If it fails, so
 * does the wait. After tool_catch_signals. */
void tool_when_idle(int (*idle)(void *context, struct error *err), void *context);

/* For what cannot be stopped from within: when more than `seconds` (above 0) of computing time have
 * passed before tool_end_limit is called, the process ends as if run() had returned `reason`.
 * Until then the caller must not touch the tool's output. One limit at a time. */
int tool_limit_time(struct tool *tool, double seconds, const struct error *reason,
                    struct error *err);
void tool_end_limit(void);

/* A descriptor that can be read once a signal came, for event loops; -1: signals are not caught. */
int tool_stop_fd(void);

/* Says nothing of waits for other processes that the library tells of (base/patience.h) but on a
 * terminal, or with -v: for tools that cron runs, where silence is success. */
void tool_wait_silently(const struct tool *tool);

/* Says now and then, for waits that have words of their own, what is waited for: once a second on a
 * terminal, else every five. */
void tool_say_waiting(const struct tool *tool, const char *text);

#endif
