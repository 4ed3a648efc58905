/* SPDX-License-Identifier: Apache-2.0
 *
 * One live line that shows a tool's progress: "step 230/460  loss 0.31  3120 steps/s  0:04 left".
 * It is redrawn in place, at most ten times a second, and cut to the terminal's width. All other
 * output to the terminal calls progress_clear first (tool_say and the error line do).
 */
#ifndef TF_CLI_PROGRESS_H
#define TF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

struct progress {
    const char *unit; /* "step"; borrowed */
    int64_t total;    /* expected number; -1: unknown */
    FILE *out;        /* NULL: nothing is drawn */
    double began;     /* seconds of the monotonic clock */
    double drawn;
    int64_t first; /* done before `began`, for example before a resume: not part of the rate */
};

/* Starts the clock. `shown` is tool_shows_progress(); `out` is a terminal, usually stderr. */
void progress_start(struct progress *progress, bool shown, FILE *out, const char *unit,
                    int64_t first, int64_t total);

/* `detail` is shown between the count and the rate ("loss 0.31"); "" for none. */
void progress_update(struct progress *progress, int64_t done, const char *detail);

/* Draws the last state and ends the line. */
void progress_end(struct progress *progress, int64_t done, const char *detail);

/* Appends to `line` the line `seconds` after the start, as the other functions draw it. */
void progress_format(const struct progress *progress, int64_t done, double seconds,
                     const char *detail, struct str *line);

/* Erases the line on the terminal, if any. */
void progress_clear(void);

#endif
