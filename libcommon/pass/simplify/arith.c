/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic simplification: nodes whose result is one of their inputs, bit for bit, go; chains of
 * the same rearrangement become one. x + 0 is no identity of floats (-0 + 0 is 0), but x - 0,
 * x + -0, x * 1 and x / 1 are. Constants count only where they have no conditions.
 */
#include <math.h>
#include <string.h>

#include "pass/simplify/arith_private.h"

/* ---- what a constant operand is ---- */

/* Whether all elements of a constant are `value`, and of a float's zeros all have its sign. */
static bool all_are(const struct tensor *t, double value)
{
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        double element = tensor_get_float64(t, i);
        if (element != value || (dtype_is_floating(t->type) && signbit(element) != signbit(value)))
            return false;
    }
    return n > 0;
}

/* Whether broadcasting x against a constant leaves x's shape. */
static bool keeps_shape(const struct shape *x, const struct shape *c)
{
    if (c->rank == 0)
        return true;
    if (x->rank < c->rank)
        return false;
    for (int i = 0; i < c->rank; i++)
        if (c->dims[i] != 1 && c->dims[i] != x->dims[x->rank - c->rank + i])
            return false;
    return true;
}

static const struct node_output *output(const struct rewrite *r, struct edge edge)
{
    return &graph_node(r->to, edge.node)->outputs[edge.slot];
}

/* Operand `i` if the other one is a constant of elements `value` that does not widen it. */
static bool neutral(struct rewrite *r, const struct node *view, int i, double value)
{
    const struct tensor *c = rewrite_value(r, view->inputs[1 - i]);
    return c && c->type != STRING && keeps_shape(&output(r, view->inputs[i])->shape, &c->shape) &&
           all_are(c, value);
}

static bool replace(struct rewrite *r, const struct node *node, struct edge by, const char *what)
{
    if (!rewrite_may_replace(r, node, by))
        return false;
    rewrite_replace(r, node, by, what);
    return true;
}

/* ---- element-wise ---- */

static bool simplify_add(struct rewrite *r, const struct node *node, const struct node *view)
{
    double zero = dtype_is_floating(node->outputs[0].type) ? -0.0 : 0.0;
    for (int i = 0; i < 2; i++)
        if (node->outputs[0].type != COMPLEX64 && neutral(r, view, i, zero))
            return replace(r, node, view->inputs[i], "adds nothing");
    return false;
}

static bool simplify_sub(struct rewrite *r, const struct node *node, const struct node *view)
{
    return node->outputs[0].type != COMPLEX64 && neutral(r, view, 0, 0.0) &&
           replace(r, node, view->inputs[0], "subtracts nothing");
}

static bool simplify_mul(struct rewrite *r, const struct node *node, const struct node *view)
{
    for (int i = 0; i < 2; i++)
        if (node->outputs[0].type != COMPLEX64 && neutral(r, view, i, 1.0))
            return replace(r, node, view->inputs[i], "multiplies by 1");
    return false;
}

/* Whether dividing by t is multiplying by 1/t, exactly: powers of two away from the ends. */
static bool has_exact_reciprocal(const struct tensor *t)
{
    int exponent, range = t->type == FLOAT32 ? 125 : 1021;
    if (t->type != FLOAT32 && t->type != FLOAT64)
        return false;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        double v = tensor_get_float64(t, i);
        if (!isfinite(v) || fabs(frexp(v, &exponent)) != 0.5 || exponent < -range ||
            exponent > range)
            return false;
    }
    return true;
}

static bool multiply_instead(struct rewrite *r, const struct node *node, const struct node *view)
{
    struct tensor reciprocal;
    struct error err = ERROR_INIT;
    const struct tensor *c = rewrite_value(r, view->inputs[1]);
    const struct op *mul = registry_find(r->to->registry, "Mul");
    if (!c || !mul || !has_exact_reciprocal(c) || r->flags[node->id] & REWRITE_OPAQUE ||
        tensor_alloc(&reciprocal, c->type, &c->shape, &err))
        return false;
    for (int64_t i = 0; i < tensor_count(c); i++)
        tensor_set_float64(&reciprocal, i, 1.0 / tensor_get_float64(c, i));
    struct edge inputs[] = {view->inputs[0], rewrite_constant(r, node, "reciprocal", &reciprocal)};
    struct node product = *view;
    product.op = mul;
    product.inputs = inputs;
    rewrite_add(r, node, &product);
    rewrite_note(r, node->name, "multiplies by the reciprocal, which is exact");
    return true;
}

static bool simplify_div(struct rewrite *r, const struct node *node, const struct node *view)
{
    if (node->outputs[0].type != COMPLEX64 && neutral(r, view, 0, 1.0) &&
        replace(r, node, view->inputs[0], "divides by 1"))
        return true;
    return multiply_instead(r, node, view);
}

static bool simplify_floor_div(struct rewrite *r, const struct node *node, const struct node *view)
{
    return dtype_is_integer(node->outputs[0].type) && neutral(r, view, 0, 1.0) &&
           replace(r, node, view->inputs[0], "divides by 1");
}

static bool simplify_and(struct rewrite *r, const struct node *node, const struct node *view)
{
    for (int i = 0; i < 2; i++)
        if (neutral(r, view, i, 1.0))
            return replace(r, node, view->inputs[i], "and true");
    return false;
}

static bool simplify_or(struct rewrite *r, const struct node *node, const struct node *view)
{
    for (int i = 0; i < 2; i++)
        if (neutral(r, view, i, 0.0))
            return replace(r, node, view->inputs[i], "or false");
    return false;
}

/* Neg of Neg, LogicalNot of LogicalNot. */
static bool simplify_inverse(struct rewrite *r, const struct node *node, const struct node *view)
{
    const struct node *inner = arith_inner(r, view, node->op->def->name);
    return inner && replace(r, node, inner->inputs[0], "undoes its input");
}

static bool simplify_identity(struct rewrite *r, const struct node *node, const struct node *view)
{
    return !node_has(graph_node(r->to, view->inputs[0].node), OP_CONTROL_FLOW) &&
           replace(r, node, view->inputs[0], "does nothing");
}

static bool simplify_cast(struct rewrite *r, const struct node *node, const struct node *view)
{
    return output(r, view->inputs[0])->type == node->outputs[0].type &&
           replace(r, node, view->inputs[0], "casts to the type that it is");
}

static bool simplify_add_n(struct rewrite *r, const struct node *node, const struct node *view)
{
    return node->n_inputs == 1 && replace(r, node, view->inputs[0], "sums one tensor");
}

/* ---- nothing to do along any axis ---- */

/* A reduction over no axes. A sum of one element is 0 + x, which turns -0 into 0. */
static bool simplify_reduction(struct rewrite *r, const struct node *node, const struct node *view)
{
    const struct tensor *axes = rewrite_value(r, view->inputs[1]);
    return axes && tensor_count(axes) == 0 && !dtype_is_floating(node->outputs[0].type) &&
           replace(r, node, view->inputs[0], "reduces no axis");
}

static bool simplify_extremum(struct rewrite *r, const struct node *node, const struct node *view)
{
    const struct tensor *axes = rewrite_value(r, view->inputs[1]);
    return axes && tensor_count(axes) == 0 && replace(r, node, view->inputs[0], "reduces no axis");
}

/* Input 1 is all `value`: Tile once, Pad by nothing, Reverse no dimension. */
static bool does_nothing(struct rewrite *r, const struct node *node, const struct node *view,
                         double value)
{
    const struct tensor *c = rewrite_value(r, view->inputs[1]);
    return c && (tensor_count(c) == 0 || all_are(c, value)) &&
           replace(r, node, view->inputs[0], "changes nothing");
}

static bool simplify_tile(struct rewrite *r, const struct node *node, const struct node *view)
{
    return does_nothing(r, node, view, 1.0);
}

static bool simplify_zeros(struct rewrite *r, const struct node *node, const struct node *view)
{
    return does_nothing(r, node, view, 0.0);
}

/* ---- the table ---- */

static const struct rule {
    const char *op;
    bool (*simplify)(struct rewrite *r, const struct node *node, const struct node *view);
} rules[] = {
    {"Add", simplify_add},
    {"AddN", simplify_add_n},
    {"All", simplify_extremum},
    {"Any", simplify_extremum},
    {"Cast", simplify_cast},
    {"Div", simplify_div},
    {"ExpandDims", arith_reshape},
    {"FloorDiv", simplify_floor_div},
    {"Identity", simplify_identity},
    {"LogicalAnd", simplify_and},
    {"LogicalNot", simplify_inverse},
    {"LogicalOr", simplify_or},
    {"Max", simplify_extremum},
    {"Mean", simplify_reduction},
    {"Min", simplify_extremum},
    {"Mul", simplify_mul},
    {"Neg", simplify_inverse},
    {"Pad", simplify_zeros},
    {"Prod", simplify_reduction},
    {"Reshape", arith_reshape},
    {"Reverse", simplify_zeros},
    {"Squeeze", arith_reshape},
    {"Sub", simplify_sub},
    {"Sum", simplify_reduction},
    {"Tile", simplify_tile},
    {"Transpose", arith_transpose},
};

static const struct rule *find_rule(const char *op)
{
    size_t low = 0, high = sizeof rules / sizeof *rules;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(op, rules[middle].op);
        if (order == 0)
            return &rules[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

int pass_arith(const struct graph *from, const struct pass_options *options, struct graph **to,
               int *n_changes, struct error *err)
{
    struct rewrite r;
    if (rewrite_open(&r, from, options, err))
        return err->code;
    for (size_t i = 0; i < from->nodes.n; i++) {
        const struct node *node = graph_node(from, r.order[i]);
        const struct rule *rule = find_rule(node->op->def->name);
        struct node view = rewrite_view(&r, node);
        if (!rule || !rule->simplify(&r, node, &view))
            rewrite_add(&r, node, &view);
    }
    return rewrite_close(&r, 0, to, n_changes);
}
