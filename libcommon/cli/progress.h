/* SPDX-License-Identifier: Apache-2.0
 *
 * One live line that says how far a tool is: "step 230/460  loss 0.31  3120 steps/s  0:04 left".
 * It is drawn over itself, at most ten times a second, and cut to the terminal's width. Whatever
 * else goes to the terminal calls progress_clear first (tool_say and the error line do).
 */
#ifndef TF_CLI_PROGRESS_H
#define TF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

struct progress {
    const char *unit; /* "step"; borrowed */
    int64_t total;    /* how many there will be; -1: unknown */
    FILE *out;        /* NULL: nothing is drawn */
    double began;     /* seconds of the monotonic clock */
    double drawn;
    int64_t first; /* done before `began`, as after a resume: not part of the rate */
};

/* Starts the clock. `shown`: tool_shows_progress; `out` is a terminal, stderr as a rule. */
void progress_start(struct progress *progress, bool shown, FILE *out, const char *unit,
                    int64_t first, int64_t total);

/* `detail` stands between the count and the rate ("loss 0.31"); "" for none. */
void progress_update(struct progress *progress, int64_t done, const char *detail);

/* Draws the last state and ends the line. */
void progress_end(struct progress *progress, int64_t done, const char *detail);

/* The line for `seconds` after the start, appended to `line`; what the others draw. */
void progress_format(const struct progress *progress, int64_t done, double seconds,
                     const char *detail, struct str *line);

/* Wipes the line that stands on the terminal, if one does. */
void progress_clear(void);

#endif
