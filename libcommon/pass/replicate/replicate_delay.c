/* SPDX-License-Identifier: Apache-2.0
 *
 * Double buffering: a step exchanges the gradients of the step before, which each worker has kept,
 * while it computes its own. Updates are a step late (Seide et al., Interspeech 2014, section 3.3),
 * and the first one is by zeros. What is kept is in checkpoints.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

/* Rows of tables have no shape to be kept in, and what is no gradient belongs to its step. */
bool replicate_is_delayed(const struct replicator *r, struct edge edge)
{
    const struct node *node = graph_node(r->from, edge.node);
    return r->options->delay && has(r, edge.node, FACT_MARKED) && !*replicate_role(node) &&
           shape_is_known(&node->outputs[edge.slot].shape);
}

void replicate_begin_delay(struct replicator *r)
{
    node_list controls = VEC_INIT;
    for (size_t i = 0; r->options->delay && i < r->from->nodes.n; i++)
        if (r->copy[i] >= 0 && has(r, (int)i, FACT_MARKED | FACT_CONTROLS) &&
            !has(r, (int)i, FACT_AFTER))
            vec_push_in(&r->arena, &controls, r->copy[i]);
    if (r->options->delay)
        r->computed =
            replicate_after(r, "NoOp", WORKER_DEVICE, &controls, ALLREDUCE_SCOPE "computed");
}

struct edge replicate_exchanged(struct replicator *r, struct edge edge)
{
    if (!replicate_is_delayed(r, edge))
        return replicate_crossing(r, edge);
    const struct node *gradient = graph_node(r->from, edge.node);
    /* The variable; nothing of what checkpoints have of it is lost with other numbers of
     * workers. */
    const struct node_output *output = &gradient->outputs[edge.slot];
    const struct attr mark = {PER_WORKER, attr_string(PER_WORKER_SUM)};
    const char *name = replicate_text(r, gradient->name, "kept");
    struct edge kept = replicate_variable(r, &mark, name, output->type, &output->shape);
    replicate_assign(r, &r->inits, kept, replicate_zeros(r, name, output->type, &output->shape),
                     "%s/Assign", name);
    vec_push_in(&r->arena, &r->delayed, ((struct delayed_gradient){edge, kept}));
    return replicate_op(r, "Identity", kept, EDGE_NONE, "%s/before", gradient->name);
}

struct edge replicate_settled(struct replicator *r, struct edge value)
{
    const struct node_spec spec = {.op = "Identity",
                                   .inputs = &value,
                                   .n_inputs = 1,
                                   .controls = &r->computed,
                                   .n_controls = 1};
    return replicate_add(r, spec, ALLREDUCE_SCOPE "settled");
}

/* When all have what was kept. */
void replicate_end_delay(struct replicator *r)
{
    for (size_t i = 0; i < r->delayed.n && !r->err->code; i++) {
        const struct delayed_gradient *delayed = &r->delayed.items[i];
        struct edge keeps =
            replicate_assign(r, &r->ends, delayed->kept, replicate_edge(r, delayed->gradient),
                             "%s/keep", replicate_edge_name(r, delayed->gradient));
        for (size_t k = 0; k < r->exchanges.n; k++)
            replicate_wait(r, keeps, r->exchanges.items[k]);
    }
}
