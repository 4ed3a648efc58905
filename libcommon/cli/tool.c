/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/patience.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tool_private.h"

#define LINE_BYTES (ERROR_TEXT_BYTES + 256)
#define PROVENANCE_BYTES 1024
#define LAST_WORDS_MS 200 /* how long a line of a tool that was asked to end waits for a reader */

bool tool_quiet;
int tool_verbose;
const char *tool_output;

static const char *tool_name = "tf-tools"; /* for signal handlers, which get no context */

const char *tool_own_name(void)
{
    return tool_name;
}

static int reported; /* the status that the error line was printed for; 0: none was */

/* Writes the line with one call, so that lines of several stages do not mix. */
static void write_line(const char *line, size_t n)
{
    char stamp[TIME_STAMP_BYTES] = "";
    tool_stamp(stamp);
    const struct iovec parts[] = {{stamp, strlen(stamp)}, {(char *)(uintptr_t)line, n}};
    struct pollfd reader = {STDERR_FILENO, POLLOUT, 0};
    if (tool_signal() && !poll(&reader, 1, LAST_WORDS_MS))
        return;
    progress_clear();
    if (writev(STDERR_FILENO, parts, 2) < 0)
        return; /* nobody is left to tell */
}

void tool_stamp(char text[TIME_STAMP_BYTES])
{
    const char *wanted = getenv("TF_LOG_TIMES");
    text[0] = '\0';
    if (wanted && *wanted)
        time_stamp(text);
}

static void out_of_memory(size_t bytes)
{
    char line[256], wanted[64] = "";
    output_unlink_all();
    if (reported) /* only telling the next stage has failed */
        _exit(reported);
    if (bytes)
        snprintf(wanted, sizeof wanted, ": %zu bytes are not to be had", bytes);
    int n = snprintf(line, sizeof line, "%s: out of memory%s\n", tool_name, wanted);
    write_line(line, (size_t)n);
    _exit(ERR_OS);
}

/* Called when a page of a mapped file cannot be read; LMDB maps its files. */
static void on_lost_page(int number)
{
    char line[256];
    (void)number;
    output_unlink_all();
    int n = snprintf(line, sizeof line,
                     "%s: a file in use was cut short, or its disk cannot be read\n", tool_name);
    write_line(line, (size_t)n);
    _exit(ERR_DATA);
}

static void report(const struct tool *tool, const struct error *err)
{
    const char *text = err->text, *stopped = tool_stopped_text();
    char line[LINE_BYTES];
    if (err->reason == ERROR_STOPPED && stopped) /* it has reported the cause: say only that */
        text = stopped;
    if (!*text)
        return;
    int n = snprintf(line, sizeof line, "%s: %s", tool->table->tool, text);
    if (n > 0 && n < LINE_BYTES && tool_verbose >= 2 && err->file)
        n += snprintf(line + n, sizeof line - (size_t)n, " [%s:%d]", err->file, err->line);
    if (n > LINE_BYTES - 2)
        n = LINE_BYTES - 2;
    line[n++] = '\n';
    write_line(line, (size_t)n);
    reported = err->code;
}

/* ERR_NEGATIVE is a valid result: its output is finished as for success. */
int tool_finish(struct tool *tool, int code, struct error *err)
{
    struct error late = ERROR_INIT;
    if (code && code != ERR_NEGATIVE) {
        if (tool_output_failure())
            *err = *tool_output_failure();
        report(tool, err); /* before the next stage's report, so that the cause comes first */
        tool_abandon_output(tool, err);
    } else {
        if (tool_finish_output(tool, &late)) {
            code = late.code;
            *err = late;
        }
        if (code)
            report(tool, err);
    }
    tool_close_readers();
    return code == ERR_CANCELLED && tool_signal() ? 128 + tool_signal() : code;
}

static void write_text(const char *name, const char *colon, const char *text)
{
    struct str line = STR_INIT;
    str_printf(&line, "%s%s", name, colon);
    str_append_escaped(&line, text);
    str_append_char(&line, '\n');
    write_line(line.data, line.n);
    str_release(&line);
}

static void print_log(const char *text, void *context)
{
    (void)context;
    write_text("", "", text);
}

void tool_wait_silently(const struct tool *tool)
{
    if (!tool->verbose && !isatty(STDERR_FILENO))
        patience_set_handler(&(struct patience_handler){NULL, tool_is_asked, NULL});
}

int tool_main(const struct option_table *table,
              int (*run)(struct tool *tool, int n_operands, char **operands, struct error *err),
              int argc, char **argv)
{
    /* The next file that is opened would get the number of a missing standard descriptor, and with
     * it output meant for the terminal. Fill each with a descriptor of the wrong direction. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(ERR_OS);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGBUS, on_lost_page);
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit is a write error, as a full disk is */
    tool_name = table->tool;
    mem_set_handler(out_of_memory);
    log_set_sink(print_log, NULL);
    struct error err = ERROR_INIT;
    char **copy = mem_array((size_t)argc + 1, sizeof *copy);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    struct tool tool = {.table = table, .argc = argc, .argv = copy};
    int n_operands = 0;
    bool shown = false;
    int code = options_parse(table, argc, argv, &n_operands, &shown, &err);
    tool.verbose = tool_verbose;
    tool.quiet = tool_quiet;
    patience_set_handler(&(struct patience_handler){tool_say_line, tool_is_asked, &tool});
    if (!code && !shown)
        code = run(&tool, n_operands, argv, &err);
    code = tool_finish(&tool, code, &err);
    mem_free(tool.argv);
    return code;
}

/* Formats the arguments on one line, quoted as for a shell. */
const char *tool_provenance(const struct tool *tool)
{
    static char text[PROVENANCE_BYTES];
    struct str s = STR_INIT;
    str_printf(&s, "%s %s", tool->table->tool, TOOL_VERSION);
    for (int i = 1; i < tool->argc; i++) {
        str_append_char(&s, ' ');
        str_append_quoted(&s, tool->argv[i]);
    }
    for (size_t i = 0; i < s.n; i++)
        s.data[i] = (unsigned char)s.data[i] < ' ' ? ' ' : s.data[i];
    snprintf(text, sizeof text, "%s", str_text(&s));
    if (s.n >= sizeof text)
        memcpy(text + sizeof text - 4, "...", 4);
    str_release(&s);
    return text;
}

void tool_say(const struct tool *tool, const char *format, ...)
{
    if (tool->quiet)
        return;
    char text[ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_text(tool->table->tool, ": ", text);
}

void tool_say_waiting(void *tool, const char *text)
{
    static double told;
    double now = time_now();
    if (told > 0 && now - told < (isatty(STDERR_FILENO) ? 1 : 5))
        return;
    told = now;
    tool_say(tool, "%s", text);
}
