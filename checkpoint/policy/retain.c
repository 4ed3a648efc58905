/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/policy/retain.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <time.h>

bool retain_has_rules(const struct retain_policy *p)
{
    return p->last > 0 || p->hourly > 0 || p->daily > 0 || p->weekly > 0 || p->monthly > 0 ||
           p->best > 0 || p->every > 0;
}

const char *retain_metric(const char *text, struct arena *arena, bool *is_low, struct error *err)
{
    static const char *const words[] = {"loss", "error", "perplexity", "cost",      "mse",
                                        "mae",  "acc",   "auc",        "precision", "recall",
                                        "f1",   "r2",    "top_k"};
    const size_t n_low = 6, n = sizeof words / sizeof *words;
    char *name = arena_strdup(arena, text), *colon = strrchr(name, ':');
    bool said = colon && (!strcmp(colon, ":min") || !strcmp(colon, ":max"));
    size_t i = 0;
    while (!said && i < n && !strcasestr(name, words[i]))
        i++;
    *is_low = said ? colon[2] == 'i' : i < n_low;
    if (said)
        *colon = '\0';
    if (i == n)
        error_set(err, ERR_USAGE, "is less of it better, or more? %s:min or %s:max", text, text);
    return name;
}

int retain_print_metric(const char *text, struct str *out, struct error *err)
{
    bool is_low;
    struct arena arena = ARENA_INIT;
    const char *name = retain_metric(text, &arena, &is_low, err);
    if (!err->code)
        str_printf(out, "%s:%s", name, is_low ? "min" : "max");
    arena_release(&arena);
    return err->code;
}

/* ---- periods: two times are in one period if these texts are equal ---- */

static void keep_periods(struct retain_item *items, size_t n, int64_t count, const char *format,
                         const char *rule)
{
    char before[32] = "none", period[32];
    for (size_t i = n; i-- > 0 && count > 0;) {
        time_t seconds = (time_t)(items[i].time / 1000000);
        struct tm local;
        if (!localtime_r(&seconds, &local) || !strftime(period, sizeof period, format, &local))
            *period = '\0';
        if (!strcmp(period, before))
            continue;
        memcpy(before, period, sizeof before);
        count--;
        if (!items[i].kept_by)
            items[i].kept_by = rule;
    }
}

/* Returns how many items are better than item `at`, or as good and newer. */
static int64_t scalar_rank(const struct retain_policy *p, const struct retain_item *items, size_t n,
                           size_t at)
{
    int64_t rank = 0;
    for (size_t i = 0; i < n; i++)
        if (i != at && items[i].has_metric && !isnan(items[i].metric) &&
            ((p->best_is_low ? items[i].metric < items[at].metric
                             : items[i].metric > items[at].metric) ||
             (items[i].metric == items[at].metric && i > at)))
            rank++;
    return rank;
}

void retain(const struct retain_policy *p, struct retain_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        items[i].kept_by = NULL;
    int64_t count = p->last > 0 ? p->last : 1;
    for (size_t i = n; i-- > 0 && count > 0; count--)
        items[i].kept_by = "last";
    keep_periods(items, n, p->hourly, "%Y-%m-%d %H %z", "hourly");
    keep_periods(items, n, p->daily, "%Y-%m-%d", "daily");
    keep_periods(items, n, p->weekly, "%G-%V", "weekly");
    keep_periods(items, n, p->monthly, "%Y-%m", "monthly");
    for (size_t i = 0; i < n; i++)
        if (items[i].has_metric && !isnan(items[i].metric) && !items[i].kept_by &&
            scalar_rank(p, items, n, i) < p->best)
            items[i].kept_by = "best";
    for (size_t i = 0; i < n; i++)
        if (p->every > 0 && items[i].step % p->every == 0 && !items[i].kept_by)
            items[i].kept_by = "every";
}
