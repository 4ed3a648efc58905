/* SPDX-License-Identifier: Apache-2.0
 *
 * Which checkpoints a policy keeps. As in restic and borg, a rule keeps the last checkpoint of each
 * of the newest N hours (days, weeks, months) that have any; what no rule keeps is to be forgotten.
 */
#ifndef TF_CHECKPOINT_RETAIN_H
#define TF_CHECKPOINT_RETAIN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct retain_policy {
    int64_t last, hourly, daily, weekly, monthly;
    int64_t best; /* of a metric; a checkpoint without it, or with NaN, is none of the best */
    bool best_is_low;
    int64_t every; /* steps that are multiples of it */
};

struct retain_item {
    int64_t step;
    int64_t time; /* microseconds since 1970; periods are those of the local time zone */
    double metric;
    bool has_metric;
    const char *kept_by; /* set by retain: "last", "daily", ...; NULL: to be forgotten */
};

/* Returns whether there is a rule at all: without one everything would be forgotten. */
bool retain_has_rules(const struct retain_policy *policy);

/* The items are in the order of saving. The last one is kept in any case. */
void retain(const struct retain_policy *policy, struct retain_item *items, size_t n);

/* The metric of "loss", "bits:min" or "lasted:max", in the arena. *is_low: whether less is better,
 * which the text has to say unless the name does. NULL: neither does. */
const char *retain_metric(const char *text, struct arena *arena, bool *is_low, struct error *err);
/* Returns whether the value of a metric is better than another; NaN is none. */
static inline bool retain_is_better(bool is_low, double value, double than)
{
    return !isnan(value) && (isnan(than) || (is_low ? value < than : value > than));
}
/* "loss:min": as manifests have it (store/best.h). */
int retain_print_metric(const char *text, struct str *out, struct error *err);

#endif
