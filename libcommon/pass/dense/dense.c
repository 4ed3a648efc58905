/* SPDX-License-Identifier: Apache-2.0
 *
 * Which products are dense layers, which variables are cut with them, and along which axis; and the
 * graph in which they are, or are in passes.
 */
#include "pass/dense/dense.h"

#include <string.h>

#include "base/vec.h"
#include "graph/access_nodes.h"
#include "graph/frames.h"
#include "graph/index_rule.h"
#include "graph/walk.h"
#include "graph/worker_attr.h"
#include "pass/cut.h"

/* The layout of a value: a form, or the axis along which it is cut. DENSE_SAME is -1, so that
 * variables that are not cut have it at first. */
enum dense_form { DENSE_OWN = -4, DENSE_ALL, DENSE_SUM, DENSE_SAME };

enum dense_fact {
    DENSE_GRADIENT = 1 << 0, /* depends on where back-propagation begins */
    DENSE_BEHIND = 1 << 1,   /* depends on a layer's product */
    DENSE_BEFORE = 1 << 2,   /* a layer's product depends on it */
    DENSE_BACK = 1 << 3,     /* a gradient of a variable that is cut depends on it */
    DENSE_LAYER = 1 << 4,    /* a layer's product */
    DENSE_INITIAL = 1 << 5,  /* gives a variable its initial value */

    /* Of several passes. */
    DENSE_IN = 1 << 6,             /* it is there in each pass */
    DENSE_LAST = 1 << 7,           /* the errors that layers hand on */
    DENSE_ENDED = 1 << 8,          /* no longer in a pass, as it is behind those */
    DENSE_HANDED_OVER = 1 << 9,    /* a variable's gradient */
    DENSE_OF_LAYERS = 1 << 10,     /* depends on gradients of layers, */
    DENSE_OF_OTHERS = 1 << 11,     /* of others */
    DENSE_UPDATE = 1 << 12,        /* changes layers' variables in each pass, or is for that */
    DENSE_WRITER = 1 << 13,        /* changes them itself */
    DENSE_WRITTEN = 1 << 14,       /* a variable that passes change */
    DENSE_READS = 1 << 15,         /* depends on the value of one */
    DENSE_COMES_OF_PASS = 1 << 16, /* waits for some pass */
};

/* A value of the source in a layout that is not its node's; of passes, in pass number `layout`. */
struct conversion {
    struct edge edge, result;
    int layout;
};

struct dense_cutter {
    struct rewrite r;
    const struct dense_options *options;
    unsigned *facts; /* by node */
    int *cut;        /* by variable: its layout; DENSE_SAME: it is whole */
    int *layouts;    /* by node, of all outputs */
    VEC(struct conversion) converted;
    struct edge *rows;     /* by pass, of the source: the first value whose rows came together */
    struct edge reference; /* of the source: the rows of which shares are meant */
    int *first;            /* by node in passes: its copy in the first; the others follow */
    struct build b;
    int32_t priority; /* of the collectives that are added: that of the value which crosses */
};

/* int, of a node that is there in each pass: which one it is of. */
#define DENSE_PASS "_pass"

static bool dense_has(const struct dense_cutter *c, int node, unsigned facts)
{
    return (c->facts[node] & facts) != 0;
}

/* Returns whether it has a row for each of the batch: its first dimension is open. */
static bool dense_is_rows(const struct dense_cutter *c, struct edge edge)
{
    const struct shape *shape = &graph_output(c->r.from, edge)->shape;
    return shape->rank > 0 && shape->dims[0] == SHAPE_UNKNOWN;
}

static int dense_pass(const struct node *node)
{
    return node_attr(node, DENSE_PASS) ? (int)node_int(node, DENSE_PASS) : 0;
}

/* ---- values in other forms ----
 *
 * Gradients are those of the mean of all workers' losses where workers compute together, and of the
 * worker's own loss where it is alone: from the one to the other they are divided by the number of
 * workers, or multiplied. */

static int dense_refuse(struct dense_cutter *c, const struct node *node, const char *why)
{
    return c->r.err->code ? c->r.err->code : node_refuse(node, c->r.err, "%s", why);
}

/* ---- collectives ---- */

static struct edge collective_add(struct dense_cutter *c, const char *op, const struct edge *inputs,
                                  int n_inputs, const struct attr *more)
{
    struct attr attrs[4] = {{ALL_WORKERS, attr_bool(true)}};
    int n = 1;
    for (; more && more[n - 1].name; n++)
        attrs[n] = more[n - 1];
    if (c->priority)
        attrs[n++] = (struct attr){"_priority", attr_int(c->priority)};
    return build_op(&c->b, op, inputs, n_inputs, attrs, n);
}

static struct edge reduce(struct dense_cutter *c, struct edge x, const char *how)
{
    const struct attr attrs[] = {
        {"reductions", {.kind = ATTR_LIST_STRING, .n = 1, .strings = &how}}, {.name = NULL}};
    return collective_add(c, "AllReduce", &x, 1, attrs);
}

/* Swaps an axis with the first one, along which collectives cut. */
static struct edge swapped(struct dense_cutter *c, struct edge x, int rank, int axis)
{
    int64_t order[SHAPE_RANK_MAX];
    for (int i = 0; i < rank; i++)
        order[i] = i == 0 ? axis : i == axis ? 0 : i;
    return axis ? build_binary(&c->b, "Transpose", x, build_ints(&c->b, order, rank)) : x;
}

static struct edge swap_and_add(struct dense_cutter *c, const char *op, struct edge x, int rank,
                                int axis)
{
    struct edge first = swapped(c, x, rank, axis);
    return swapped(c, collective_add(c, op, &first, 1, NULL), rank, axis);
}

/* ---- parts ---- */

/* Where this worker's part of a value of that shape begins, and its size: outputs 0 and 1. */
static struct edge own_part(struct dense_cutter *c, const struct shape *shape, int axis)
{
    const struct attr attrs[] = {{"dim", attr_int(shape->dims[axis])},
                                 {"axis", attr_int(axis)},
                                 {"rank", attr_int(shape->rank)}};
    return build_op(&c->b, "CollectiveSlice", NULL, 0, attrs, 3);
}

static struct edge slice_part(struct dense_cutter *c, struct edge x, const struct shape *shape,
                              int axis, const struct attr *mark)
{
    struct edge part = own_part(c, shape, axis);
    const struct edge inputs[] = {x, build_slot(part, 0), build_slot(part, 1)};
    return build_op(&c->b, "Slice", inputs, 3, mark, mark ? 1 : 0);
}

/* A term of a sum: zeros but for the part. */
static struct edge pad_part(struct dense_cutter *c, struct edge x, const struct shape *shape,
                            int axis)
{
    return build_binary(&c->b, "Pad", x, build_slot(own_part(c, shape, axis), 2));
}

static struct edge dense_row_count(struct build *b, struct edge x)
{
    return build_binary(b, "Gather", build_unary(b, "Shape", x), build_ints(b, (int64_t[]){0}, 1));
}

/* ---- from form to form ---- */

static struct edge to_own(struct dense_cutter *c, struct edge edge, int from)
{
    const struct shape *shape = &graph_output(c->r.from, edge)->shape;
    struct edge x = rewrite_edge(&c->r, edge);
    if (from >= 0)
        x = pad_part(c, x, shape, from);
    /* The shape that the worker's own rows of a value have. */
    struct build *b = &c->b;
    struct edge rows = rewrite_edge(&c->r, c->rows[dense_pass(graph_node(c->r.from, edge.node))]);
    struct edge parts[3] = {build_scalar(b, INT32, 0)};
    parts[1] = dense_row_count(b, rows);
    parts[2] = build_ints(b, shape->dims + 1, shape->rank - 1);
    struct edge all = shape->rank > 1 ? build_op(b, "Concat", parts, 3, NULL, 0) : parts[1];
    /* A sum is cut to the worker's rows; of a value that all have, the first worker's counts. */
    bool sums = from != DENSE_ALL;
    const struct edge inputs[] = {x, build_cast(b, all, INT64)};
    const struct attr attrs[] = {{"reduction", attr_string(sums ? "sum_part" : "part")},
                                 {"root", attr_int(sums ? -1 : 0)},
                                 {.name = NULL}};
    struct edge own = collective_add(c, "CollectiveGrad", inputs, 2, attrs);
    if (!dense_has(c, edge.node, DENSE_GRADIENT))
        return own;
    const struct shape one = shape_vector(1);
    struct edge n = build_slot(own_part(c, &one, 0), 3);
    return build_binary(&c->b, "Mul", own, build_cast(&c->b, n, build_type(&c->b, own)));
}

/* The value of all workers' rows, or the value that all workers have. */
static struct edge to_whole(struct dense_cutter *c, const struct node *reader, struct edge edge,
                            int from)
{
    const struct node_output *output = graph_output(c->r.from, edge);
    struct edge x = rewrite_edge(&c->r, edge);
    if (from == DENSE_SUM)
        return reduce(c, x, "sum");
    if (from >= 0)
        return swap_and_add(c, "CollectiveAllGather", x, output->shape.rank, from);
    if (from != DENSE_OWN)
        return x;
    bool is_mean = dtype_is_floating(output->type);
    if (!dense_is_rows(c, edge))
        return reduce(c, x, is_mean ? "mean" : "first");
    if (dense_has(c, edge.node, DENSE_GRADIENT) && !is_mean) {
        dense_refuse(c, reader, "it is given a gradient that is no float");
        return EDGE_NONE;
    }
    struct edge *rows = &c->rows[dense_pass(graph_node(c->r.from, edge.node))];
    *rows = edge_exists(*rows) ? *rows : edge;
    return dense_has(c, edge.node, DENSE_GRADIENT)
               ? reduce(c, x, "mean_rows")
               : collective_add(c, "CollectiveAllGather", &x, 1, NULL);
}

static struct edge dense_convert(struct dense_cutter *c, const struct node *reader,
                                 struct edge edge, int layout);
static struct edge to_cut(struct dense_cutter *c, const struct node *reader, struct edge edge,
                          int from, int axis)
{
    const struct shape *shape = &graph_output(c->r.from, edge)->shape;
    if (shape->dims[axis] == SHAPE_UNKNOWN) {
        dense_refuse(c, reader, "its input would be cut along an axis whose length is not known");
        return EDGE_NONE;
    }
    if (from == DENSE_SUM)
        return swap_and_add(c, "CollectiveReduceScatter", rewrite_edge(&c->r, edge), shape->rank,
                            axis);
    return slice_part(c, dense_convert(c, reader, edge, DENSE_ALL), shape, axis, NULL);
}

static void dense_begin(struct dense_cutter *c, struct edge edge, const char *scope)
{
    const struct node *node = graph_node(c->r.from, edge.node);
    c->b = rewrite_build(&c->r, node, arena_printf(&c->r.to->arena, "%s/%s", scope, node->name),
                         node->device);
    c->priority = node_priority(node);
}

static struct edge dense_known(const struct dense_cutter *c, struct edge edge, int layout)
{
    vec_each(known, &c->converted) {
        if (edge_equal(known->edge, edge) && known->layout == layout)
            return known->result;
    }
    return EDGE_NONE;
}

static struct edge dense_note(struct dense_cutter *c, struct edge edge, int layout,
                              struct edge result)
{
    vec_push_in(&c->r.arena, &c->converted, ((struct conversion){edge, result, layout}));
    return result;
}

/* Returns the edge of `to` that has the value in that layout; EDGE_NONE once something has failed.
 * In DENSE_OWN a value with rows is this worker's rows, another one DENSE_SAME. Only a cut value
 * becomes DENSE_SUM. */
static struct edge dense_convert(struct dense_cutter *c, const struct node *reader,
                                 struct edge edge, int layout)
{
    int from = c->layouts[edge.node];
    if (layout == DENSE_OWN && !dense_is_rows(c, edge) && from != DENSE_OWN)
        layout = DENSE_SAME;
    if (layout == from || (from == DENSE_SAME && layout < 0) ||
        (layout == DENSE_SAME && from == DENSE_ALL))
        return rewrite_edge(&c->r, edge);
    if (layout == DENSE_SAME)
        layout = DENSE_ALL;
    struct edge result = dense_known(c, edge, layout);
    if (edge_exists(result))
        return result;
    dense_begin(c, edge, "dense");
    if (layout == DENSE_OWN)
        result = to_own(c, edge, from);
    else if (layout >= 0)
        result = to_cut(c, reader, edge, from, layout);
    else if (layout == DENSE_SUM)
        result =
            pad_part(c, rewrite_edge(&c->r, edge), &graph_output(c->r.from, edge)->shape, from);
    else
        result = to_whole(c, reader, edge, from);
    return dense_note(c, edge, layout, result);
}

static const struct node *dense_variable(const struct dense_cutter *c, struct edge edge)
{
    const struct node *node = graph_node(c->r.from, edge.node);
    while (node->op->def->identity.when == SAME_TYPE || node_is(node, "Identity")) {
        if (node_attr(node, "_gradient"))
            return NULL;
        node = graph_node(c->r.from, node->inputs[0].node);
    }
    return node_is(node, "Variable") ? node : NULL;
}

static int dense_axis_of_gradient(const struct dense_cutter *c, const struct node *node)
{
    const struct attr_value *mark = node_attr(node, "_gradient");
    const struct node *variable = mark ? graph_find(c->r.from, mark->s) : NULL;
    return variable ? c->cut[variable->id] : DENSE_SAME;
}

/* ---- layers ---- */

/* Returns whether minimize() has handed over a gradient of all of it. */
static bool is_trained(const struct dense_cutter *c, const struct node *variable)
{
    graph_each(node, c->r.from) {
        const struct attr_value *mark = node_attr(node, "_gradient");
        if (mark && !strcmp(mark->s, variable->name))
            return !node_attr(node, "_gradient_role");
    }
    return false;
}

static bool is_layer(struct dense_cutter *c, const struct node *node)
{
    struct bound_rule bound;
    if (!rule_is_product(node->op) || dense_has(c, node->id, DENSE_GRADIENT) ||
        c->r.frames->frame[node->id] != FRAME_ROOT ||
        c->r.frames->condition[node->id] != CONDITION_NONE)
        return false;
    const struct node *variable = dense_variable(c, node->inputs[1]);
    return variable && rule_bind(c->r.from, node, &bound) && rule_summed(&bound, 0) == 1 &&
           dense_is_rows(c, node->inputs[0]) &&
           graph_output(c->r.from, node->inputs[0])->shape.rank == 2 &&
           shape_is_known(&variable->outputs[0].shape) && is_trained(c, variable);
}

static void set_cut(struct dense_cutter *c, const struct node *variable, int axis)
{
    bool is_new = c->cut[variable->id] < 0;
    c->cut[variable->id] = axis;
    if (is_new)
        rewrite_note(&c->r, variable->name,
                     axis ? "each worker has columns" : "each worker has rows");
}

/* ---- what goes with them ---- */

/* A vector all of whose readers are between layers. */
static bool is_vector_between(const struct dense_cutter *c, const struct node *variable)
{
    int n = 0;
    if (!node_is(variable, "Variable") || variable->outputs[0].shape.rank != 1 ||
        !is_trained(c, variable))
        return false;
    graph_each(node, c->r.from) {
        for (int k = 0; k < node->n_inputs; k++) {
            if (dense_variable(c, node->inputs[k]) != variable || node_takes_ref(node, k) ||
                dense_has(c, node->id, DENSE_GRADIENT) ||
                dense_variable(c, (struct edge){node->id, 0}))
                continue;
            /* Between layers, and element by element along the last axis: it is cut as what is
             * there. */
            struct bound_rule bound;
            if (!dense_has(c, node->id, DENSE_BEFORE) || !dense_has(c, node->id, DENSE_BEHIND) ||
                !rule_bind(c->r.from, node, &bound) || node->outputs[0].shape.rank != 2 ||
                node->outputs[0].shape.dims[0] != SHAPE_UNKNOWN ||
                rule_dimension(&bound, RULE_RESULT, rule_axis(&bound, k, 0)) != 1)
                return false;
            n++;
        }
    }
    return n > 0;
}

static void cut_like(struct dense_cutter *c, const struct node *slot, const struct node *variable)
{
    if (slot && variable && slot != variable && node_is(slot, "Variable") &&
        node_is(variable, "Variable") && c->cut[variable->id] >= 0 && c->cut[slot->id] < 0 &&
        shape_equal(&slot->outputs[0].shape, &variable->outputs[0].shape))
        c->cut[slot->id] = c->cut[variable->id];
}

/* Layers, what is cut with them, facts. */
static int find_layers(struct dense_cutter *c)
{
    const struct entry *init = graph_entry(c->r.from, "init");
    graph_each(node, c->r.from) {
        c->facts[node->id] |= node_attr(node, "_loss") ? DENSE_GRADIENT : 0;
    }
    for (int i = 0; init && i < init->n_edges; i++)
        if (node_has(graph_node(c->r.from, init->edges[i].node), OP_OVERWRITES))
            c->facts[init->edges[i].node] |= DENSE_INITIAL;
    spread_facts(c->r.from, c->r.order, c->facts, (struct spread){.fact = DENSE_GRADIENT});
    bool found = false;
    int *n = arena_array(&c->r.arena, c->r.from->nodes.n + 1, sizeof *n);
    if (frames_new(c->r.from, &c->r.frames, c->r.err))
        return c->r.err->code;
    /* One pass finds them. A matrix with two layers, as of a recurrent network, stays whole. */
    graph_each(node, c->r.from) {
        if (is_layer(c, node) && !dense_pass(node))
            n[dense_variable(c, node->inputs[1])->id]++;
    }
    graph_each(node, c->r.from) {
        bool is = is_layer(c, node) && n[dense_variable(c, node->inputs[1])->id] == 1;
        c->facts[node->id] |= is ? DENSE_LAYER : 0;
        found |= is;
    }
    const struct spread behind = {DENSE_LAYER, DENSE_BEHIND, .unless = DENSE_GRADIENT};
    const struct spread before = {DENSE_LAYER, DENSE_BEFORE, .up = true};
    spread_facts(c->r.from, c->r.order, c->facts, behind);
    spread_facts(c->r.from, c->r.order, c->facts, before);
    if (!found)
        return error_set(c->r.err, ERR_DATA,
                         "there is no dense layer: no product of rows of the batch, whose "
                         "first dimension is open (-1), and a matrix that is trained");
    /* Columns of the first, of those behind it the rows that belong to the columns before. */
    graph_each_ordered(node, c->r.from, c->r.order) {
        struct bound_rule bound;
        if (!dense_has(c, node->id, DENSE_LAYER) || !rule_bind(c->r.from, node, &bound))
            continue;
        bool follows = dense_has(c, node->inputs[0].node, DENSE_BEHIND | DENSE_LAYER);
        int summed = rule_summed(&bound, 1);
        set_cut(c, dense_variable(c, node->inputs[1]), follows ? summed : 1 - summed);
    }
    graph_each(node, c->r.from) {
        if (is_vector_between(c, node))
            set_cut(c, node, 0);
    }
    /* Slots of optimizers, which are updated with the variable, or are in its group. */
    graph_each(node, c->r.from) {
        if (node_is(node, "Variable"))
            cut_like(c, node, group_first_leader(c->r.from, node));
        for (int k = 1; k < node->n_inputs && node_rows(node) == ROWS_UPDATE; k++)
            if (node_takes_ref(node, k))
                cut_like(c, graph_node(c->r.from, node->inputs[k].node),
                         graph_node(c->r.from, node->inputs[0].node));
    }
    /* From the gradients of what is cut back to where they begin. */
    graph_each(node, c->r.from) {
        c->facts[node->id] |= dense_axis_of_gradient(c, node) >= 0 ? DENSE_BACK : 0;
    }
    spread_facts(c->r.from, c->r.order, c->facts, (struct spread){.fact = DENSE_BACK, .up = true});
    return 0;
}

/* ---- in which form a node computes its result, and of what ---- */

/* The layouts in which a node gets its inputs, at first as these are, and that of its outputs. */
struct dense_rule {
    const struct node *node;
    int *inputs, output;
    int reference; /* the input that is a variable which it changes, or asks about; -1: none */
    bool is_inner;
    bool own, dense, rows, part; /* some input: is DENSE_OWN; is shared by the workers; is shared
                                  * and has rows; is cut along an axis, and has none */
};

/* The layout of a whole value: it depends on whether it has rows. */
static int whole_form(const struct dense_cutter *c, struct edge edge)
{
    return dense_is_rows(c, edge) ? DENSE_ALL : DENSE_SAME;
}

/* Returns whether the node reads values behind the last layer. Each worker has its own rows of
 * these for the loss, and so the errors, which come from there, are of its own rows. */
static bool is_of_results(const struct dense_cutter *c, const struct node *node)
{
    bool is = false;
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge edge = node->inputs[i];
        if (!edge_exists(edge) || !c->r.after[edge.node])
            return false;
        int layout = c->layouts[edge.node];
        if (layout == DENSE_OWN || layout == DENSE_SAME || !dense_is_rows(c, edge))
            continue;
        if (dense_has(c, edge.node, DENSE_GRADIENT | DENSE_BEFORE))
            return false;
        is = true;
    }
    return is;
}

/* Returns whether a value is the workers' together, between layers or between their gradients. Once
 * its inputs have layouts. */
static bool is_inner(const struct dense_cutter *c, const struct node *node)
{
    bool between =
        dense_has(c, node->id, DENSE_BEFORE) && dense_has(c, node->id, DENSE_BEHIND | DENSE_LAYER);
    bool back = dense_has(c, node->id, DENSE_GRADIENT) && dense_has(c, node->id, DENSE_BACK) &&
                !is_of_results(c, node);
    return between || back;
}

/* ---- ops with a rule of their axes ----
 *
 * Of an axis of the result workers can compute parts, from that part of the inputs that have it;
 * along one that is summed over, terms, from parts of these. */

/* The axis along which a node is cut: one of the result before one that is summed over, that of the
 * first input first. Of terms of rows each worker gets the sums of some columns. -1: it is whole.
 */
static int find_axis(const struct dense_cutter *c, const struct bound_rule *bound)
{
    const struct node *node = bound->node;
    const struct shape *out = &node->outputs[0].shape;
    bool has_terms = false;
    int summed = -1, last = out->rank - 1;
    for (int i = 0; i < node->n_inputs; i++) {
        int layout = c->layouts[node->inputs[i].node];
        int axis = layout >= 0 ? rule_axis(bound, i, layout) : -1;
        if (rule_dimension(bound, RULE_RESULT, axis) >= 0)
            return axis;
        summed = summed < 0 && rule_combines(bound, axis) ? axis : summed;
        has_terms |= layout == DENSE_SUM && dense_is_rows(c, node->inputs[i]);
    }
    bool gets_columns =
        has_terms && bound->sign < RULE_SUM && last > 0 && out->dims[last] != SHAPE_UNKNOWN;
    return gets_columns ? bound->result[last] : summed;
}

/* Between layers; or of parts of variables, and, but for a product, of no rows. */
static bool rule_of_axes(const struct dense_cutter *c, struct dense_rule *rule)
{
    const struct node *node = rule->node;
    struct bound_rule bound;
    bool of_parts = rule->part && (!rule->rows || rule_is_product(node->op));
    if ((!of_parts && !rule->is_inner) || node->n_outputs != 1 || node->op->def->window ||
        !rule_bind(c->r.from, node, &bound) || bound.sign > RULE_SUM)
        return false;
    int axis = find_axis(c, &bound), to = rule_dimension(&bound, RULE_RESULT, axis);
    for (int i = 0; i < node->n_inputs; i++) {
        int own = rule_dimension(&bound, i, axis);
        rule->inputs[i] = own < 0 ? DENSE_ALL : own;
    }
    rule->output = axis < 0 ? whole_form(c, (struct edge){node->id, 0}) : to < 0 ? DENSE_SUM : to;
    return true;
}

/* ---- shapes ---- */

/* The shape of the whole of which a worker has a part. */
static bool rule_of_shape(const struct dense_cutter *c, struct dense_rule *rule)
{
    const struct node *node = rule->node;
    if (!node_has(node, OP_SHAPE_ONLY) || node->n_inputs != 1 || node->outputs[0].shape.rank != 1 ||
        node->outputs[0].shape.dims[0] != graph_output(c->r.from, node->inputs[0])->shape.rank ||
        !is_inner(c, graph_node(c->r.from, node->inputs[0].node)))
        return false;
    if (rule->inputs[0] >= 0)
        rule->inputs[0] = DENSE_SUM;
    rule->output = DENSE_ALL;
    return true;
}

/* ---- variables and what changes them ---- */

static int rule_of_writer(struct dense_cutter *c, struct dense_rule *rule)
{
    const struct node *node = rule->node;
    int whole = rule->inputs[rule->reference];
    const struct shape *shape = &graph_output(c->r.from, node->inputs[rule->reference])->shape;
    rule->output = node_rows(node) == ROWS_ASK ? DENSE_SAME : whole;
    if (whole >= 0 && node_rows(node) != ROWS_UPDATE && node_rows(node) != ROWS_ASK)
        return dense_refuse(c, node, "it needs a variable whole, of which each worker has a part");
    for (int i = 0; i < node->n_inputs; i++) {
        const struct shape *own = &graph_output(c->r.from, node->inputs[i])->shape;
        if (node_takes_ref(node, i) && rule->inputs[i] != whole)
            return dense_refuse(c, node, "it has variables of which only some are cut");
        if (node_takes_ref(node, i))
            continue;
        if (whole >= 0 && own->rank && shape_compatible(own, shape))
            rule->inputs[i] = whole;
        else if (whole >= 0 && own->rank)
            return dense_refuse(c, node, "it changes a part by what has another shape");
        else if (rule->inputs[i] != DENSE_OWN)
            rule->inputs[i] = DENSE_SAME;
    }
    return 0;
}

/* ---- others ---- */

static int rule_of_others(struct dense_cutter *c, struct dense_rule *rule)
{
    const struct node *node = rule->node;
    bool own = !rule->is_inner && (rule->own || rule->rows);
    if (!own && node_has(node, OP_CONTROL_FLOW))
        return dense_refuse(c, node,
                            "control flow between dense layers cannot be cut over workers");
    if (!own && node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))
        return dense_refuse(c, node,
                            "it has a state, and would be given what workers have parts of");
    for (int i = 0; i < node->n_inputs; i++)
        rule->inputs[i] = own ? DENSE_OWN : DENSE_ALL;
    rule->output = own               ? DENSE_OWN
                   : node->n_outputs ? whole_form(c, (struct edge){node->id, 0})
                                     : DENSE_SAME;
    return 0;
}

static int dense_rule(struct dense_cutter *c, struct dense_rule *rule)
{
    const struct node *node = rule->node;
    rule->reference = -1;
    rule->is_inner = is_inner(c, node);
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge edge = node->inputs[i];
        int layout = rule->inputs[i] = edge_exists(edge) ? c->layouts[edge.node] : DENSE_OWN;
        if (!edge_exists(edge) || !c->r.after[edge.node]) {
            rule->own = true; /* comes back in a loop */
            continue;
        }
        bool shared = layout != DENSE_OWN && layout != DENSE_SAME, rows = dense_is_rows(c, edge);
        rule->own |= layout == DENSE_OWN;
        rule->dense |= shared;
        rule->rows |= shared && rows;
        rule->part |= layout >= 0 && !rows;
        if (rule->reference < 0 && node_takes_ref(node, i) && graph_output(c->r.from, edge)->is_ref)
            rule->reference = i;
    }
    if (node_is(node, "Variable")) {
        rule->output = c->cut[node->id];
    } else if (node_attr(node, "_gradient")) {
        /* The gradient of a variable that is not cut is reduced, and then the same on all
         * workers. */
        rule->output = dense_axis_of_gradient(c, node);
        if (rule->output >= 0 || rule->inputs[0] != DENSE_OWN)
            rule->inputs[0] = rule->output;
    } else if (rule->reference >= 0 && node_rows(node) != ROWS_ALIKE)
        rule_of_writer(c, rule);
    else if (!rule->dense) {
        /* Nothing that it is made of is shared by the workers. */
        bool own = rule->own || node_has(node, OP_FED | OP_SOURCE | OP_STATEFUL | OP_RANDOM) ||
                   node_makes_resource(node);
        if (node_has(node, OP_RANDOM) && !rule->own && dense_has(c, node->id, DENSE_BEFORE))
            own = false; /* the same noise for all rows */
        rule->output = own ? DENSE_OWN : DENSE_SAME;
    } else if (!rule_of_axes(c, rule) && !rule_of_shape(c, rule))
        rule_of_others(c, rule);
    if (c->r.err->code)
        return c->r.err->code;
    /* Only the first dimension is of rows. */
    bool dense = rule->output != DENSE_OWN && rule->is_inner;
    for (int i = 0; dense && i < node->n_outputs; i++)
        for (int k = 1; k < node->outputs[i].shape.rank; k++)
            if (node->outputs[i].shape.dims[k] == SHAPE_UNKNOWN)
                return dense_refuse(c, node,
                                    "of what is between dense layers only the first dimension, "
                                    "that of rows, may be open");
    return c->r.err->code;
}

/* ---- nodes ---- */

/* A node whose shapes are found anew; or whose values all workers draw, for all rows, as one
 * process would, on a device where they are the same for all. */
static int add_changed(struct dense_cutter *c, const struct node *node, const struct edge *inputs,
                       bool draws)
{
    const struct attr alike[] = {{DRAWS_ALIKE, attr_bool(true)}, {.name = NULL}};
    struct rewrite_copy copy = {.node = node, .inputs = inputs, .n_inputs = node->n_inputs};
    struct shape part = node->outputs[0].shape;
    int axis = c->cut[node->id];
    const struct attr part_attrs[] = {{"shape", attr_shape(&part)},
                                      {WORKER_PART_SHAPE, attr_shape(&node->outputs[0].shape)},
                                      {WORKER_PART_AXIS, attr_int(axis)},
                                      {.name = NULL}};
    if (draws) {
        copy.device = "/device:CPU:0";
        copy.more = alike;
    } else if (node_is(node, "Variable")) {
        part.dims[axis] = SHAPE_UNKNOWN; /* as long as it comes out */
        copy.more = part_attrs;
    }
    struct edge made = rewrite_add_copy(&c->r, &copy);
    if (edge_exists(made))
        rewrite_stand_in(&c->r, node, made.node);
    return c->r.err->code;
}

static struct edge input_of(struct dense_cutter *c, const struct dense_rule *rule, int i)
{
    const struct node *node = rule->node;
    struct edge edge = node->inputs[i];
    if (!edge_exists(edge) || !c->r.after[edge.node])
        return EDGE_NONE;
    int layout = c->layouts[edge.node];
    if (dense_has(c, node->id, DENSE_INITIAL) && rule->inputs[i] >= 0 &&
        (layout == DENSE_OWN || layout == DENSE_SAME)) {
        /* A part of a value, which is not the same in all workers. */
        const struct attr mark = {WORKER_PART_INITIAL, attr_bool(true)};
        const struct node *variable = graph_node(c->r.from, node->inputs[0].node);
        dense_begin(c, (struct edge){variable->id, 0}, "dense");
        return slice_part(c, rewrite_edge(&c->r, edge), &variable->outputs[0].shape,
                          c->cut[variable->id], &mark);
    }
    return dense_convert(c, node, edge, rule->inputs[i]);
}

/* ---- the graph ---- */

static int cut(struct dense_cutter *c)
{
    graph_each_ordered(node, c->r.from, c->r.order) {
        struct node view = rewrite_view(&c->r, node);
        struct dense_rule rule = {.node = node};
        rule.inputs = arena_array(&c->r.arena, (size_t)node->n_inputs + 1, sizeof *rule.inputs);
        if (dense_rule(c, &rule))
            return c->r.err->code;
        for (int j = 0; j < node->n_inputs; j++) {
            view.inputs[j] = input_of(c, &rule, j);
            if (c->r.err->code)
                return c->r.err->code;
        }
        bool draws = node_has(node, OP_RANDOM) && rule.output != DENSE_OWN;
        if (rule.output >= 0 || rule.output == DENSE_SUM || draws) {
            if (add_changed(c, node, view.inputs, draws))
                return c->r.err->code;
        } else {
            rewrite_add(&c->r, node, &view);
        }
        c->layouts[node->id] = rule.output;
    }
    return 0;
}

/* ---- several passes ----
 *
 * Each is of some of the worker's rows: what depends on a layer is there once for each pass,
 * forward and back, up to the loss, and back to what is in front of the layers. A pass begins when
 * the one before has ended, but for bringing its rows together, which goes on beside that one. So
 * what is between layers has the rows of one pass.
 *
 * A pass' gradients begin with the share of the worker's rows that it has, and are added, or put
 * together by rows: what comes of all passes is what one pass of all rows makes. */

static bool in_pass(const struct dense_cutter *c, int node)
{
    return dense_has(c, node, DENSE_IN);
}

/* ---- what updates layers ---- */

/* The variable that a node has itself, as its i-th input; NULL: that is another one. */
static const struct node *written_by(const struct dense_cutter *c, const struct node *node, int i)
{
    const struct node *from = graph_node(c->r.from, node->inputs[i].node);
    return node_takes_ref(node, i) && node_is(from, "Variable") ? from : NULL;
}

static int find_updates(struct dense_cutter *c)
{
    static const struct spread spreads[] = {
        {.fact = DENSE_OF_LAYERS, .unless = DENSE_HANDED_OVER},
        {.fact = DENSE_OF_OTHERS, .unless = DENSE_HANDED_OVER},
        /* What updates need of all that depends on gradients is for them. */
        {.fact = DENSE_UPDATE, .only = DENSE_OF_LAYERS | DENSE_OF_OTHERS, .up = true},
        {DENSE_WRITTEN, DENSE_READS, .unless = DENSE_UPDATE}};
    graph_each(node, c->r.from) {
        if (node_attr(node, "_gradient"))
            c->facts[node->id] |=
                DENSE_HANDED_OVER |
                (dense_axis_of_gradient(c, node) >= 0 ? DENSE_OF_LAYERS : DENSE_OF_OTHERS);
    }
    for (int i = 0; i < 2; i++)
        spread_facts(c->r.from, c->r.order, c->facts, spreads[i]);
    /* These nodes change a layer's variable, by its gradient. */
    graph_each(node, c->r.from) {
        for (int k = 0; k < node->n_inputs && dense_has(c, node->id, DENSE_OF_LAYERS); k++) {
            const struct node *variable = written_by(c, node, k);
            if (!variable || c->cut[variable->id] < 0)
                continue;
            if (dense_has(c, node->id, DENSE_OF_OTHERS))
                return dense_refuse(c, node,
                                    "gradients of what is not in passes change it, too, as by a "
                                    "norm of all: with update=pass that cannot be");
            c->facts[node->id] |= DENSE_UPDATE | DENSE_WRITER;
            c->facts[variable->id] |= DENSE_WRITTEN;
        }
    }
    spread_facts(c->r.from, c->r.order, c->facts, spreads[2]);
    /* Nodes that updates wait for belong to their pass: checks of the loss come to it this way. */
    spread_facts(c->r.from, c->r.order, c->facts,
                 (struct spread){DENSE_IN, DENSE_COMES_OF_PASS, .controls = true});
    graph_each(node, c->r.from) {
        for (int k = 0; dense_has(c, node->id, DENSE_UPDATE) && k < node->n_controls; k++) {
            const struct node *before = graph_node(c->r.from, node->controls[k]);
            if (dense_has(c, before->id, DENSE_IN | DENSE_UPDATE) ||
                !dense_has(c, before->id, DENSE_COMES_OF_PASS))
                continue;
            if (!node_has(before, OP_CHECKS) || !in_pass(c, before->inputs[0].node))
                return dense_refuse(c, before,
                                    "the update of a dense layer waits for it, and it comes of "
                                    "all passes: with update=pass that cannot be");
            c->facts[before->id] |= DENSE_IN;
        }
    }
    spread_facts(c->r.from, c->r.order, c->facts, spreads[3]);
    graph_each(node, c->r.from) {
        c->facts[node->id] |= dense_has(c, node->id, DENSE_UPDATE) ? DENSE_IN : 0;
    }
    return 0;
}

/* ---- what is in passes ---- */

/* What is in passes, and the rows that shares are of. With update_each also what changes layers in
 * each pass: what a pass reads of their variables is what the one before has left. */
static int find_passes(struct dense_cutter *c)
{
    /* Down from layers, and from where gradients begin. */
    graph_each(node, c->r.from) {
        bool ends = node_has(node, OP_CHECKS) || node_attr(node, "_gradient");
        bool begins = dense_has(c, node->id, DENSE_LAYER) || node_attr(node, "_loss");
        /* The last are the errors that a layer hands on to what is in front of all of them. */
        bool part = false;
        for (int i = 0; rule_is_product(node->op) && i < node->n_inputs; i++) {
            const struct node *variable = dense_variable(c, node->inputs[i]);
            part |= variable && c->cut[variable->id] >= 0;
        }
        bool is_last =
            part && dense_has(c, node->id, DENSE_GRADIENT) && !dense_has(c, node->id, DENSE_BACK);
        c->facts[node->id] |=
            (is_last ? DENSE_LAST : 0) | (ends ? DENSE_ENDED : 0) | (begins ? DENSE_IN : 0);
    }
    spread_facts(c->r.from, c->r.order, c->facts,
                 (struct spread){.roots = DENSE_LAST, .fact = DENSE_ENDED});
    graph_each(node, c->r.from) {
        c->facts[node->id] &= dense_has(c, node->id, DENSE_ENDED) ? ~(unsigned)DENSE_IN : ~0U;
    }
    spread_facts(c->r.from, c->r.order, c->facts,
                 (struct spread){.fact = DENSE_IN, .unless = DENSE_ENDED});
    if (c->options->update_each && find_updates(c))
        return c->r.err->code;
    /* Each pass has its own of what is made of rows, as a shape is, and of what it reads of a
     * variable that passes change. */
    for (size_t i = c->r.from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(c->r.from, c->r.order[i]);
        for (int k = 0; in_pass(c, node->id) && k < node->n_inputs; k++) {
            const struct node *from = graph_node(c->r.from, node->inputs[k].node);
            bool of_pass = dense_has(c, from->id, DENSE_READS);
            for (int j = 0; j < from->n_inputs; j++)
                of_pass |= dense_is_rows(c, from->inputs[j]);
            if (of_pass && !dense_is_rows(c, node->inputs[k]))
                c->facts[from->id] |= DENSE_IN;
        }
    }
    for (size_t i = 0; c->options->update_each && i < c->r.from->entries.n; i++) {
        const struct entry *entry = &c->r.from->entries.items[i];
        const bool *needed = graph_entry_needs(&c->r.arena, c->r.from, entry);
        bool reads = false, trains = false;
        graph_each(node, c->r.from) {
            reads |=
                needed[node->id] && in_pass(c, node->id) && dense_has(c, node->id, DENSE_READS);
            trains |= needed[node->id] && dense_has(c, node->id, DENSE_WRITER);
        }
        if (reads && !trains)
            return error_set(c->r.err, ERR_DATA,
                             "entry '%s' goes through dense layers, which with update=pass it "
                             "would train: keep it in a graph of its own",
                             entry->name);
    }
    graph_each_ordered(node, c->r.from, c->r.order) {
        if (in_pass(c, node->id) && !dense_has(c, node->id, DENSE_UPDATE) &&
            (node_has(node, OP_CONTROL_FLOW) ||
             (node_has(node, OP_STATEFUL) && !node_has(node, OP_RANDOM))))
            return dense_refuse(c, node,
                                "it has a state, or is control flow, and would be run in "
                                "each pass");
        if (!edge_exists(c->reference) && dense_has(c, node->id, DENSE_LAYER))
            c->reference = node->inputs[0];
    }
    return 0;
}

/* ---- rows of a pass ---- */

static struct build *begin(struct dense_cutter *c, struct edge edge, const char *what, int pass)
{
    dense_begin(c, edge, arena_printf(&c->r.arena, "pass_%d/%s", pass, what));
    return &c->b;
}

/* Row k of n of so many parts. */
static struct edge bound(struct dense_cutter *c, struct edge rows, int k)
{
    struct edge times = build_binary(&c->b, "Mul", rows, build_scalar(&c->b, INT32, k));
    return build_binary(&c->b, "FloorDiv", times, build_scalar(&c->b, INT32, c->options->passes));
}

/* Finds which rows of the worker a pass has: the first, and how many. */
static void find_range(struct dense_cutter *c, struct edge rows, int pass, struct edge range[2])
{
    struct build *b = &c->b;
    if (!c->options->by_worker) {
        range[0] = bound(c, rows, pass);
        range[1] = build_binary(b, "Sub", bound(c, rows, pass + 1), range[0]);
        return;
    }
    struct edge rank = build_op(b, "CollectiveRank", NULL, 0, NULL, 0);
    const char *is = pass + 1 < c->options->passes ? "Equal" : "GreaterEqual";
    struct edge is_own = build_binary(b, is, rank, build_scalar(b, INT64, pass));
    range[0] = build_ints(b, (int64_t[]){0}, 1);
    range[1] = build_binary(b, "Mul", rows, build_cast(b, is_own, INT32));
}

static struct edge with_rest(struct build *b, struct edge first, int rank, int64_t rest)
{
    int64_t others[SHAPE_RANK_MAX];
    struct edge parts[3] = {EDGE_NONE, first};
    for (int i = 0; i < rank; i++)
        others[i] = rest;
    if (rank < 2)
        return first;
    parts[0] = build_scalar(b, INT32, 0);
    parts[2] = build_ints(b, others, rank - 1);
    return build_op(b, "Concat", parts, 3, NULL, 0);
}

static void mark(struct dense_cutter *c, int id, const char *name, int64_t value)
{
    const struct attr attr = {name, attr_int(value)};
    if (!c->r.err->code)
        graph_set_attr(c->r.to, graph_node(c->r.to, id), &attr, c->r.err);
}

/* The share of the worker's rows that a pass has. Rows are counted in 32 bits or more. */
static struct edge share_of(struct dense_cutter *c, enum dtype type, int pass)
{
    struct edge range[2], whole = rewrite_edge(&c->r, c->reference);
    enum dtype wide = dtype_bytes(type) < 4 ? FLOAT32 : type;
    struct build *b = begin(c, c->reference, "share", pass);
    struct edge rows = dense_row_count(b, whole);
    find_range(c, rows, pass, range);
    struct edge share =
        build_binary(b, "Div", build_cast(b, range[1], wide), build_cast(b, rows, wide));
    return build_binary(b, "Reshape", build_cast(b, share, type), build_ints(b, NULL, 0));
}

/* ---- what comes of passes ---- */

static struct edge of_pass(const struct dense_cutter *c, struct edge edge, int pass)
{
    return (struct edge){c->first[edge.node] + pass, edge.slot};
}

/* A mean over the rows of a pass, times their share if `counts`; 0 for a pass without rows. */
static struct edge mean_of(struct dense_cutter *c, struct edge edge, int pass, bool counts)
{
    enum dtype type = graph_output(c->r.from, edge)->type;
    struct edge x = of_pass(c, edge, pass), share = share_of(c, type, pass);
    struct edge has = build_binary(&c->b, "Greater", share, build_scalar(&c->b, type, 0));
    const struct edge choice[] = {has, counts ? build_binary(&c->b, "Mul", x, share) : x,
                                  build_unary(&c->b, "ZerosLike", x)};
    return build_op(&c->b, "Select", choice, 3, NULL, 0);
}

/* The value under its name, for readers outside of the passes: that of all passes together. */
static struct edge once(void *context, const struct node *asker, struct edge edge)
{
    struct dense_cutter *c = context;
    (void)asker;
    if (!edge_exists(edge) || edge.slot == CONTROL_SLOT)
        return EDGE_NONE;
    bool gradient = dense_has(c, edge.node, DENSE_GRADIENT);
    const struct node_output *output = graph_output(c->r.from, edge);
    struct edge *known = &c->r.edges[c->r.first[edge.node] + edge.slot], all = *known;
    int n = c->options->passes;
    if (edge_exists(all) || c->r.err->code || !in_pass(c, edge.node))
        return all;
    if (dense_has(c, edge.node, DENSE_UPDATE) &&
        !node_attr(graph_node(c->r.from, edge.node), "_gradient"))
        return *known = of_pass(c, edge, n - 1);
    if (!gradient && !dense_is_rows(c, edge) &&
        (!dtype_is_floating(output->type) || output->shape.rank))
        return *known = of_pass(c, edge, 0);
    dense_begin(c, edge, "passes");
    if (dense_is_rows(c, edge)) {
        struct edge *parts = arena_array(&c->r.arena, (size_t)n, sizeof *parts);
        for (int k = 0; k < n; k++)
            parts[k] = of_pass(c, edge, k);
        return *known = cut_concat(&c->b, 0, parts, n);
    }
    for (int k = 0; k < n; k++) {
        struct edge one = gradient ? of_pass(c, edge, k) : mean_of(c, edge, k, true);
        dense_begin(c, edge, "passes");
        all = k ? build_binary(&c->b, "Add", all, one) : one;
    }
    return *known = all;
}

/* ---- nodes of passes ---- */

/* The input of a node in a pass. Gradients begin with the pass' share of what they began with. */
static struct edge input_in(void *context, const struct node *reader, struct edge edge, int pass)
{
    struct dense_cutter *c = context;
    const struct node *node = graph_node(c->r.from, edge.node);
    if (edge.slot == CONTROL_SLOT)
        return in_pass(c, edge.node) ? of_pass(c, edge, pass)
                                     : (struct edge){c->r.after[edge.node][0], CONTROL_SLOT};
    bool is_mean = in_pass(c, edge.node) && node_has(reader, OP_CHECKS);
    int layout = is_mean ? c->options->passes + pass : pass;
    struct edge part = dense_known(c, edge, layout);
    if (edge_exists(part))
        return part;
    if (!in_pass(c, edge.node)) {
        /* A pass takes its rows of a value that is there once. */
        struct edge whole = rewrite_edge(&c->r, edge), range[2];
        const struct shape *shape = &graph_output(c->r.from, edge)->shape;
        if (!dense_is_rows(c, edge))
            return whole;
        struct build *b = begin(c, edge, "rows", pass);
        find_range(c, dense_row_count(b, whole), pass, range);
        const struct edge inputs[] = {whole, with_rest(b, range[0], shape->rank, 0),
                                      with_rest(b, range[1], shape->rank, -1)};
        part = build_op(b, "Slice", inputs, 3, NULL, 0);
        if (b->err->code)
            return EDGE_NONE;
        graph_node(c->r.to, part.node)->outputs[0].shape = *shape;
        mark(c, part.node, DENSE_PASS, pass);
        mark(c, part.node, "_priority", 1 + pass);
        return dense_note(c, edge, pass, part);
    }
    if (is_mean)
        return dense_note(c, edge, layout, mean_of(c, edge, pass, false));
    if (!node_attr(node, "_loss"))
        return of_pass(c, edge, pass);
    struct edge share = share_of(c, graph_output(c->r.from, edge)->type, pass);
    return dense_note(c, edge, pass, build_binary(&c->b, "Mul", of_pass(c, edge, pass), share));
}

static void wait_for(struct dense_cutter *c, int id, int before)
{
    graph_add_control(c->r.to, graph_node(c->r.to, id), before);
}

static void visit_in(struct dense_cutter *c, const struct node *node)
{
    int n = c->options->passes;
    struct edge *copies = arena_array(&c->r.arena, (size_t)n, sizeof *copies);
    /* What they get is made first: the copies follow each other. */
    for (int k = 0; k < n; k++)
        for (int i = 0; i < node->n_inputs; i++)
            input_in(c, node, node->inputs[i], k);
    if (c->r.err->code)
        return;
    c->first[node->id] = (int)c->r.to->nodes.n;
    for (int k = 0; k < n; k++) {
        const char *name = arena_printf(&c->r.to->arena, "pass_%d/%s", k, node->name);
        const struct rewrite_copy spec = {node, k, .name = name};
        const struct node *copy = rewrite_add_mapped(&c->r, &spec, input_in);
        mark(c, copy->id, DENSE_PASS, k);
        if (node_has(node, OP_RANDOM) && k) /* each pass draws other random numbers */
            mark(c, copy->id, "seed2", node_int(copy, "seed2") + k);
        copies[k] = (struct edge){copy->id, 0};
    }
    rewrite_await_parts(&c->r, node, copies, n);
}

/* ---- one pass after the other ---- */

static void order_passes(struct dense_cutter *c)
{
    VEC(int) ends = VEC_INIT;
    int n = c->options->passes;
    /* A pass ends with gradients that go to who is in no pass, and with updates. */
    graph_each(node, c->r.from) {
        bool goes_out = false;
        for (int k = 0; k < node->n_outputs; k++)
            goes_out |= edge_exists(rewrite_edge(&c->r, (struct edge){node->id, k}));
        if (in_pass(c, node->id) && (dense_has(c, node->id, DENSE_WRITER) ||
                                     (goes_out && dense_has(c, node->id, DENSE_GRADIENT))))
            vec_push_in(&c->r.arena, &ends, node->id);
    }
    /* Errors that go to who is in front of the layers. Its own exchanges have priority 0, so that
     * no layer waits for what a later pass needs, or for what is needed after all passes. */
    vec_each(end, &ends) {
        for (int k = 0; dense_is_rows(c, (struct edge){*end, 0}) && k < n; k++)
            mark(c, c->first[*end] + k, "_priority", 1 + n);
    }
    graph_each(node, c->r.from) {
        for (int k = 1; dense_has(c, node->id, DENSE_LAYER) && k < n; k++)
            vec_each(end, &ends)
                wait_for(c, c->first[node->id] + k, c->first[*end] + k - 1);
    }
    vec_each(part, &c->converted) {
        int pass = part->layout;
        if (pass > 1 && !in_pass(c, part->edge.node))
            vec_each(end, &ends)
                wait_for(c, part->result.node, c->first[*end] + pass - 2);
    }
    /* What reads a variable that passes change comes after the change of the pass before. */
    graph_each(writer, c->r.from) {
        for (int i = 0; dense_has(c, writer->id, DENSE_WRITER) && i < writer->n_inputs; i++) {
            const struct node *variable = written_by(c, writer, i);
            graph_each(node, c->r.from) {
                bool reads = false;
                for (int k = 0; variable && k < node->n_inputs; k++)
                    reads |= node->inputs[k].node == variable->id;
                reads &= in_pass(c, node->id) && !dense_has(c, node->id, DENSE_UPDATE);
                for (int k = 1; reads && k < n; k++)
                    wait_for(c, c->first[node->id] + k, c->first[writer->id] + k - 1);
            }
        }
    }
}

static int dense_unroll(struct dense_cutter *c)
{
    c->first = arena_array(&c->r.arena, c->r.from->nodes.n + 1, sizeof *c->first);
    c->reference = EDGE_NONE;
    c->r.rules.context = c;
    c->r.make = once;
    if (find_passes(c))
        return c->r.err->code;
    graph_each_ordered(node, c->r.from, c->r.order) {
        if (in_pass(c, node->id))
            visit_in(c, node);
        else
            rewrite_copy(&c->r, node);
        if (c->r.err->code)
            return c->r.err->code;
    }
    /* A name that the script gave stands for the value of all passes. */
    graph_each(node, c->r.from) {
        bool is_named = in_pass(c, node->id) && !strchr(node->name, '/') && node->n_outputs == 1;
        struct edge whole = is_named ? once(c, node, (struct edge){node->id, 0}) : EDGE_NONE;
        if (c->r.err->code || (is_named && graph_add_alias(c->r.to, node->name, whole, c->r.err)))
            return c->r.err->code;
    }
    rewrite_make_named(&c->r);
    if (!c->r.err->code)
        order_passes(c);
    return c->r.err->code;
}

/* ---- the whole pass ---- */

static int rewrite(const struct graph *from, const struct dense_options *options,
                   int (*how)(struct dense_cutter *), struct graph **to, struct error *err)
{
    size_t n = from->nodes.n;
    struct dense_cutter c = {.options = options};
    *to = NULL;
    if (rewrite_open(&c.r, from, how == cut ? options->pass : NULL, err))
        return err->code;
    c.facts = arena_array(&c.r.arena, n + 1, sizeof *c.facts);
    c.cut = arena_array(&c.r.arena, n + 1, sizeof *c.cut);
    c.layouts = arena_array(&c.r.arena, n + 1, sizeof *c.layouts);
    for (size_t i = 0; i < n; i++)
        c.layouts[i] = DENSE_OWN; /* also where an edge goes back */
    c.rows = arena_array(&c.r.arena, DENSE_PASSES_MAX, sizeof *c.rows);
    memset(c.rows, -1, DENSE_PASSES_MAX * sizeof *c.rows);
    memset(c.cut, DENSE_SAME, n * sizeof *c.cut);
    int code = find_layers(&c);
    if (!code)
        code = how(&c);
    c.r.n_changes = 1;
    return rewrite_finish(&c.r, code, to);
}

int dense_graph(const struct graph *from, const struct dense_options *options, struct graph **to,
                struct error *err)
{
    return rewrite(from, options, cut, to, err);
}

int dense_passes(const struct graph *from, const struct dense_options *options, struct graph **to,
                 struct error *err)
{
    return rewrite(from, options, dense_unroll, to, err);
}
