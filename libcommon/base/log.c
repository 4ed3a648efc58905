/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static log_sink current;
static void *current_context;

void log_set_sink(log_sink sink, void *context)
{
    pthread_mutex_lock(&lock);
    current = sink;
    current_context = context;
    pthread_mutex_unlock(&lock);
}

void log_text(const char *format, ...)
{
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (current)
        current(text, current_context);
    pthread_mutex_unlock(&lock);
}

void log_tell(void (*say)(void *context, const char *line), void *context, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    if (!say)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    say(context, line);
}
