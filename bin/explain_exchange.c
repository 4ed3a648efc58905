/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/explain_exchange.h"

#include <stdio.h>
#include <string.h>

static void print_way(const struct replicate_way *way, bool is_there)
{
    if (is_there)
        fprintf(stderr, " %11.0f %9.3f", way->bytes, way->ns / 1e6);
    else
        fprintf(stderr, " %11s %9s", "-", "-");
}

void explain_gradient(void *context, const struct replicate_choice *choice)
{
    struct explanation *explained = context;
    if (choice->mode && strcmp(explained->mode, choice->mode)) {
        fprintf(stderr, "%s:\n", choice->mode);
        snprintf(explained->mode, sizeof explained->mode, "%s", choice->mode);
        explained->has_begun = false;
    }
    replicate_total_add(&explained->total, choice);
    if (!explained->has_begun)
        fprintf(stderr, "%-24s %-14s %11s %9s %11s %9s %11s %9s  %s\n", "VARIABLE", "SHAPE",
                "BYTES", "MS", "FACTORS", "MS", "CODE", "MS", "SENT");
    explained->has_begun = true;
    fprintf(stderr, "%-24s %-14s", choice->variable, shape_text(&choice->shape));
    for (int i = CROSSES_WHOLE; i < CROSSES_NOT; i++)
        print_way(&choice->ways[i], !choice->why_not[i]);
    fprintf(stderr, "  %s", choice->sent);
    if (choice->why_not[CROSSES_BY_FACTORS] && choice->why_not[CROSSES_IN_CODE])
        fprintf(stderr, ": %s", choice->why_not[CROSSES_BY_FACTORS]);
    fputc('\n', stderr);
}

void explain_total(const struct explanation *explained, enum replicate_mode mode)
{
    if (explained->has_begun && !explained->total.has_parts)
        fprintf(stderr, "exchange of a step: %.3f ms\n",
                replicate_total_ns(&explained->total, mode) / 1e6);
}

void explain_mode(void *context, const struct replicate_mode_choice *choice)
{
    (void)context;
    if (choice->why)
        fprintf(stderr, "%-40s %9s     %s\n", choice->mode, "-", choice->why);
    else
        fprintf(stderr, "%-40s %9.3f ms%s\n", choice->mode, choice->ns / 1e6,
                choice->is_taken ? "  taken" : "");
}

void explain_schedule(void *context, const struct replicate_schedule *schedule)
{
    (void)context;
    fprintf(stderr, "schedule %-10s of %.0f bytes: %.0f sent, %.3f ms%s\n", schedule->name,
            schedule->sum, schedule->way.bytes, schedule->way.ns / 1e6,
            schedule->is_taken ? ", taken" : "");
}
