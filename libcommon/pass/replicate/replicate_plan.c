/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values are exchanged, and how each crosses: whole, in code, or as factors, where these take
 * less time.
 */
#include <math.h>
#include <stdlib.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_reduce.h"

static const struct technique *const techniques[] = {
    [CROSSES_WHOLE] = &replicate_whole,
    [CROSSES_BY_FACTORS] = &replicate_factors,
    [CROSSES_IN_CODE] = &replicate_code,
};

/* ---- the choice ---- */

static enum replicate_crossing cheapest(const struct replicator *r, const struct exchange *x)
{
    bool codes = !x->why_not[CROSSES_IN_CODE] &&
                 (!r->options->may_code || x->ways[CROSSES_IN_CODE].ns < x->ways[CROSSES_WHOLE].ns);
    enum replicate_crossing other = codes ? CROSSES_IN_CODE : CROSSES_WHOLE;
    bool factors =
        r->options->factors == FACTORS_ALL ||
        (r->options->factors == FACTORS_AUTO && x->ways[CROSSES_BY_FACTORS].ns < x->ways[other].ns);
    return !x->why_not[CROSSES_BY_FACTORS] && factors ? CROSSES_BY_FACTORS : other;
}

/* Returns the shape of the whole variable, of which each worker has a part; NULL: it is shared. */
static const struct attr_value *shape_of_parts(const struct exchange *x)
{
    return x->variable ? node_attr(x->variable, WORKER_PART_SHAPE) : NULL;
}

static void choose(struct replicator *r, struct exchange *x)
{
    x->crossing = CROSSES_NOT;
    for (int i = CROSSES_BY_FACTORS; i < CROSSES_NOT; i++)
        x->why_not[i] = "each worker has a part of it";
    if (shape_of_parts(x))
        return;
    double read_ns = 0, steps = r->options->average ? x->steps : 1;
    if (replicate_pushes(r) && x->variable) {
        /* A worker reads the variable, or the rows that have a gradient, from shards. */
        struct edge value = x->is_of_rows ? x->edge : replicate_out(x->variable->id);
        double bytes = replicate_bytes(r, value) / (r->options->fetch > 1 ? r->options->fetch : 1);
        read_ns = r->ways->read.per_byte * bytes;
    }
    for (int i = CROSSES_WHOLE; i < CROSSES_NOT; i++) {
        struct cost_sum *way = &x->ways[i];
        x->why_not[i] = techniques[i]->refuse ? techniques[i]->refuse(r, x) : NULL;
        if (x->why_not[i])
            continue;
        *way = techniques[i]->price(r, x);
        *way = (struct cost_sum){way->bytes / steps, way->ns / steps};
        /* A push while others still read takes no time of its own. */
        way->ns -= cost_beside_reads(r->ways->pushers_beside, r->ways->sent.per_byte * way->bytes,
                                     read_ns);
    }
    if (!x->why_not[CROSSES_BY_FACTORS]) {
        /* Otherwise each worker has to compute its own product. */
        double ns = replicate_workers_ns(r, replicate_node_ns(r, x->product));
        x->ways[CROSSES_WHOLE].ns += ns;
        x->ways[CROSSES_IN_CODE].ns += ns;
    }
    x->crossing = cheapest(r, x);
    x->technique = techniques[x->crossing];
    if (x->crossing == CROSSES_WHOLE && !replicate_pushes(r))
        x->piece_rows = replicate_piece_rows(r, x);
    r->exchange_ns += x->ways[x->crossing].ns - r->ways->sent.latency / steps + read_ns;
}

/* Latencies of a step besides the values themselves; they count once, however many gradients cross:
 * variables are read, gradients pushed, and the push replied to; or gradients go to the summing
 * worker, and sums come back. */
#define SYNC_LATENCIES 3
#define ALLREDUCE_LATENCIES 2

static void choose_all(struct replicator *r)
{
    bool has_parts = false;
    vec_each(x, &r->planned) {
        choose(r, *x);
        has_parts |= (*x)->crossing == CROSSES_NOT;
    }
    r->exchange_ns +=
        r->ways->sent.latency *
        (r->options->mode == REPLICATE_POLICY ? SYNC_LATENCIES : ALLREDUCE_LATENCIES) /
        (r->options->average ? r->options->average : 1);
    if (r->mode)
        replicate_explain(r->options, "%s:", r->mode);
    replicate_explain(r->options, "%-24s %-14s %11s %9s %11s %9s %11s %9s  %s", "VARIABLE", "SHAPE",
                      "BYTES", "MS", "FACTORS", "MS", "CODE", "MS", "SENT");
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        const char *name = replicate_gradient_of(x->node);
        const struct attr_value *whole = shape_of_parts(x);
        struct str ways = STR_INIT;
        for (int i = CROSSES_WHOLE; i < CROSSES_NOT; i++)
            if (x->why_not[i])
                str_printf(&ways, " %11s %9s", "-", "-");
            else
                str_printf(&ways, " %11.0f %9.3f", x->ways[i].bytes, x->ways[i].ns / 1e6);
        const char *why = x->why_not[CROSSES_IN_CODE] ? x->why_not[CROSSES_BY_FACTORS] : NULL;
        replicate_explain(r->options, "%-24s %-14s%s  %s%s%s", name ? name : x->node->name,
                          shape_text(whole ? whole->shape : &x->output->shape), str_text(&ways),
                          x->technique ? x->technique->name : "nothing", why ? ": " : "",
                          why ? why : "");
        str_release(&ways);
    }
    if (!r->mode && !has_parts)
        replicate_explain(r->options, "exchange of a step: %.3f ms", r->exchange_ns / 1e6);
}

/* ---- the order in which values become known ----
 *
 * The order in which a step comes to know the values to exchange: by the time of their
 * dependencies, as if nothing waited for a processor. The order of nodes in the graph says less:
 * the gradient of the first layer, which needs all of back-propagation, may precede those of other
 * layers there. */

static int by_time(const void *a, const void *b)
{
    const struct exchange *x = *(struct exchange *const *)a, *y = *(struct exchange *const *)b;
    return x->known_ns != y->known_ns ? (x->known_ns > y->known_ns) - (x->known_ns < y->known_ns)
                                      : x->place - y->place;
}

static void plan_by_time(struct replicator *r)
{
    /* By node: the earliest time at which its values exist. */
    double *times = arena_array(&r->arena, r->from->nodes.n + 1, sizeof *times);
    graph_each_ordered(node, r->from, r->order) {
        double begin = 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            begin = fmax(begin, times[node_dependency(node, k).node]);
        times[node->id] = begin + replicate_node_ns(r, node);
        for (int slot = 0; slot < node->n_outputs; slot++) {
            struct exchange *x = replicate_exchange(r, (struct edge){node->id, slot});
            if (!x)
                continue;
            x->known_ns = times[node->id];
            x->place = (int)r->planned.n;
            vec_push_in(&r->arena, &r->planned, x);
        }
    }
    /* The numbers of rows are of no use, and so no more urgent, before the rows are known. */
    vec_each(push, &r->pushes) {
        vec_each(rows, &push->exchanges) {
            for (size_t i = 0; i < push->exchanges.n && (*rows)->is_of_rows; i++)
                if (push->exchanges.items[i]->variable == (*rows)->variable)
                    (*rows)->known_ns = fmax((*rows)->known_ns, push->exchanges.items[i]->known_ns);
        }
    }
    qsort(r->planned.items, r->planned.n, sizeof *r->planned.items, by_time);
}

/* Marks, with FACT_AFTER, nodes after a reduction or an initializer: they are copied late. */
static int find_late(struct replicator *r)
{
    graph_each_ordered(node, r->from, r->order) {
        bool late = replicate_is_initializer(r, node);
        for (int k = 0; k < node->n_inputs + node->n_controls; k++) {
            struct edge edge = node_dependency(node, k);
            const struct exchange *x = k < node->n_inputs ? replicate_exchange(r, edge) : NULL;
            late |= has(r, edge.node, FACT_AFTER) ||
                    (has(r, node->id, FACT_UPDATE) && x && x->crossing != CROSSES_NOT);
        }
        r->facts[node->id] &= ~(unsigned)FACT_AFTER;
        r->facts[node->id] |= late ? FACT_AFTER : 0;
    }
    return replicate_check_late(r, "an initial value");
}

int replicate_plan(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    bool pushes = replicate_pushes(r);
    if (!pushes && (options->accumulate > 1 || options->wire != DTYPE_INVALID))
        return error_set(
            r->err, ERR_USAGE, "--%s is for what is pushed to shards; with --mode %s %s",
            options->accumulate > 1 ? "accumulate" : "compress", replicate_mode_name(options),
            options->by_servers ? "nothing is" : "there are none");
    if (options->factors == FACTORS_AUTO && replicate_workers(options) < 1)
        return error_set(r->err, ERR_USAGE,
                         "factors=auto depends on the number of workers: give -c or --workers");
    if (replicate_find(r) || (!pushes && replicate_choose_schedule(r)))
        return r->err->code;
    replicate_find_ways(r);
    if (options->average && replicate_plan_averages(r))
        return r->err->code;
    if (!pushes && !options->average)
        plan_by_time(r);
    vec_each(push, &r->pushes) {
        for (size_t k = 0; pushes && k < push->exchanges.n; k++)
            vec_push_in(&r->arena, &r->planned, push->exchanges.items[k]);
    }
    choose_all(r);
    return pushes ? replicate_check_sums(r) : find_late(r);
}
