/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* a C library without: musl */
#define backtrace(frames, n) ((void)(frames), 0)
#define backtrace_symbols_fd(frames, n, fd) ((void)(n))
#endif

/* Marks a cut text, and keeps the message on one line whatever text it quotes. */
static void tidy(struct error *err, int wanted)
{
    if (wanted >= ERROR_TEXT_BYTES)
        memcpy(err->text + ERROR_TEXT_BYTES - 4, "...", 4);
    for (char *c = err->text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

/* Starts an error that has a text and no details yet. */
static int begin(struct error *err, int code, const char *file, int line)
{
    err->code = code;
    err->file = file;
    err->line = line;
    err->reason = ERROR_PLAIN;
    err->node = err->op = (struct error_span){0, 0};
    return code;
}

int error_set_at(struct error *err, int code, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    tidy(err, n);
    return begin(err, code, file, line);
}

int error_set_errno_at(struct error *err, int code, const char *file, int line, const char *format,
                       ...)
{
    char reason[128];
    snprintf(reason, sizeof reason, ": %s", strerror(errno));
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && n < ERROR_TEXT_BYTES)
        n += snprintf(err->text + n, sizeof err->text - (size_t)n, "%s", reason);
    tidy(err, n);
    return begin(err, code, file, line);
}

/* Shifts a span; one that no longer fits whole becomes empty. */
static struct error_span shifted(struct error_span span, size_t by)
{
    size_t at = span.at + by;
    if (!span.n || at + span.n >= ERROR_TEXT_BYTES - 4)
        return (struct error_span){0, 0};
    return (struct error_span){(unsigned short)at, span.n};
}

int error_prefix(struct error *err, const char *format, ...)
{
    char prefix[ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    if (n < 0)
        return err->code;
    /* Cut a long prefix at its end, to leave room for the cause and for further prefixes. */
    size_t length = strlen(prefix), old = strlen(err->text), most = ERROR_TEXT_BYTES - 1;
    bool cut = length > most / 4 && length + old > most / 2;
    if (cut)
        length = most / 4;
    size_t room = most - length;
    memmove(err->text + length, err->text, (old < room ? old : room) + 1);
    memcpy(err->text, prefix, length);
    if (cut)
        memcpy(err->text + length - 5, "...: ", 5);
    err->text[most] = '\0';
    tidy(err, (int)(length + old));
    err->node = shifted(err->node, length);
    err->op = shifted(err->op, length);
    return err->code;
}

int error_append(struct error *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text + used, sizeof err->text - used, format, args);
    va_end(args);
    tidy(err, (int)used + (n < 0 ? 0 : n));
    return err->code;
}

int error_prefix_node(struct error *err, const char *node, const char *op)
{
    size_t node_bytes = strlen(node), op_bytes = strlen(op), old = strlen(err->text);
    bool known = err->op.n > 0;
    error_prefix(err, "%s: %s: ", node, op);
    if (known || strlen(err->text) != node_bytes + op_bytes + 4 + old) /* or the text was cut */
        return err->code;
    err->node = (struct error_span){0, (unsigned short)node_bytes};
    err->op = (struct error_span){(unsigned short)(node_bytes + 2), (unsigned short)op_bytes};
    return err->code;
}

int error_drop_node(struct error *err)
{
    size_t by = err->op.at;
    if (!err->op.n)
        return err->code;
    memmove(err->text, err->text + by, strlen(err->text + by) + 1);
    err->node = (struct error_span){0, 0};
    err->op.at = 0;
    return err->code;
}

static const char *const reasons[ERROR_REASONS] = {
    [ERROR_NOT_FINITE] = "not-finite", [ERROR_WAITED] = "waited", [ERROR_STOPPED] = "stopped"};

const char *error_reason_name(enum error_reason reason)
{
    return reasons[reason];
}

enum error_reason error_reason_parse(const char *name)
{
    for (int i = 0; name && i < ERROR_REASONS; i++)
        if (reasons[i] && !strcmp(reasons[i], name))
            return (enum error_reason)i;
    return ERROR_PLAIN;
}

void error_clear(struct error *err)
{
    err->text[0] = '\0';
    begin(err, 0, NULL, 0);
}

_Noreturn void error_bug(const char *file, int line, const char *condition)
{
    void *frames[32];
    dprintf(STDERR_FILENO, "BUG: %s:%d: %s; please report this\n", file, line, condition);
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    abort();
}
