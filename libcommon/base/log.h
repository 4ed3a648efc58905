/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that the library emits while it runs (the op Print, warnings) go to a sink that the
 * program sets; without a sink they are dropped. Thread-safe.
 */
#ifndef TF_BASE_LOG_H
#define TF_BASE_LOG_H

enum log_level {
    LOG_PRINT,   /* the user asked for it */
    LOG_WARNING, /* something is probably not as intended */
};

typedef void (*log_sink)(enum log_level level, const char *text, void *context);

/* One sink at a time; called with one line, without its newline, by one thread at a time. */
void log_set_sink(log_sink sink, void *context);

void log_text(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
