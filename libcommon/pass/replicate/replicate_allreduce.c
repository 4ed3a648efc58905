/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication without shards: every worker has all variables, and values that would be pushed are
 * reduced over the workers instead. Values are reduced in buckets, in the order in which they
 * become known, so that the first are sent while the others are computed; large ones are split into
 * pieces (replicate_pieces.c). For gradients that cross as factors all workers' rows are gathered
 * and multiplied, which gives the sum over all rows, by rank. Initial values are the first
 * worker's.
 */
#include <string.h>

#include "graph/op_cost.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_reduce.h"

#define BUCKET_BYTES ((int64_t)4 << 20)

/* ---- buckets: values reduced together, by one node ---- */

void replicate_put(struct replicator *r, struct bucket *bucket, const struct exchange *x,
                   struct bucket_value value)
{
    if (r->err->code)
        return;
    vec_push_in(&r->arena, &bucket->values, value);
    bucket->is_late |= x && x->is_delayed;
    bucket->bytes += (int64_t)cost_bytes(graph_output(r->to, value.value), r->options->assume);
}

struct edge *replicate_inputs(struct replicator *r, const struct bucket *bucket,
                              struct attr *reductions)
{
    size_t n = bucket->values.n;
    struct edge *inputs = arena_array(&r->arena, n + 1, sizeof *inputs);
    const char **names = arena_array(&r->to->arena, n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = bucket->values.items[i].value;
        names[i] = bucket->values.items[i].reduction;
    }
    *reductions =
        (struct attr){"reductions", {.kind = ATTR_LIST_STRING, .n = (int)n, .strings = names}};
    return inputs;
}

int replicate_reduce(struct replicator *r, const char *name, struct bucket *bucket)
{
    const struct bucket full = *bucket;
    size_t n = full.values.n;
    bucket->values.n = 0;
    bucket->bytes = bucket->priority = 0;
    bucket->is_late = false;
    if (!n || r->err->code)
        return r->err->code;
    struct attr attrs[3];
    struct edge *inputs = replicate_inputs(r, &full, attrs);
    int n_attrs = 1 + (full.is_initial ? 0 : replicate_schedule_attrs(r, attrs + 1));
    struct edge made = replicate_node(r, "AllReduce", inputs, (int)n, attrs, n_attrs, "%s", name);
    if (r->err->code)
        return r->err->code;
    for (size_t i = 0; i < n; i++)
        *full.values.items[i].got = build_slot(made, (int)i);
    /* Gradients of the step before were checked then, and averages are apart from steps. */
    if (!full.is_initial && !full.is_late && !r->options->average)
        replicate_wait_for_checks(r, made);
    if (!full.is_initial && !full.is_whole)
        vec_push_in(&r->arena, &r->reducers, made.node);
    replicate_mark_sent(r, made.node, full.priority);
    return r->err->code;
}

/* ---- double buffering ----
 *
 * While a step computes its gradients, it exchanges those of the step before, which each worker has
 * kept. Updates are a step late (Seide et al., Interspeech 2014, section 3.3), and the first one
 * uses zeros. Checkpoints contain the kept gradients. */

/* Rows of tables have no fixed shape for a variable, and values that are no gradients belong to
 * their step. */
static void begin_delay(struct replicator *r)
{
    node_list controls = VEC_INIT;
    vec_each(at, &r->planned) {
        struct exchange *x = *at;
        x->is_delayed = x->is_gradient && !x->is_of_rows && shape_is_known(&x->output->shape);
    }
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (r->copy[i] >= 0 && has(r, (int)i, FACT_MARKED | FACT_CONTROLS) &&
            !has(r, (int)i, FACT_AFTER))
            vec_push_in(&r->arena, &controls, r->copy[i]);
    r->computed = replicate_after(r, "NoOp", WORKER_DEVICE, &controls, ALLREDUCE_SCOPE "computed");
}

struct edge replicate_exchanged(struct replicator *r, struct exchange *x)
{
    if (!x->is_delayed)
        return replicate_crossing(r, x);
    /* Checkpoints keep the sum, so another number of workers loses nothing of it. */
    x->kept = replicate_kept(r, replicate_text(r, x->node->name, "kept"), PER_WORKER_SUM,
                             x->output->type, &x->output->shape);
    return replicate_op(r, "Identity", x->kept, EDGE_NONE, "%s/before", x->node->name);
}

void replicate_settle(struct replicator *r, struct exchange *x)
{
    const struct node_spec spec = {.op = "Identity",
                                   .inputs = &x->got,
                                   .n_inputs = 1,
                                   .controls = &r->computed,
                                   .n_controls = 1};
    if (x->is_delayed)
        x->got = replicate_add(r, spec, ALLREDUCE_SCOPE "settled");
}

/* Keeps the step's gradients after all workers have received the previous ones. */
static void end_delay(struct replicator *r)
{
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        if (!x->is_delayed)
            continue;
        struct edge keeps = replicate_assign(r, &r->ends, x->kept, replicate_edge(r, x->edge),
                                             "%s/keep", x->node->name);
        vec_each(reducer, &r->reducers)
            replicate_wait(r, keeps, *reducer);
    }
}

/* ---- gradients ---- */

static void flush(struct replicator *r, struct buckets *b)
{
    replicate_reduce(r, ALLREDUCE_SCOPE "warm_up", &b->whole);
    if (b->coded.n)
        replicate_exchange_codes(r);
    replicate_reduce(r, replicate_bucket_name(r), &b->plain);
    vec_each(x, &b->late)
        replicate_settle(r, *x);
    b->late.n = 0;
}

struct bucket *replicate_bucket(const struct replicator *r, const struct exchange *x)
{
    return x->push ? &x->push->sent : &r->buckets->plain;
}

static void send_whole(struct replicator *r, struct exchange *x)
{
    struct edge value = replicate_pushed(r, x);
    replicate_put(r, replicate_bucket(r, x), x,
                  (struct bucket_value){value, x->reduction, &x->got});
    if (x->is_delayed)
        vec_push_in(&r->arena, &r->buckets->late, x);
}

const struct technique replicate_whole = {
    .name = "gradient", .price = replicate_price_whole, .send = send_whole};

/* A bucket is as urgent as its most urgent value. */
static void urge(struct bucket *bucket, int priority)
{
    if (priority && (!bucket->priority || priority < bucket->priority))
        bucket->priority = priority;
}

static void send_around(struct replicator *r, struct buckets *b, struct exchange *x)
{
    int priority = x->variable ? r->priority[x->variable->id] : 0;
    if (x->piece_rows) {
        flush(r, b);
        replicate_reduce_pieces(r, x, priority);
        return;
    }
    x->technique->send(r, x);
    urge(&b->plain, priority);
    urge(&b->codes, priority);
    urge(&b->whole, priority);
    if (b->plain.bytes + b->codes.bytes >= BUCKET_BYTES || b->whole.bytes >= BUCKET_BYTES)
        flush(r, b);
}

static void reduce_gradients(struct replicator *r)
{
    struct buckets *b = r->buckets = arena_alloc(&r->arena, sizeof *b);
    b->whole.is_whole = true;
    r->merged = r->reduced = -1;
    if (r->options->delay)
        begin_delay(r);
    replicate_begin_warm_up(r);
    replicate_begin_averages(r);
    vec_each(x, &r->planned) {
        if ((*x)->technique)
            send_around(r, b, *x);
    }
    flush(r, b);
    for (int keeps = 0; keeps < 2; keeps++)
        for (size_t i = 0; i < r->planned.n && !r->err->code; i++) {
            const struct technique *technique = r->planned.items[i]->technique;
            if (technique && !keeps && technique->take)
                technique->take(r, r->planned.items[i]);
            if (technique && keeps && technique->keep)
                technique->keep(r, r->planned.items[i], EDGE_NONE);
        }
    end_delay(r);
    replicate_end_warm_up(r);
    replicate_end_averages(r);
}

/* ---- initial values ---- */

/* A node that takes a worker's part of an initial value also counts. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node)
{
    return node_attr(node, WORKER_PART_INITIAL) || has(r, node->id, FACT_FIRST);
}

static int reduce_initial(struct replicator *r)
{
    struct bucket bucket = {.is_initial = true};
    struct edge last = EDGE_NONE;
    graph_each(node, r->from) {
        if (!replicate_is_initializer(r, node))
            continue;
        /* A constant, or a part of one, is the same everywhere. */
        struct edge value = node->inputs[node_attr(node, WORKER_PART_INITIAL) ? 0 : 1];
        const struct node *source = graph_node(r->from, value.node);
        if (node_is(source, "Const") || node_attr(source, WORKER_PART_INITIAL))
            continue;
        edge_map_add(&r->initial_at, value, (int)bucket.values.n);
        replicate_put(r, &bucket, NULL,
                      (struct bucket_value){replicate_edge(r, value), "first", &last});
    }
    replicate_reduce(r, ALLREDUCE_SCOPE "initial", &bucket);
    r->initial = last.node;
    return r->err->code;
}

/* ---- the graph ---- */

struct edge replicate_reduced(struct replicator *r, const struct node *reader, struct edge edge)
{
    const struct exchange *x = replicate_exchange(r, edge);
    int at = replicate_is_initializer(r, reader) ? edge_map_get(&r->initial_at, edge) : -1;
    if (at >= 0 && edge_exists(edge))
        return (struct edge){r->initial, at};
    if (x && edge_exists(x->got) && has(r, reader->id, FACT_UPDATE) &&
        !replicate_is_initializer(r, reader))
        return x->got;
    return (struct edge){edge_exists(edge) ? r->copy[edge.node] : -1, edge.slot};
}

int replicate_allreduce(struct replicator *r)
{
    for (size_t i = 0; i < r->from->nodes.n; i++)
        r->facts[i] &= ~(unsigned)FACT_WRITER; /* updates are each worker's own */
    replicate_copy_all(r, 0);
    replicate_sum_rows(r);
    reduce_gradients(r);
    return reduce_initial(r) || replicate_copy_all(r, FACT_AFTER) ? r->err->code : 0;
}
