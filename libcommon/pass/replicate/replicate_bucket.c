/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are reduced together, by one node.
 */
#include "pass/replicate/replicate_private.h"

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
        n ? replicate_node(r, "AllReduce",
                           (struct node_parts){inputs, (int)n, attrs, n_attrs, NULL}, "%s", name)
                .node
          : -1;
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
            vec_push(&r->exchanges, node);
    }
    if (node >= 0)
        replicate_hurry(r, node, bucket->priority);
    bucket->values.n = 0;
    bucket->bytes = bucket->priority = 0;
    return r->err->code;
}

void replicate_put(struct replicator *r, struct bucket *bucket, struct bucket_value value)
{
    vec_push(&bucket->values, value);
    /* Bytes are those of the worker's value; an unknown number of rows counts as assumed. */
    const struct node_output *output =
        &graph_node(r->to, value.value.node)->outputs[value.value.slot];
    struct shape shape = output->shape;
    if (shape.rank > 0 && shape.dims[0] < 0)
        shape.dims[0] = r->options->assume;
    int64_t bytes = shape_bytes(&shape, output->type);
    bucket->bytes += bytes > 0 ? bytes : 0;
}
