/* SPDX-License-Identifier: Apache-2.0
 *
 * A rule for when a metric no longer improves, "eval/loss,patience=5,min-delta=1e-4", and its
 * state. A line of text per evaluation, "STEP WAITS BEST METRIC", saves the state for a resumed
 * run. When the rule applies, training ends or a variable is reduced: factor=0.1,least=1e-6.
 */
#ifndef TF_BIN_STOP_RULE_H
#define TF_BIN_STOP_RULE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct stop_rule {
    const char *metric; /* NULL: there is no rule */
    bool is_low, stops;
    int64_t patience, waits; /* waits: evaluations since the best */
    double min_delta, best;  /* best: NaN: none yet */
    double factor, least;    /* for the variable to reduce */
};

/* Parses a rule, into the arena; `reduces`: it may have factor and least. ERR_USAGE; the
 * metric's name is set also then. */
int stop_rule_read(struct stop_rule *rule, const char *text, bool reduces, struct arena *arena,
                   struct error *err);

/* Called once per evaluation with the metric's value: sets `stops` if the metric has not improved
 * by min_delta for `patience` evaluations. A rule that has stopped stays stopped. */
void stop_rule_apply(struct stop_rule *rule, double value);

void stop_rule_print(const struct stop_rule *rule, int64_t step, struct str *out);
/* Resumes from the last whole line of a step up to `step`, and returns that line's step; -1: there
 * is none. Of a line of another metric, or of none, only the step is used. */
int64_t stop_rule_go_on(struct stop_rule *rule, const char *lines, int64_t step);

#endif
