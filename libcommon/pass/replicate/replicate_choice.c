/* SPDX-License-Identifier: Apache-2.0
 *
 * How the workers' gradients cross: whole, in code, or as factors, where these take less time. With
 * all-reduce a worker sends 2 (n - 1) / n of one, and n - 1 times what is small, and the rows that
 * it has of a table; to shards all of it, as often as it pushes, and shards share in what there is
 * to do. Shards that only add are sent a gradient, and rows, once, and send each worker the sum, or
 * the others' rows, at the same time.
 */
#include <math.h>

#include "collective/schedule.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_code.h"
#include "pass/replicate/replicate_private.h"
#include "pass/replicate/replicate_push.h"

/* Whole, without what makes it. */
static struct replicate_way whole(const struct replicator *r, int n, struct cost_way way,
                                  struct edge edge)
{
    const struct node *node = graph_node(r->from, edge.node);
    double bytes = replicate_bytes(r, edge);
    if (replicate_pushes(r)) {
        bytes /= *replicate_role(node) ? 1 : replicate_steps_of(r, edge);
        return (struct replicate_way){bytes, way.latency + way.per_byte * bytes};
    }
    if (*replicate_role(node) || bytes <= (double)COLLECTIVE_SMALL_BYTES)
        return replicate_gather_way(r, n, way, bytes);
    if (r->options->by_servers && n > 1)
        return (struct replicate_way){bytes, way.latency + r->served_sums.per_byte * bytes};
    const struct cost_sum_query query = {r->schedule, "worker", n, r->options->cluster};
    struct cost_sum sum;
    struct error ignored = ERROR_INIT; /* then it goes directly */
    if (r->schedule != SCHEDULE_DIRECT && !cost_schedule(&query, bytes, &sum, &ignored))
        return (struct replicate_way){sum.bytes, sum.ns};
    bytes *= 2.0 * (n - 1) / n;
    return (struct replicate_way){bytes, way.latency + way.per_byte * bytes};
}

/* The way of the variable, or of the rows that have a gradient, from shards. */
static struct replicate_way read_of(const struct replicator *r, struct cost_way way,
                                    struct edge edge)
{
    const struct node *node = graph_node(r->from, edge.node);
    const struct node *variable = replicate_variable_of(r, node);
    if (!replicate_pushes(r) || !variable)
        return (struct replicate_way){0};
    struct edge value = *replicate_role(node) ? edge : (struct edge){variable->id, 0};
    double bytes = replicate_bytes(r, value) / (r->options->fetch > 1 ? r->options->fetch : 1);
    return (struct replicate_way){bytes, way.per_byte * bytes};
}

/* Values that are pushed while others still read take no time of their own. */
static void push_beside_reads(const struct replicator *r, double reads,
                              struct replicate_way *pushed)
{
    pushed->ns -= cost_beside_reads(r->pushers_beside, r->way->per_byte * pushed->bytes, reads);
}

static void estimate(struct replicator *r, struct replicate_choice *choice, struct edge edge,
                     const struct gradient_product *product)
{
    int workers = replicate_workers(r->options), n = workers > 0 ? workers : 1;
    /* By which all gradients cross, of n workers, and what shards have: found when the first
     * does. */
    const struct cluster *cluster = r->options->cluster;

    if (!r->way) {
        r->way = arena_array(&r->arena, 2, sizeof *r->way);
        r->read_way = r->way + 1;
        *r->way = replicate_pushes(r) ? cost_pushes(n, replicate_shards(r), cluster)
                                      : cost_exchange("worker", n, cluster);
        if (replicate_pushes(r)) {
            *r->read_way = cost_reads(n, replicate_shards(r), cluster);
            r->pushers_beside = cost_pushers_beside(n, replicate_shards(r), cluster);
        }
        if (r->options->by_servers) {
            /* A step waits for the slower of the two. */
            int shards = replicate_shards(r);
            r->served_sums = cost_served(n, shards, 1, r->options->cluster);
            r->served_rows = cost_served(n, shards, n - 1, r->options->cluster);
            r->way->latency = fmax(r->way->latency, r->served_sums.latency);
        }
    }
    struct cost_way way = *r->way;
    choice->latency = way.latency;
    choice->read = read_of(r, *r->read_way, edge);
    choice->dense = whole(r, n, way, edge);
    if (!choice->no_code)
        choice->code = replicate_code_way(r, n, way, edge);
    push_beside_reads(r, choice->read.ns, &choice->dense);
    push_beside_reads(r, choice->read.ns, &choice->code);
    if (choice->no_factors)
        return;
    choice->factors = replicate_factors_way(r, n, way, product);
    push_beside_reads(r, choice->read.ns, &choice->factors);
    double ns = replicate_workers_ns(r, replicate_node_ns(r, product->node));
    choice->dense.ns += ns;
    choice->code.ns += ns;
}

static enum crossing decide(const struct replicator *r, const struct replicate_choice *choice)
{
    bool codes = !choice->no_code && (!r->options->may_code || choice->code.ns < choice->dense.ns);
    double others = codes ? choice->code.ns : choice->dense.ns;
    bool cheaper = r->options->factors == FACTORS_AUTO && choice->factors.ns < others;
    if (!choice->no_factors && (r->options->factors == FACTORS_ALL || cheaper))
        return CROSSES_BY_FACTORS;
    return codes ? CROSSES_IN_CODE : CROSSES_WHOLE;
}

enum crossing replicate_choose(struct replicator *r, struct edge gradient,
                               struct gradient_product *product)
{
    static const char *const sent[] = {"gradient", "factors", "code"};
    const struct node *node = graph_node(r->from, gradient.node);
    const char *variable = replicate_gradient_of(node);
    struct replicate_choice choice = {.variable = variable ? variable : node->name,
                                      .shape = node->outputs[gradient.slot].shape,
                                      .no_factors = replicate_find_product(r, gradient, product),
                                      .no_code = replicate_find_code(r, gradient)};
    if (replicate_pushes(r) && replicate_steps_of(r, gradient) != r->steps)
        choice.no_factors = "it is pushed at an interval of its own";
    estimate(r, &choice, gradient, product);
    enum crossing crossing = decide(r, &choice);
    choice.sent = sent[crossing];
    choice.taken = crossing == CROSSES_BY_FACTORS ? choice.factors
                   : crossing == CROSSES_IN_CODE  ? choice.code
                                                  : choice.dense;
    if (r->options->explain)
        r->options->explain(r->options->context, &choice);
    return crossing;
}

void replicate_explain_part(struct replicator *r, struct edge gradient)
{
    const char *name = node_attr(graph_node(r->from, gradient.node), "_gradient")->s;
    const struct node *variable = graph_find(r->from, name);
    const char *why = "each worker has a part of it";
    const struct replicate_choice choice = {.variable = name,
                                            .shape = *node_attr(variable, WORKER_PART_SHAPE)->shape,
                                            .no_factors = why,
                                            .no_code = why,
                                            .sent = "nothing",
                                            .is_part = true};
    if (r->options->explain)
        r->options->explain(r->options->context, &choice);
}
