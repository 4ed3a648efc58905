/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a model is there in each pass.
 */
#include "pass/dense/dense_private.h"

/* The errors that a layer hands on to what is in front of all of them. */
static bool is_last(const struct dense_cutter *c, const struct node *node)
{
    bool part = false;
    for (int i = 0; node->op->def->product && i < node->n_inputs; i++) {
        const struct node *variable = dense_variable(c, node->inputs[i]);
        part |= variable && c->cut[variable->id] >= 0;
    }
    return part && dense_has(c, node->id, DENSE_GRADIENT) && !dense_has(c, node->id, DENSE_BACK);
}

int dense_find_passes(struct passes *p)
{
    struct dense_cutter *c = p->c;
    /* Down from layers, and from where gradients begin. */
    bool *ended = arena_array(&c->arena, c->from->nodes.n + 1, sizeof *ended);
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        const struct node *node = graph_node(c->from, c->order[i]);
        bool in = dense_has(c, node->id, DENSE_LAYER) || node_attr(node, "_loss");
        for (int k = 0; k < node->n_inputs; k++) {
            int from = node->inputs[k].node;
            in |= p->is_in[from];
            ended[node->id] |=
                ended[from] || (p->is_in[from] && is_last(c, graph_node(c->from, from)));
        }
        ended[node->id] |= node_has(node, OP_CHECKS) || node_attr(node, "_gradient");
        p->is_in[node->id] = in && !ended[node->id];
    }
    if (c->options->update_each && dense_find_updates(p))
        return c->err->code;
    /* Each pass has its own of what is made of rows, as a shape is, and of what it reads of a
     * variable that passes change. */
    for (size_t i = c->from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(c->from, c->order[i]);
        for (int k = 0; p->is_in[node->id] && k < node->n_inputs; k++) {
            const struct node *from = graph_node(c->from, node->inputs[k].node);
            bool of_pass = p->reads[from->id];
            for (int j = 0; j < from->n_inputs; j++)
                of_pass |= dense_is_rows(c, from->inputs[j]);
            p->is_in[from->id] |= of_pass && !dense_is_rows(c, node->inputs[k]);
        }
    }
    if (c->options->update_each && dense_check_entries(p))
        return c->err->code;
    for (size_t i = 0; i < c->from->nodes.n; i++) {
        const struct node *node = graph_node(c->from, c->order[i]);
        if (p->is_in[node->id] && !p->is_update[node->id] &&
            (node_has(node, OP_CONTROL_FLOW) ||
             (node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))))
            return dense_refuse(c, node,
                                "it has a state, or is control flow, and would be run in "
                                "each pass");
        if (!edge_exists(p->reference) && dense_has(c, node->id, DENSE_LAYER))
            p->reference = node->inputs[0];
    }
    return 0;
}
