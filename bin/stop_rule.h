/* SPDX-License-Identifier: Apache-2.0
 *
 * When training ends early: "eval/loss,patience=5,min-delta=1e-4", and how that stands. A line of
 * text for each evaluation, "STEP WAITS BEST", keeps it for a process that goes on.
 */
#ifndef TF_BIN_STOP_RULE_H
#define TF_BIN_STOP_RULE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct stop_rule {
    const char *metric; /* NULL: it ends nothing */
    bool is_low, stops;
    int64_t patience, waits; /* evaluations since the best */
    double min_delta, best;  /* NaN: none yet */
};

/* Metric and figures, in the arena. ERR_USAGE. */
int stop_rule_read(struct stop_rule *rule, const char *text, struct arena *arena,
                   struct error *err);

/* Once an evaluation, of its scores that of the metric: it stops when that has not become better by
 * min_delta for so long. What has stopped stays so. */
void stop_rule_apply(struct stop_rule *rule, double value);

void stop_rule_print(const struct stop_rule *rule, int64_t step, struct str *out);
/* From the last whole line of a step up to `step`, which is returned; -1: there is none. */
int64_t stop_rule_go_on(struct stop_rule *rule, const char *lines, int64_t step);

#endif
