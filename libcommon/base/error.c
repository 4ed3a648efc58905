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

/* Marks a cut text, and keeps the message on one line whatever was quoted in it. */
static void tidy(struct error *err, int wanted)
{
    if (wanted >= ERROR_TEXT_BYTES)
        memcpy(err->text + ERROR_TEXT_BYTES - 4, "...", 4);
    for (char *c = err->text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

int error_set_at(struct error *err, int code, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    tidy(err, n);
    err->code = code;
    err->file = file;
    err->line = line;
    return code;
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
    err->code = code;
    err->file = file;
    err->line = line;
    return code;
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
    /* A long prefix loses its end, so that the cause behind it and further prefixes find room. */
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
    return err->code;
}

void error_clear(struct error *err)
{
    err->code = 0;
    err->text[0] = '\0';
}

_Noreturn void error_bug(const char *file, int line, const char *condition)
{
    void *frames[32];
    dprintf(STDERR_FILENO, "BUG: %s:%d: %s; please report this\n", file, line, condition);
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    abort();
}
