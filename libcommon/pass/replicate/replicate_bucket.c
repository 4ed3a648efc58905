/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are reduced together, by one node.
 */
#include "pass/replicate/replicate_private.h"

static void add_controls(struct replicator *r, struct node *node)
{
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, (int)i, FACT_CONTROLS) && !has(r, (int)i, FACT_AFTER))
            graph_add_control(r->to, node, r->copy[i]);
}

/* What the step before has computed was checked then. */
static bool waits_for_checks(const struct replicator *r, const struct bucket *bucket)
{
    bool waits = bucket->values.items[0].use != FOR_INITIAL;
    for (size_t i = 0; i < bucket->values.n && waits && r->options->delays; i++)
        waits = bucket->values.items[i].use == FOR_UPDATES;
    return waits;
}

/* Where what was lost is kept: initial values are not of a step, and a step that codes has no whole
 * gradients. */
static bool is_left_out(const struct bucket *bucket)
{
    enum reduced_for use = bucket->values.items[0].use;
    return use == FOR_INITIAL || use == FOR_WARM_UP;
}

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
    struct node_spec spec = {.op = "AllReduce",
                             .inputs = inputs,
                             .n_inputs = (int)n,
                             .attrs = attrs,
                             .n_attrs = n_attrs};
    int node = n && !r->err->code ? replicate_add(r, WORKER_DEVICE, name, &spec) : -1;
    for (size_t i = 0; node >= 0 && i < n; i++) {
        const struct bucket_value *value = &bucket->values.items[i];
        replicate_note_reduced(
            r, (struct reduced){value->edge, {node, (int)i}, value->use, value->reduction, 0});
    }
    if (node >= 0 && waits_for_checks(r, bucket))
        add_controls(r, graph_node(r->to, node));
    if (node >= 0 && !is_left_out(bucket))
        vec_push(&r->exchanges, node);
    if (node >= 0)
        replicate_hurry(r, node, bucket->priority);
    bucket->values.n = 0;
    bucket->bytes = bucket->priority = 0;
    return r->err->code;
}

/* What the worker has; an unknown number of rows counts as assumed. */
static int64_t bytes_of(const struct replicator *r, struct edge value)
{
    const struct node_output *output = &graph_node(r->to, value.node)->outputs[value.slot];
    struct shape shape = output->shape;
    if (shape.rank > 0 && shape.dims[0] < 0)
        shape.dims[0] = r->options->assume;
    int64_t bytes = shape_bytes(&shape, output->type);
    return bytes > 0 ? bytes : 0;
}

void replicate_put(struct replicator *r, struct bucket *bucket, struct bucket_value value)
{
    vec_push(&bucket->values, value);
    bucket->bytes += bytes_of(r, value.value);
}
