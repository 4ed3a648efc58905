/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a model is there in each pass. With update=pass dense layers are updated after each pass,
 * by the gradients of its rows: what updates them is in passes as well, and what a pass reads of
 * their variables is what the one before has left.
 */
#include "graph/access_nodes.h"
#include "graph/walk.h"
#include "pass/dense/dense_private.h"
#include "pass/part/part.h"

/* ---- what updates layers ---- */

/* The owners of the gradients that a node depends on. */
enum { OF_LAYERS = 1, OF_OTHERS = 2 };

/* The variable that a node has itself, as its i-th input; NULL: that is another one. */
static const struct node *written_by(const struct passes *p, const struct node *node, int i)
{
    const struct node *from = graph_node(p->c->from, node->inputs[i].node);
    return node_takes_ref(node, i) && node_is(from, "Variable") ? from : NULL;
}

/* Nodes that updates wait for belong to their pass: checks of the loss come to it this way. */
static int find_checks(struct passes *p)
{
    bool *depends = arena_array(&p->c->arena, p->c->from->nodes.n + 1, sizeof *depends);
    graph_each_ordered(node, p->c->from, p->c->order) {
        depends[node->id] = p->is_in[node->id];
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            depends[node->id] |= depends[node_dependency(node, k).node];
    }

    graph_each(node, p->c->from) {
        for (int k = 0; p->is_update[node->id] && k < node->n_controls; k++) {
            const struct node *before = graph_node(p->c->from, node->controls[k]);
            if (p->is_in[before->id] || p->is_update[before->id] || !depends[before->id])
                continue;
            if (!node_has(before, OP_CHECKS) || !p->is_in[before->inputs[0].node])
                return dense_refuse(p->c, before,
                                    "the update of a dense layer waits for it, and it comes of "
                                    "all passes: with update=pass that cannot be");
            p->is_in[before->id] = true;
        }
    }
    return 0;
}

static int find_updates(struct passes *p)
{
    size_t n = p->c->from->nodes.n;
    unsigned char *of = arena_alloc(&p->c->arena, n + 1);
    graph_each_ordered(node, p->c->from, p->c->order) {
        const struct attr_value *mark = node_attr(node, "_gradient");
        const struct node *variable = mark ? graph_find(p->c->from, mark->s) : NULL;
        if (mark)
            of[node->id] = variable && p->c->cut[variable->id] >= 0 ? OF_LAYERS : OF_OTHERS;
        for (int k = 0; !mark && k < node->n_inputs; k++)
            of[node->id] |= of[node->inputs[k].node];
    }
    /* These nodes change a layer's variable, by its gradient. */
    graph_each(node, p->c->from) {
        for (int k = 0; k < node->n_inputs && of[node->id] & OF_LAYERS; k++) {
            const struct node *variable = written_by(p, node, k);
            if (!variable || p->c->cut[variable->id] < 0)
                continue;
            if (of[node->id] & OF_OTHERS)
                return dense_refuse(p->c, node,
                                    "gradients of what is not in passes change it, too, as by a "
                                    "norm of all: with update=pass that cannot be");
            p->is_update[node->id] = p->is_writer[node->id] = p->is_written[variable->id] = true;
        }
    }
    /* And these are needed by them, of what depends on gradients. */
    for (size_t i = p->c->from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(p->c->from, p->c->order[i]);
        for (int k = 0; p->is_update[node->id] && k < node->n_inputs; k++)
            if (of[node->inputs[k].node])
                p->is_update[node->inputs[k].node] = true;
    }
    if (find_checks(p))
        return p->c->err->code;
    graph_each_ordered(node, p->c->from, p->c->order) {
        for (int k = 0; k < node->n_inputs && !p->is_update[node->id]; k++)
            p->reads[node->id] |=
                p->reads[node->inputs[k].node] || p->is_written[node->inputs[k].node];
    }
    for (size_t i = 0; i < n; i++)
        p->is_in[i] |= p->is_update[i];
    return 0;
}

/* ---- who would train ---- */

static int check_entries(struct passes *p)
{
    vec_each(entry, &p->c->from->entries) {
        struct graph_walk walk = graph_walk_new(&p->c->arena, p->c->from);
        graph_walk_entry(&walk, entry);
        const bool *needed = graph_walk_end(&walk, p->c->from);
        bool reads = false, trains = false;
        for (size_t i = 0; i < p->c->from->nodes.n; i++) {
            reads |= needed[i] && p->is_in[i] && p->reads[i];
            trains |= needed[i] && p->is_writer[i];
        }
        if (reads && !trains)
            return error_set(p->c->err, ERR_DATA,
                             "entry '%s' goes through dense layers, which with update=pass it "
                             "would train: keep it in a graph of its own",
                             entry->name);
    }
    return 0;
}

/* ---- what is in passes ---- */

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
    graph_each_ordered(node, c->from, c->order) {
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
    if (c->options->update_each && find_updates(p))
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
    if (c->options->update_each && check_entries(p))
        return c->err->code;
    graph_each_ordered(node, c->from, c->order) {
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

/* ---- the order ---- */

static void read_after(struct passes *p, const struct node *writer, const struct node *variable)
{
    graph_each(node, p->c->from) {
        bool reads = false;
        for (int k = 0; p->is_in[node->id] && !p->is_update[node->id] && k < node->n_inputs; k++)
            reads |= node->inputs[k].node == variable->id;
        for (int k = 1; reads && k < p->n; k++)
            graph_add_control(p->c->to, graph_node(p->c->to, p->first[node->id] + k),
                              p->first[writer->id] + k - 1);
    }
}

void dense_order_updates(struct passes *p)
{
    graph_each(node, p->c->from) {
        for (int k = 0; p->is_writer[node->id] && k < node->n_inputs; k++)
            if (written_by(p, node, k))
                read_after(p, node, written_by(p, node, k));
    }
}
