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
    int64_t best; /* this many by a metric; not those where it is missing or NaN */
    bool best_is_low;
    int64_t every; /* keep steps that are multiples of it */
};

struct retain_item {
    int64_t step;
    int64_t time; /* microseconds since 1970; periods are those of the local time zone */
    double metric;
    bool has_metric;
    const char *kept_by; /* set by retain: "last", "daily", ...; NULL: to be forgotten */
};

/* Returns whether there is any rule: without one, everything would be forgotten. */
bool retain_has_rules(const struct retain_policy *policy);

/* The items are in the order of saving. The last one is always kept. */
void retain(const struct retain_policy *policy, struct retain_item *items, size_t n);

/* Parses "loss", "bits:min" or "lasted:max"; returns the metric's name, in the arena. *is_low:
 * whether less is better. ERR_USAGE: neither the name, which is returned, nor a suffix says so. */
const char *retain_metric(const char *text, struct arena *arena, bool *is_low, struct error *err);
/* Returns whether a metric's value is better than another; NaN counts as no value. */
static inline bool retain_is_better(bool is_low, double value, double than)
{
    return !isnan(value) && (isnan(than) || (is_low ? value < than : value > than));
}
/* Prints "loss:min", the form in manifests (store/best.h). */
int retain_print_metric(const char *text, struct str *out, struct error *err);

#endif
