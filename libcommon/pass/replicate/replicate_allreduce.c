/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication without shards: every worker has all variables, and what would be pushed is reduced
 * over the workers instead. Values are reduced some at a time, in the order in which they become
 * known, so that the first are on their way while the others are computed; large ones are in pieces
 * (replicate_pieces.c). Of gradients that are to be made of factors all workers' rows are gathered
 * instead, and multiplied: the sum over all rows, by rank. Initial values are those of the first
 * worker.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_code.h"
#include "pass/replicate/replicate_private.h"

#define BUCKET_BYTES ((int64_t)4 << 20)

/* ---- what is reduced together ---- */

/* Gradients that cross in code later do so with the rest until then, unless there is a warm-up:
 * then there are either codes or whole gradients. */
struct pushed_values {
    struct bucket plain, codes, whole;
};

static struct bucket *bucket_of_codes(const struct replicator *r, struct pushed_values *exchange)
{
    return edge_exists(r->coding) ? &exchange->codes : &exchange->plain;
}

static void put_edge(struct replicator *r, struct bucket *bucket, struct edge edge,
                     const char *reduction, enum reduced_for use)
{
    replicate_put(r, bucket,
                  (struct bucket_value){edge, replicate_crossing(r, edge), reduction, use});
}

/* Exchanges codes, with the ranks of the workers that they come from. */
static int exchange_codes(struct replicator *r, struct bucket *bucket)
{
    if (!r->err->code && !edge_exists(r->rank))
        r->rank = replicate_op(r, "CollectiveRank", EDGE_NONE, EDGE_NONE, ALLREDUCE_SCOPE "rank");
    if (r->err->code)
        return r->err->code;
    int priority = bucket->priority;
    replicate_put(r, bucket, (struct bucket_value){EDGE_NONE, r->rank, "rows", FOR_MEMBERS});
    if (replicate_reduce(r, ALLREDUCE_SCOPE "gradients", bucket))
        return r->err->code;
    struct edge members = r->reduced.items[r->reduced.n - 1].value;
    bucket->priority = priority;
    /* Means that are shared out: each worker's part of them, in code, for all. */
    for (size_t i = 0; i < r->coded.n && !r->err->code; i++) {
        struct coded_gradient *coded = &r->coded.items[i];
        if (coded->is_taken || !coded->is_shared_out)
            continue;
        replicate_code_mean(r, coded, members);
        if (!r->err->code)
            replicate_put(
                r, bucket,
                (struct bucket_value){coded->gradient, coded->mean.code, "rows", FOR_MEANS});
    }
    if (!(r->err->code ? r->err->code : replicate_reduce(r, ALLREDUCE_SCOPE "means", bucket)))
        replicate_take_codes(r, members);
    return r->err->code;
}

static int flush(struct replicator *r, struct pushed_values *exchange)
{
    bool codes = r->coded.n && !r->coded.items[r->coded.n - 1].is_taken;
    if (!replicate_reduce(r, ALLREDUCE_SCOPE "warm_up", &exchange->whole) && codes)
        exchange_codes(r, bucket_of_codes(r, exchange));
    if (!replicate_reduce(r, ALLREDUCE_SCOPE "gradients", &exchange->plain)) {
        /* Sums of the step before's gradients are settled. */
        for (size_t i = 0; i < r->reduced.n && !r->err->code; i++) {
            struct reduced_value *reduced = &r->reduced.items[i];
            if (reduced->use != FOR_DELAYED)
                continue;
            reduced->value = replicate_settled(r, reduced->value);
            reduced->use = FOR_UPDATES;
        }
    }
    return r->err->code;
}

static void urge(struct bucket *bucket, int priority)
{
    if (priority && (!bucket->priority || priority < bucket->priority))
        bucket->priority = priority;
}

static int priority_of(const struct replicator *r, struct edge edge)
{
    const struct node *variable = replicate_variable_of(r, graph_node(r->from, edge.node));
    return variable ? r->priority[variable->id] : 0;
}

static int put_pushed(struct replicator *r, struct pushed_values *exchange, struct edge edge)
{
    struct gradient_product product;
    if (replicate_is_of_part(r, edge)) {
        replicate_explain_part(r, edge);
        return 0;
    }
    enum crossing crossing = replicate_choose(r, edge, &product);
    if (crossing == CROSSES_BY_FACTORS) {
        /* Layers with the same input have a factor in common. */
        if (replicate_at(r, BY_LEFT, product.left) < 0)
            put_edge(r, &exchange->plain, product.left, "rows", FOR_PRODUCTS);
        if (replicate_at(r, BY_RIGHT, product.right) < 0)
            put_edge(r, &exchange->plain, product.right, "mean_rows", FOR_PRODUCTS);
        edge_map_add(&r->by_edge[BY_LEFT], product.left, 0);
        edge_map_add(&r->by_edge[BY_RIGHT], product.right, 0);
        vec_push_in(&r->arena, &r->products, product);
    } else if (crossing == CROSSES_IN_CODE) {
        struct edge whole = EDGE_NONE;
        const struct coded_gradient *coded = replicate_add_code(r, edge, &whole);

        if (coded) {
            if (edge_exists(whole))
                replicate_put(r, &exchange->whole,
                              (struct bucket_value){edge, whole, "mean", FOR_WARM_UP});
            replicate_put(r, bucket_of_codes(r, exchange),
                          (struct bucket_value){edge, coded->own.code,
                                                coded->is_shared_out ? "part" : "rows", FOR_CODES});
        }
    } else if (replicate_is_in_pieces(r, edge))
        return flush(r, exchange) || replicate_reduce_pieces(r, edge, priority_of(r, edge))
                   ? r->err->code
                   : 0;
    else {
        const struct node *node = graph_node(r->from, edge.node);
        const char *reduction = replicate_reduction(node, node->outputs[edge.slot].type);
        enum reduced_for use = replicate_is_delayed(r, edge) ? FOR_DELAYED : FOR_UPDATES;
        struct edge value = replicate_exchanged(r, edge);
        if (!r->err->code)
            replicate_put(r, &exchange->plain, (struct bucket_value){edge, value, reduction, use});
    }
    /* A bucket is as urgent as the most urgent value in it. */
    int priority = priority_of(r, edge);
    urge(&exchange->plain, priority);
    urge(&exchange->codes, priority);
    urge(&exchange->whole, priority);
    return (exchange->plain.bytes + exchange->codes.bytes >= BUCKET_BYTES ||
            exchange->whole.bytes >= BUCKET_BYTES)
               ? flush(r, exchange)
               : r->err->code;
}

/* ---- what becomes known when ----
 *
 * In which order a step comes to know what is pushed: by the time of what each depends on, as if
 * nothing waited for a processor. The order of nodes in the graph says less: with the gradient of
 * the first layer, which needs all of back-propagation, those of others may come after it. */

struct known_value {
    struct edge edge; /* of the source */
    double ns;        /* when, at the earliest */
    int place;        /* in the source's order */
};

static int by_time(const void *a, const void *b)
{
    const struct known_value *x = a, *y = b;
    return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns) : x->place - y->place;
}

/* What is pushed, in that order; the numbers of rows with the rows. How many these are; they are
 * the arena's. */
static int list_known(struct replicator *r, struct known_value **list)
{
    /* By node: when its values are there at the earliest. */
    size_t n_nodes = r->from->nodes.n;
    double *times = arena_array(&r->arena, n_nodes + 1, sizeof *times);
    graph_each_ordered(node, r->from, r->order) {
        double begin = 0;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            begin = fmax(begin, times[node_dependency(node, k).node]);
        times[node->id] = begin + replicate_node_ns(r, node);
    }

    VEC(struct known_value) known = VEC_INIT;
    graph_each_ordered(node, r->from, r->order) {
        for (int slot = 0; slot < node->n_outputs; slot++) {
            struct edge edge = {node->id, slot};
            if (replicate_is_pushed(r, edge))
                vec_push_in(&r->arena, &known,
                            ((struct known_value){edge, times[node->id], (int)known.n}));
        }
    }
    int n = (int)known.n;
    *list = known.items;
    /* The numbers of rows are of no use, and no more urgent, before the rows are known. */
    for (int i = 0; i < n; i++) {
        const char *variable = replicate_gradient_of(graph_node(r->from, (*list)[i].edge.node));
        if (!variable || !*replicate_role(graph_node(r->from, (*list)[i].edge.node)))
            continue;
        for (int k = 0; k < n; k++) {
            const char *other = replicate_gradient_of(graph_node(r->from, (*list)[k].edge.node));
            if (other && !strcmp(variable, other))
                (*list)[i].ns = fmax((*list)[i].ns, (*list)[k].ns);
        }
    }
    if (n)
        qsort(*list, (size_t)n, sizeof **list, by_time);
    return n;
}

/* ---- the graph ---- */

int replicate_allreduce(struct replicator *r)
{
    if (r->options->factors == FACTORS_AUTO && replicate_workers(r->options) < 1)
        return error_set(r->err, ERR_USAGE,
                         "factors=auto depends on the number of workers: give -c or --workers");
    if (replicate_find(r) || replicate_choose_schedule(r))
        return r->err->code;
    /* Nodes after a reduction, or after an initializer, are copied late. */
    graph_each_ordered(node, r->from, r->order) {
        bool late = replicate_is_initializer(r, node);
        for (int k = 0; k < node->n_inputs; k++)
            late |= has(r, node->inputs[k].node, FACT_AFTER) ||
                    (has(r, node->id, FACT_UPDATE) && replicate_is_pushed(r, node->inputs[k]) &&
                     !replicate_is_of_part(r, node->inputs[k]));
        for (int k = 0; k < node->n_controls; k++)
            late |= has(r, node->controls[k], FACT_AFTER);
        r->facts[node->id] &= ~(unsigned)FACT_AFTER;
        r->facts[node->id] |= late ? FACT_AFTER : 0;
    }
    if (replicate_check_late(r, "an initial value"))
        return r->err->code;
    for (size_t i = 0; i < r->from->nodes.n; i++)
        r->facts[i] &= ~(unsigned)FACT_WRITER; /* each worker's own */
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (!has(r, r->order[i], FACT_AFTER))
            replicate_copy(r, graph_node(r->from, r->order[i]));
    if (replicate_sum_rows(r))
        return r->err->code;
    struct pushed_values exchange = {.plain.bytes = 0};
    struct known_value *known;
    int code = 0, n = list_known(r, &known);
    replicate_begin_delay(r);
    replicate_begin_warm_up(r);
    for (int i = 0; !code && i < n; i++)
        code = put_pushed(r, &exchange, known[i].edge);
    if (!code)
        code = flush(r, &exchange);
    if (!code) {
        /* The worker's own product, of all workers' rows. */
        vec_each(product, &r->products) {
            const struct edge factors[] = {
                replicate_find_reduced(r, product->left, FOR_PRODUCTS, "rows"),
                replicate_find_reduced(r, product->right, FOR_PRODUCTS, "mean_rows")};
            struct edge made = replicate_add_product(r, product, factors, NULL);
            replicate_note_reduced(
                r, (struct reduced_value){product->gradient, made, FOR_UPDATES, "mean", 0});
        }
    }
    replicate_keep_lost(r);
    replicate_end_delay(r);
    replicate_end_warm_up(r);
    if (r->err->code)
        return r->err->code;
    struct bucket bucket = {.bytes = 0};
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        /* A constant, or what is a part of such, is the same everywhere. */
        const struct node *node = graph_node(r->from, (int)i);
        if (!replicate_is_initializer(r, node))
            continue;
        struct edge value = node->inputs[node_attr(node, WORKER_PART_INITIAL) ? 0 : 1];
        const struct node *source = graph_node(r->from, value.node);
        if (!node_is(source, "Const") && !node_attr(source, WORKER_PART_INITIAL))
            put_edge(r, &bucket, value, "first", FOR_INITIAL);
    }
    code = replicate_reduce(r, ALLREDUCE_SCOPE "initial", &bucket);
    if (code)
        return r->err->code;
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, r->order[i], FACT_AFTER) &&
            !replicate_copy_pieces(r, graph_node(r->from, r->order[i])))
            replicate_copy(r, graph_node(r->from, r->order[i]));
    replicate_close(r);
    return r->err->code;
}
