/* SPDX-License-Identifier: Apache-2.0
 *
 * When a metric has stopped getting better: "eval/loss,patience=5,min-delta=1e-4", and how that
 * stands. A line of text for each evaluation, "STEP WAITS BEST METRIC", keeps it for one that goes
 * on. Training ends then, or a variable is reduced: factor=0.1,least=1e-6.
 */
#ifndef TF_BIN_STOP_RULE_H
#define TF_BIN_STOP_RULE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct stop_rule {
    const char *metric; /* NULL: there is no rule */
    bool is_low, stops;
    int64_t patience, waits; /* evaluations since the best */
    double min_delta, best;  /* NaN: none yet */
    double factor, least;    /* of what is reduced */
};

/* Metric and figures, in the arena; `reduces`: factor and least are among them. ERR_USAGE. */
int stop_rule_read(struct stop_rule *rule, const char *text, bool reduces, struct arena *arena,
                   struct error *err);

/* Once an evaluation, of its scores that of the metric: it stops when that has not become better by
 * min_delta for so long. A rule that has stopped stays so. */
void stop_rule_apply(struct stop_rule *rule, double value);

void stop_rule_print(const struct stop_rule *rule, int64_t step, struct str *out);
/* From the last whole line of a step up to `step`, which is returned; -1: there is none. A line of
 * another metric, or of none, says nothing of this rule but the step. */
int64_t stop_rule_go_on(struct stop_rule *rule, const char *lines, int64_t step);

#endif
