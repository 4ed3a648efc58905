/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

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
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (current)
        current(text, current_context);
    pthread_mutex_unlock(&lock);
}
