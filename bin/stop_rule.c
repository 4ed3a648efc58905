/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/stop_rule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/policy/retain.h"

static bool take_figure(const char *text, const char *name, double *value)
{
    size_t n = strlen(name);
    return !strncmp(text, name, n) && str_to_float64(text + n, value) && *value >= 0;
}

int stop_rule_read(struct stop_rule *rule, const char *text, bool reduces, struct arena *arena,
                   struct error *err)
{
    char *rest = arena_strdup(arena, text);
    const char *metric = strsep(&rest, ",");
    *rule = (struct stop_rule){.patience = 1, .best = NAN, .factor = 0.1};
    rule->metric = retain_metric(metric, arena, &rule->is_low, err);
    for (const char *part; !err->code && (part = strsep(&rest, ","));) {
        if (!strncmp(part, "patience=", 9) && str_to_int64(part + 9, &rule->patience) &&
            rule->patience > 0)
            continue;
        if (take_figure(part, "min-delta=", &rule->min_delta))
            continue;
        if (reduces && (take_figure(part, "least=", &rule->least) ||
                        (take_figure(part, "factor=", &rule->factor) && rule->factor < 1)))
            continue;
        return error_set(err, ERR_USAGE, "it is METRIC,patience=EVALUATIONS,min-delta=VALUE%s",
                         reduces ? ",factor=BELOW_1,least=VALUE" : "");
    }
    return err->code;
}

void stop_rule_apply(struct stop_rule *rule, double value)
{
    double delta = rule->is_low ? -rule->min_delta : rule->min_delta;
    bool better = retain_is_better(rule->is_low, value, rule->best + delta);
    if (rule->stops)
        return;
    rule->waits = better ? 0 : rule->waits + 1;
    rule->best = better ? value : rule->best;
    rule->stops = rule->waits >= rule->patience;
}

void stop_rule_print(const struct stop_rule *rule, int64_t step, struct str *out)
{
    str_printf(out, "%" PRId64 " %" PRId64 " %.17g %s\n", step, rule->waits, rule->best,
               rule->metric ? rule->metric : "");
}

int64_t stop_rule_go_on(struct stop_rule *rule, const char *lines, int64_t step)
{
    int64_t found = -1, at, waits;
    double best;
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        int n = 0;
        if (sscanf(lines, "%" SCNd64 " %" SCNd64 " %lf%n", &at, &waits, &best, &n) != 3 ||
            at > step)
            continue;
        found = at;
        size_t n_metric = (size_t)(end - lines - n) - 1;
        if (!rule->metric || strlen(rule->metric) != n_metric ||
            memcmp(rule->metric, end - n_metric, n_metric) != 0)
            continue;
        rule->waits = waits;
        rule->best = best;
    }
    rule->stops = rule->metric && rule->waits >= rule->patience;
    return found;
}
