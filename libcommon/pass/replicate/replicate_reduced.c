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
        const struct reduced_value *reduced = &r->reduced.items[i];
        if (reduced->use == use && !strcmp(reduced->reduction, reduction))
            return reduced->value;
    }
    return EDGE_NONE;
}

/* The first of an edge for one use and reduction stays. */
void replicate_note_reduced(struct replicator *r, struct reduced_value reduced)
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

/* A node that takes a worker's part of an initial value counts as one, too. */
bool replicate_is_initializer(const struct replicator *r, const struct node *node)
{
    return node_attr(node, WORKER_PART_INITIAL) || has(r, node->id, FACT_FIRST);
}

/* The edge for an update, or a variable's initializer: the reduced value of all workers. */
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
    const struct bucket_value *values = bucket->values.items;
    size_t n = bucket->values.n;
    int priority = bucket->priority;
    bucket->values.n = 0;
    bucket->bytes = bucket->priority = 0;
    if (!n || r->err->code)
        return r->err->code;
    enum reduced_for use = values->use;
    struct edge *inputs = arena_array(&r->arena, n, sizeof *inputs);
    const char **reductions = arena_array(&r->arena, n, sizeof *reductions);
    for (size_t i = 0; i < n; i++) {
        inputs[i] = values[i].value;
        reductions[i] = values[i].reduction;
    }
    struct attr attrs[3] = {
        {"reductions", {.kind = ATTR_LIST_STRING, .n = (int)n, .strings = reductions}}};
    int n_attrs = 1 + (use == FOR_INITIAL ? 0 : replicate_schedule_attrs(r, attrs + 1));
    struct edge made = replicate_node(r, "AllReduce", inputs, (int)n, attrs, n_attrs, "%s", name);
    if (r->err->code)
        return r->err->code;
    for (size_t i = 0; i < n; i++)
        replicate_note_reduced(r, (struct reduced_value){values[i].edge, build_slot(made, (int)i),
                                                         values[i].use, values[i].reduction, 0});
    /* Some values wait for no checks: initial values, which are not of a step, and gradients of the
     * step before, which were checked then. */
    bool waits = use != FOR_INITIAL;
    for (size_t i = 0; i < n && waits && r->options->delay; i++)
        waits = values[i].use == FOR_UPDATES;
    for (size_t i = 0; i < r->from->nodes.n && waits; i++)
        if (has(r, (int)i, FACT_CONTROLS) && !has(r, (int)i, FACT_AFTER))
            replicate_wait(r, made, r->copy[i]);
    /* Where what was lost is kept: a step that codes has no whole gradients. */
    if (use != FOR_INITIAL && use != FOR_WARM_UP)
        vec_push_in(&r->arena, &r->exchanges, made.node);
    return replicate_hurry(r, made.node, priority);
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
