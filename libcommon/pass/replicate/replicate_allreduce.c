/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication without shards: every worker has all variables, and what would be pushed is reduced
 * over the workers instead. Values are reduced some at a time, in the order in which they become
 * known, so that the first are on their way while the others are computed. Initial values are those
 * of the first worker.
 */
#include <string.h>

#include "pass/replicate/replicate_private.h"

#define BUCKET_BYTES ((int64_t)4 << 20)

/* ---- one AllReduce ---- */

struct bucket {
    VEC(struct edge) edges; /* of the source */
    VEC(const char *) reductions;
    int64_t bytes;
};

static void add_controls(struct replicator *r, struct node *node)
{
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, (int)i, FACT_CONTROLS) && !has(r, (int)i, FACT_AFTER))
            graph_add_control(r->to, node, r->copy[i]);
}

static int add_reduce(struct replicator *r, const char *name, struct bucket *bucket, bool initial)
{
    size_t n = bucket->edges.n;
    struct edge *inputs = arena_array(&r->arena, n + 1, sizeof *inputs);
    for (size_t i = 0; i < n; i++)
        inputs[i] = replicate_edge(r, bucket->edges.items[i]);
    struct attr attr = {
        "reductions", {.kind = ATTR_LIST_STRING, .n = (int)n, .strings = bucket->reductions.items}};
    struct node_spec spec = {
        .op = "AllReduce", .inputs = inputs, .n_inputs = (int)n, .attrs = &attr, .n_attrs = 1};
    int node = n ? replicate_add(r, WORKER_DEVICE, name, &spec) : -1;
    for (size_t i = 0; node >= 0 && i < n; i++)
        vec_push(&r->reduced, ((struct reduced){bucket->edges.items[i], {node, (int)i}, initial}));
    if (node >= 0 && !initial)
        add_controls(r, graph_node(r->to, node));
    bucket->edges.n = bucket->reductions.n = 0;
    bucket->bytes = 0;
    return r->err->code;
}

static void bucket_release(struct bucket *bucket)
{
    vec_release(&bucket->edges);
    vec_release(&bucket->reductions);
}

static int put(struct replicator *r, struct bucket *bucket, struct edge edge, const char *name)
{
    const struct node *node = graph_node(r->from, edge.node);
    const struct node_output *output = &node->outputs[edge.slot];
    int64_t bytes = shape_bytes(&output->shape, output->type);
    vec_push(&bucket->edges, edge);
    vec_push(&bucket->reductions, replicate_reduction(node, output->type));
    bucket->bytes += bytes > 0 ? bytes : 0;
    return bucket->bytes >= BUCKET_BYTES ? add_reduce(r, name, bucket, false) : 0;
}

/* In topological order: as they become known. */
static int reduce_pushed(struct replicator *r)
{
    struct bucket bucket = {.bytes = 0};
    int code = 0;
    for (size_t i = 0; !code && i < r->from->nodes.n; i++) {
        const struct node *node = graph_node(r->from, r->order[i]);
        for (int slot = 0; !code && slot < node->n_outputs; slot++)
            if (replicate_is_pushed(r, (struct edge){node->id, slot}))
                code = put(r, &bucket, (struct edge){node->id, slot}, "allreduce/gradients");
    }
    if (!code)
        code = add_reduce(r, "allreduce/gradients", &bucket, false);
    bucket_release(&bucket);
    return code;
}

/* ---- initial values ---- */

static bool is_initializer(const struct replicator *r, const struct node *node)
{
    const struct entry *init = graph_entry(r->from, "init");
    for (int i = 0; init && i < init->n_edges; i++)
        if (init->edges[i].node == node->id)
            return node_has(node, OP_OVERWRITES);
    return false;
}

static int reduce_initial(struct replicator *r)
{
    struct bucket bucket = {.bytes = 0};
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        const struct node *node = graph_node(r->from, (int)i);
        if (!is_initializer(r, node) || node_is(graph_node(r->from, node->inputs[1].node), "Const"))
            continue; /* a constant is the same everywhere */
        vec_push(&bucket.edges, node->inputs[1]);
        vec_push(&bucket.reductions, "first");
    }
    int code = add_reduce(r, "allreduce/initial", &bucket, true);
    bucket_release(&bucket);
    return code;
}

/* ---- the graph ---- */

/* What an update, or the initializer of a variable, gets of an edge: what came of all workers'. */
struct edge replicate_reduced(struct replicator *r, const struct node *reader, struct edge edge)
{
    bool initial = is_initializer(r, reader), wants = initial || has(r, reader->id, FACT_UPDATE);
    for (size_t i = 0; wants && i < r->reduced.n; i++)
        if (r->reduced.items[i].initial == initial && r->reduced.items[i].edge.node == edge.node &&
            r->reduced.items[i].edge.slot == edge.slot)
            return r->reduced.items[i].value;
    return (struct edge){edge_exists(edge) ? r->copy[edge.node] : -1, edge.slot};
}

/* What comes after a reduction, or an initializer. */
static void find_late(struct replicator *r)
{
    for (size_t i = 0; i < r->from->nodes.n; i++) {
        const struct node *node = graph_node(r->from, r->order[i]);
        bool late = is_initializer(r, node);
        for (int k = 0; k < node->n_inputs; k++)
            late |= has(r, node->inputs[k].node, FACT_AFTER) ||
                    (has(r, node->id, FACT_UPDATE) && replicate_is_pushed(r, node->inputs[k]));
        for (int k = 0; k < node->n_controls; k++)
            late |= has(r, node->controls[k], FACT_AFTER);
        r->facts[node->id] &= ~(unsigned)FACT_AFTER;
        r->facts[node->id] |= late ? FACT_AFTER : 0;
    }
}

int replicate_allreduce(struct replicator *r)
{
    if (replicate_find(r))
        return r->err->code;
    find_late(r);
    for (size_t i = 0; i < r->from->nodes.n; i++)
        r->facts[i] &= ~(unsigned)FACT_WRITER; /* each worker's own */
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (!has(r, r->order[i], FACT_AFTER))
            replicate_copy(r, graph_node(r->from, r->order[i]));
    if (reduce_pushed(r) || reduce_initial(r))
        return r->err->code;
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, r->order[i], FACT_AFTER))
            replicate_copy(r, graph_node(r->from, r->order[i]));
    replicate_close(r);
    return r->err->code;
}
