/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that the library emits while it runs (those of the op Print) go to a sink that the
 * program sets; without a sink they are dropped. Thread-safe.
 */
#ifndef TF_BASE_LOG_H
#define TF_BASE_LOG_H

typedef void (*log_sink)(const char *text, void *context);

/* One sink at a time; called with one line, without its newline, by one thread at a time. */
void log_set_sink(log_sink sink, void *context);

void log_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Formats a line for the function that a caller has given for such; NULL: nobody is told. */
void log_tell(void (*say)(void *context, const char *line), void *context, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
