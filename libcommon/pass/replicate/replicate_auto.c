/* SPDX-License-Identifier: Apache-2.0
 *
 * The mode that takes less time among those with which every worker counts in every step: shards,
 * all-reduce, or all-reduce by shards that only add, each with the way of each gradient that the
 * model of costs prefers. All are built, and how long a step's exchange takes is added up; updates
 * are left out of it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pass/replicate/replicate_private.h"

static const char *const modes[] = {"sync", "allreduce", "sync,update=worker"};
enum { ALLREDUCE = 1, MODES = sizeof modes / sizeof *modes };

#define MODE_MAX (REPLICATE_POLICY_MAX + 64)

/* Latencies of a step besides what crosses: variables are read, gradients pushed, and the push
 * answered; or gradients go to who sums them, and sums back. */
#define SYNC_LATENCIES 3
#define ALLREDUCE_LATENCIES 2

struct tally {
    const struct replicate_options *asked; /* who is told of each gradient */
    struct replicate_options options;      /* of the mode */
    char mode[MODE_MAX];
    struct replicate_total total;
    double ns;
    struct error why; /* it cannot be */
};

void replicate_total_add(struct replicate_total *total, const struct replicate_choice *choice)
{
    total->ns += choice->taken.ns - choice->latency + choice->read.ns;
    total->latency = fmax(total->latency, choice->latency);
    total->has_parts = total->has_parts || choice->is_part;
}

double replicate_total_ns(const struct replicate_total *total, enum replicate_mode mode)
{
    int latencies = mode == REPLICATE_POLICY ? SYNC_LATENCIES : ALLREDUCE_LATENCIES;
    return total->ns + total->latency * latencies;
}

static void add_up(void *context, const struct replicate_choice *choice)
{
    struct tally *tally = context;
    struct replicate_choice named = *choice;
    named.mode = tally->mode;
    replicate_total_add(&tally->total, choice);
    if (tally->asked->explain)
        tally->asked->explain(tally->asked->context, &named);
}

static int count(struct tally *tally, const struct graph *from)
{
    const struct cluster *cluster = tally->options.cluster;
    struct graph *tried = NULL;
    if (tally->options.mode == REPLICATE_POLICY && !cluster_count(cluster, SHARD_JOB))
        return error_set(&tally->why, ERR_USAGE, "the cluster has no task of the job %s",
                         SHARD_JOB);
    int code = replicate_graph(from, &tally->options, &tried, &tally->why);
    graph_free(tried);
    tally->ns = replicate_total_ns(&tally->total, tally->options.mode);
    return code;
}

static int begin(struct tally *tally, const struct replicate_options *asked, const char *mode,
                 struct error *err)
{
    const char *code = asked->policy;
    *tally = (struct tally){.asked = asked, .options = *asked};
    snprintf(tally->mode, sizeof tally->mode, "%s,factors=auto%s%s", mode, *code ? "," : "", code);
    if (replicate_parse(&tally->options, tally->mode, err))
        return err->code;
    tally->options.may_code = true;
    tally->options.explain = add_up;
    tally->options.note = NULL;
    tally->options.context = tally;
    return 0;
}

int replicate_auto(const struct graph *from, const struct replicate_options *options,
                   struct graph **to, struct error *err)
{
    struct tally tallies[MODES], *best = NULL;
    *to = NULL;
    if (!options->cluster)
        return error_set(err, ERR_USAGE, "--mode auto depends on the cluster: give -c");
    for (int i = 0; i < MODES; i++)
        if (begin(&tallies[i], options, modes[i], err))
            return err->code;
    for (int i = 0; i < MODES; i++)
        if (!count(&tallies[i], from) && (!best || tallies[i].ns < best->ns))
            best = &tallies[i];
    if (!best)
        return error_set(err, tallies[ALLREDUCE].why.code, "%s", tallies[ALLREDUCE].why.text);
    for (int i = 0; i < MODES && options->compare; i++) {
        const struct tally *tally = &tallies[i];
        const struct replicate_mode_choice choice = {
            tally->mode, tally->ns, tally->why.code ? tally->why.text : NULL, tally == best};
        options->compare(options->context, &choice);
    }
    best->options.explain = NULL;
    best->options.explain_schedule = NULL;
    best->options.note = options->note;
    best->options.context = options->context;
    return replicate_graph(from, &best->options, to, err);
}
