/* SPDX-License-Identifier: Apache-2.0
 *
 * In which form a node of the source computes its result, and of what.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "pass/dense/dense_private.h"
#include "pass/part/part.h"

struct dense_layout dense_whole(const struct dense_cutter *c, struct edge edge)
{
    bool rows = dense_is_rows(c, edge);
    return (struct dense_layout){rows ? DENSE_ALL : DENSE_SAME, 0};
}

/* Whether, of the workers' together, it is given rows of what is behind the last layer, which each
 * worker has its own of for the loss: it is where errors come from, and these are of own rows. */
static bool is_of_results(const struct dense_cutter *c, const struct node *node)
{
    bool is = false;
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge edge = node->inputs[i];
        if (!edge_exists(edge) || !c->r.after[edge.node])
            return false;
        enum dense_form form = dense_layout_of(c, edge).form;
        if (form == DENSE_OWN || form == DENSE_SAME || !dense_is_rows(c, edge))
            continue;
        if (dense_has(c, edge.node, DENSE_GRADIENT | DENSE_BEFORE))
            return false;
        is = true;
    }
    return is;
}

bool dense_is_inner(const struct dense_cutter *c, const struct node *node)
{
    bool between =
        dense_has(c, node->id, DENSE_BEFORE) && dense_has(c, node->id, DENSE_BEHIND | DENSE_LAYER);
    bool back = dense_has(c, node->id, DENSE_GRADIENT) && dense_has(c, node->id, DENSE_BACK) &&
                !is_of_results(c, node);
    return between || back;
}

/* The inputs that a node is given. */
struct dense_inputs {
    bool own, dense, rows; /* each worker's own; the workers' together, and that of rows */
};

static void take_as_is(const struct dense_cutter *c, const struct node *node,
                       struct dense_rule *rule)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (edge_exists(node->inputs[i]))
            rule->inputs[i] = dense_layout_of(c, node->inputs[i]);
}

/* ---- variables and what changes them ---- */

static int rule_of_writer(struct dense_cutter *c, const struct node *node, int reference,
                          struct dense_rule *rule)
{
    struct dense_layout whole = dense_layout_of(c, node->inputs[reference]);
    const struct shape *shape = &dense_output(c, node->inputs[reference])->shape;
    take_as_is(c, node, rule);
    rule->output = node_rows(node) == ROWS_ASK ? (struct dense_layout){DENSE_SAME, 0} : whole;
    if (whole.form == DENSE_CUT && node_rows(node) != ROWS_UPDATE && node_rows(node) != ROWS_ASK)
        return dense_refuse(c, node, "it needs a variable whole, of which each worker has a part");
    for (int i = 0; i < node->n_inputs; i++) {
        enum dense_form form = rule->inputs[i].form;
        const struct shape *own = &dense_output(c, node->inputs[i])->shape;
        if (node_takes_ref(node, i) && !layout_equal(rule->inputs[i], whole))
            return dense_refuse(c, node, "it has variables of which only some are cut");
        if (node_takes_ref(node, i))
            continue;
        if (whole.form == DENSE_CUT && own->rank && shape_compatible(own, shape))
            rule->inputs[i] = whole;
        else if (whole.form == DENSE_CUT && own->rank)
            return dense_refuse(c, node, "it changes a part by what has another shape");
        else if (form != DENSE_OWN)
            rule->inputs[i] = (struct dense_layout){DENSE_SAME, 0};
    }
    return 0;
}

/* ---- others ---- */

static int rule_of_others(struct dense_cutter *c, const struct node *node,
                          struct dense_inputs given, struct dense_rule *rule)
{
    bool inner = dense_is_inner(c, node);
    bool own = !inner && (given.own || given.rows);
    if (!own && node_has(node, OP_CONTROL_FLOW))
        return dense_refuse(c, node,
                            "control flow between dense layers cannot be cut over workers");
    if (!own && node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))
        return dense_refuse(c, node,
                            "it has a state, and would be given what workers have parts of");
    for (int i = 0; i < node->n_inputs; i++)
        rule->inputs[i] = (struct dense_layout){own ? DENSE_OWN : DENSE_ALL, 0};
    rule->output = own               ? (struct dense_layout){DENSE_OWN, 0}
                   : node->n_outputs ? dense_whole(c, (struct edge){node->id, 0})
                                     : (struct dense_layout){DENSE_SAME, 0};
    return 0;
}

int dense_rule(struct dense_cutter *c, const struct node *node, struct dense_rule *rule)
{
    struct dense_inputs given = {false, false, false};
    for (int i = 0; i < node->n_inputs; i++) {
        if (!edge_exists(node->inputs[i]) || !c->r.after[node->inputs[i].node]) {
            given.own = true; /* comes back in a loop */
            continue;
        }
        enum dense_form form = dense_layout_of(c, node->inputs[i]).form;
        bool shared = form != DENSE_OWN && form != DENSE_SAME;
        given.own |= form == DENSE_OWN;
        given.dense |= shared;
        given.rows |= shared && dense_is_rows(c, node->inputs[i]);
    }
    const struct attr_value *mark = node_attr(node, "_gradient");
    /* The input that is a variable which the node changes, or asks about. */
    int reference = -1, code;
    for (int i = 0; i < node->n_inputs && reference < 0; i++)
        if (edge_exists(node->inputs[i]) && node_takes_ref(node, i) &&
            dense_output(c, node->inputs[i])->is_ref)
            reference = i;
    if (node_is(node, "Variable")) {
        int axis = c->cut[node->id];
        rule->output =
            (struct dense_layout){axis < 0 ? DENSE_SAME : DENSE_CUT, axis < 0 ? 0 : axis};
        code = 0;
    } else if (mark) {
        /* The gradient of a variable that is not cut is reduced, and then the same on all
         * workers. */
        const struct node *variable = graph_find(c->from, mark->s);
        int axis = variable ? c->cut[variable->id] : -1;
        struct dense_layout in = dense_layout_of(c, node->inputs[0]);
        rule->output =
            (struct dense_layout){axis < 0 ? DENSE_SAME : DENSE_CUT, axis < 0 ? 0 : axis};
        rule->inputs[0] = axis < 0 && in.form == DENSE_OWN ? in : rule->output;
        code = 0;
    } else if (reference >= 0 && node_rows(node) != ROWS_ALIKE)
        code = rule_of_writer(c, node, reference, rule);
    else if (!given.dense) {
        /* Nothing that it is made of is shared by the workers. */
        bool own = given.own || node_has(node, OP_FED | OP_SOURCE | OP_STATEFUL | OP_RANDOM) ||
                   node_makes_resource(node);
        if (node_has(node, OP_RANDOM) && !given.own && dense_has(c, node->id, DENSE_BEFORE))
            own = false; /* the same noise for all rows */
        take_as_is(c, node, rule);
        rule->output = (struct dense_layout){own ? DENSE_OWN : DENSE_SAME, 0};
        code = 0;
    } else if (dense_rule_product(c, node, rule) || dense_rule_alike(c, node, rule) ||
               dense_rule_sums(c, node, rule) || dense_rule_shape(c, node, rule))
        code = 0;
    else
        code = rule_of_others(c, node, given, rule);
    if (code)
        return code;
    /* Only the first dimension is of rows. */
    bool dense = rule->output.form != DENSE_OWN && dense_is_inner(c, node);
    for (int i = 0; dense && i < node->n_outputs; i++)
        for (int k = 1; k < node->outputs[i].shape.rank; k++)
            if (node->outputs[i].shape.dims[k] == SHAPE_UNKNOWN)
                return dense_refuse(c, node,
                                    "of what is between dense layers only the first dimension, "
                                    "that of rows, may be open");
    return c->err->code;
}
