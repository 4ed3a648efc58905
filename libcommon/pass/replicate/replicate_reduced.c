/* SPDX-License-Identifier: Apache-2.0
 *
 * How what all workers bring of an edge becomes one value, and what the readers of the edge get.
 */
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

const char *replicate_reduction(const struct node *node, enum dtype type)
{
    const char *role = replicate_role(node);
    if (!strcmp(role, ROLE_INDICES))
        return "rows";
    if (!strcmp(role, ROLE_VALUES))
        return "mean_rows";
    return dtype_is_floating(type) ? "mean" : "first";
}

static int next_reduced(const struct replicator *r, int i)
{
    return r->reduced.items[i].next ? r->reduced.items[i].next : -1;
}

struct edge replicate_find_reduced(const struct replicator *r, struct edge edge,
                                   enum reduced_for use, const char *reduction)
{
    int i = edge_exists(edge) ? replicate_at(r, BY_REDUCED, edge) : -1;
    for (; i >= 0; i = next_reduced(r, i)) {
        const struct reduced *reduced = &r->reduced.items[i];
        if (reduced->use == use && !strcmp(reduced->reduction, reduction))
            return reduced->value;
    }
    return EDGE_NONE;
}

/* The first of an edge for one use and reduction stays. */
void replicate_note_reduced(struct replicator *r, struct reduced reduced)
{
    int at = (int)r->reduced.n, last = -1;
    vec_push_in(&r->arena, &r->reduced, reduced);
    if (!edge_exists(reduced.edge) ||
        edge_exists(replicate_find_reduced(r, reduced.edge, reduced.use, reduced.reduction)))
        return;
    for (int i = replicate_at(r, BY_REDUCED, reduced.edge); i >= 0; i = next_reduced(r, i))
        last = i;
    if (last >= 0)
        r->reduced.items[last].next = at;
    else
        edge_map_add(&r->by_edge[BY_REDUCED], reduced.edge, at);
}

/* Also what takes a worker's part of an initial value. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node)
{
    return node_attr(node, WORKER_PART_INITIAL) || has(r, node->id, FACT_FIRST);
}

/* What an update, or the initializer of a variable, gets of an edge: what came of all workers'. */
struct edge replicate_reduced(struct replicator *r, const struct node *reader, struct edge edge)
{
    enum reduced_for use = replicate_is_initializer(r, reader) ? FOR_INITIAL : FOR_UPDATES;
    bool wants = use == FOR_INITIAL || has(r, reader->id, FACT_UPDATE);
    int i = wants && edge_exists(edge) ? replicate_at(r, BY_REDUCED, edge) : -1;
    for (; i >= 0; i = next_reduced(r, i))
        if (r->reduced.items[i].use == use)
            return r->reduced.items[i].value;
    return (struct edge){edge_exists(edge) ? r->copy[edge.node] : -1, edge.slot};
}

/* ---- values that are reduced together, by one node ---- */

int replicate_reduce(struct replicator *r, const char *name, struct bucket *bucket)
{
    size_t n = bucket->values.n;
    struct edge *inputs = arena_array(&r->arena, n + 1, sizeof *inputs);
    const char **reductions = arena_array(&r->arena, n + 1, sizeof *reductions);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = bucket->values.items[i].value;
        reductions[i] = bucket->values.items[i].reduction;
    }
    struct attr attrs[3] = {
        {"reductions", {.kind = ATTR_LIST_STRING, .n = (int)n, .strings = reductions}}};
    bool is_initial = n && bucket->values.items[0].use == FOR_INITIAL;
    int n_attrs = 1 + (n && !is_initial ? replicate_schedule_attrs(r, attrs + 1) : 0);
    int node =
        n ? replicate_node(r, "AllReduce", inputs, (int)n, attrs, n_attrs, "%s", name).node : -1;
    for (size_t i = 0; node >= 0 && i < n; i++) {
        const struct bucket_value *value = &bucket->values.items[i];
        replicate_note_reduced(
            r, (struct reduced){value->edge, {node, (int)i}, value->use, value->reduction, 0});
    }
    if (node >= 0) {
        /* Gradients of the step before were checked then. */
        bool waits = bucket->values.items[0].use != FOR_INITIAL;
        for (size_t i = 0; i < bucket->values.n && waits && r->options->delay; i++)
            waits = bucket->values.items[i].use == FOR_UPDATES;
        if (waits) {
            for (size_t i = 0; i < r->from->nodes.n; i++)
                if (has(r, (int)i, FACT_CONTROLS) && !has(r, (int)i, FACT_AFTER))
                    graph_add_control(r->to, graph_node(r->to, node), r->copy[i]);
        }
    }
    if (node >= 0) {
        /* Where what was lost is kept: initial values are not of a step, and a step that codes has
         * no whole gradients. */
        enum reduced_for use = bucket->values.items[0].use;
        if (use != FOR_INITIAL && use != FOR_WARM_UP)
            vec_push_in(&r->arena, &r->exchanges, node);
    }
    if (node >= 0)
        replicate_hurry(r, node, bucket->priority);
    bucket->values.n = 0;
    bucket->bytes = bucket->priority = 0;
    return r->err->code;
}

void replicate_put(struct replicator *r, struct bucket *bucket, struct bucket_value value)
{
    vec_push_in(&r->arena, &bucket->values, value);
    /* Bytes are those of the worker's value; an unknown number of rows counts as assumed. */
    const struct node_output *output =
        &graph_node(r->to, value.value.node)->outputs[value.value.slot];
    struct shape shape = output->shape;
    if (shape.rank > 0 && shape.dims[0] < 0)
        shape.dims[0] = r->options->assume;
    int64_t bytes = shape_bytes(&shape, output->type);
    bucket->bytes += bytes > 0 ? bytes : 0;
}
