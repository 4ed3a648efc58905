/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic simplification: removes nodes whose result is one of their inputs, bit for bit, and
 * joins chains of the same rearrangement. x + 0 is no identity of floats (-0 + 0 is 0), but x - 0,
 * x + -0, x * 1 and x / 1 are. Only constants without conditions count.
 */
#include <math.h>

#include "pass/rewrite.h"
#include "pass/simplify/simplify.h"

/* ---- rearrangements: Reshape and similar ops, Transpose ----
 *
 * Each rule gets a node and its view, and returns true if it has replaced the node. */

/* Returns the producer of input 0 if it has this op and may be bypassed; else NULL. */
static const struct node *inner_of(const struct rewrite *r, const struct node *view,
                                   const struct op *op)
{
    const struct node *inner = graph_node(r->to, view->inputs[0].node);
    return inner->op == op && !inner->n_controls && !rewrite_is_opaque(r, inner) &&
                   !rewrite_reads(r, inner->inputs[0])
               ? inner
               : NULL;
}

/* Adds the node with other inputs, or another op. */
static bool add_instead(struct rewrite *r, const struct node *node, struct node view,
                        struct edge *inputs, const char *what)
{
    view.inputs = inputs;
    rewrite_add(r, node, &view);
    rewrite_note(r, node->name, what);
    return true;
}

/* Returns whether two shapes with equal element counts must be equal: at most one dimension is
 * unknown, at the same place, and the others determine it. */
static bool must_equal(const struct shape *a, const struct shape *b)
{
    int unknown = 0;
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i])
            return false;
        unknown += a->dims[i] < 0;
    }
    for (int i = 0; unknown && i < a->rank; i++)
        if (a->dims[i] == 0)
            return false;
    return unknown <= 1;
}

static bool reshapes(const struct node *node)
{
    return node_has(node, OP_VIEW) && !node_has(node, OP_PASSES);
}

/* Returns the tensor whose elements, in the same order, a chain of reshapes outputs. */
static struct edge reshaped(const struct rewrite *r, struct edge edge)
{
    for (;;) {
        const struct node *node = graph_node(r->to, edge.node);
        if (!reshapes(node) || node->n_controls || rewrite_is_opaque(r, node) ||
            rewrite_reads(r, node->inputs[0]))
            return edge;
        /* A computed shape may be subject to conditions that the elements are not. */
        if (node->n_inputs > 1 && r->has_control_flow && !rewrite_value(r, node->inputs[1]))
            return edge;
        edge = node->inputs[0];
    }
}

static bool simplify_reshape(struct rewrite *r, const struct node *node, const struct node *view)
{
    if (!reshapes(node))
        return false;
    struct edge source = reshaped(r, view->inputs[0]);
    bool plain = node->n_inputs < 2 || !r->has_control_flow || rewrite_value(r, view->inputs[1]);
    if (plain && must_equal(&graph_output(r->to, source)->shape, &node->outputs[0].shape) &&
        rewrite_replace(r, node, source, "has the shape already"))
        return true;
    if (!node_has(node, OP_IDEMPOTENT) || source.node == view->inputs[0].node)
        return false;
    return add_instead(r, node, *view, (struct edge[]){source, view->inputs[1]},
                       "reshapes the input of the reshape before");
}

static bool is_identity(const struct tensor *perm)
{
    for (int64_t i = 0; i < tensor_count(perm); i++)
        if (tensor_get_int64(perm, i) != i)
            return false;
    return true;
}

static bool simplify_transpose(struct rewrite *r, const struct node *node, const struct node *view)
{
    const struct tensor *perm =
        node_has(node, OP_PERMUTES) ? rewrite_value(r, view->inputs[1]) : NULL;
    if (!perm)
        return false;
    if (is_identity(perm) &&
        rewrite_replace(r, node, view->inputs[0], "leaves the dimensions in order"))
        return true;
    const struct node *inner = inner_of(r, view, node->op);
    const struct tensor *first = inner ? rewrite_value(r, inner->inputs[1]) : NULL;
    struct tensor both;
    if (!first)
        return false;
    /* Compose both permutations. */
    struct error err = ERROR_INIT;
    int64_t n = tensor_count(perm);
    if (tensor_count(first) != n || tensor_alloc(&both, perm->type, &perm->shape, &err))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = tensor_get_int64(perm, i);
        if (k < 0 || k >= n) {
            tensor_release(&both);
            return false;
        }
        tensor_set_int64(&both, i, tensor_get_int64(first, k));
    }

    if (is_identity(&both) && rewrite_replace(r, node, inner->inputs[0], "undoes its input")) {
        tensor_release(&both);
        return true;
    }
    struct edge inputs[] = {inner->inputs[0], rewrite_constant(r, node, "perm", &both)};
    return add_instead(r, node, *view, inputs, "does what two transposes did");
}

/* ---- neutral operands ---- */

/* Returns whether all elements of a constant equal `value`; zeros of floats must have its sign. */
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

/* Returns whether broadcasting x with a constant keeps x's shape. */
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

/* Returns whether operand `i`'s counterpart is a constant of `value`s that does not widen it. */
static bool neutral(struct rewrite *r, const struct node *view, int i, double value)
{
    const struct tensor *c = rewrite_value(r, view->inputs[1 - i]);
    return c && c->type != STRING &&
           keeps_shape(&graph_output(r->to, view->inputs[i])->shape, &c->shape) &&
           all_are(c, value);
}

/* ---- declared identities ---- */

static bool says_nothing(struct rewrite *r, const struct node *view, const double *neutral)
{
    const struct tensor *c = rewrite_value(r, view->inputs[1]);
    return c && (tensor_count(c) == 0 || (neutral && all_are(c, *neutral)));
}

/* Returns the input that equals output 0, bit for bit, or -1. */
static int same_input(struct rewrite *r, const struct node *node, const struct node *view)
{
    const struct op_identity *identity = &node->op->def->identity;
    enum dtype type = node->outputs[0].type;
    if (identity->types && !(identity->types & DTYPE_BIT(type)))
        return -1;
    switch (identity->when) {
    case SAME_NEVER:
        return -1;
    case SAME_ALWAYS:
        /* After a Switch, the node is dead where the branch is not taken, but the Switch itself is
         * not: nodes that wait for this node wait for the branch. */
        return node_has(graph_node(r->to, view->inputs[0].node), OP_CONTROL_FLOW) ? -1 : 0;
    case SAME_TYPE:
        return graph_output(r->to, view->inputs[0])->type == type ? 0 : -1;
    case SAME_ALONE:
        return node->n_inputs == 1 ? 0 : -1;
    case SAME_OPERAND:
        if (neutral(r, view, 0, identity->neutral))
            return 0;
        return node_has(node, OP_COMMUTATIVE) && neutral(r, view, 1, identity->neutral) ? 1 : -1;
    case SAME_ARGUMENT:
        return says_nothing(r, view, &identity->neutral) ? 0 : -1;
    case SAME_EMPTY:
        return says_nothing(r, view, NULL) ? 0 : -1;
    }
    return -1;
}

/* Simplifies an op of one input: f(f(x)) is x, or f(x). */
static bool simplify_twice(struct rewrite *r, const struct node *node, const struct node *view)
{
    if (node->n_inputs != 1 || !node_has(node, OP_INVOLUTION | OP_IDEMPOTENT))
        return false;
    const struct node *inner = inner_of(r, view, node->op);
    if (!inner)
        return false;
    return node_has(node, OP_INVOLUTION)
               ? rewrite_replace(r, node, inner->inputs[0], "undoes its input")
               : rewrite_replace(r, node, view->inputs[0], "does again what was done");
}

/* ---- division ---- */

static bool multiply_instead(struct rewrite *r, const struct node *node, const struct node *view)
{
    struct tensor reciprocal;
    struct error err = ERROR_INIT;
    const char *name = node->op->def->by_reciprocal;
    const struct op *mul = name ? registry_find(r->to->registry, name) : NULL;
    const struct tensor *c = mul ? rewrite_value(r, view->inputs[1]) : NULL;
    if (!c)
        return false;
    /* Division by t equals multiplication by 1/t for powers of two away from the limits. */
    int exponent, range = c->type == FLOAT32 ? 125 : 1021;
    if (c->type != FLOAT32 && c->type != FLOAT64)
        return false;
    for (int64_t i = 0; i < tensor_count(c); i++) {
        double v = tensor_get_float64(c, i);
        if (!isfinite(v) || fabs(frexp(v, &exponent)) != 0.5 || exponent < -range ||
            exponent > range)
            return false;
    }
    if (r->flags[node->id] & REWRITE_OPAQUE || tensor_alloc(&reciprocal, c->type, &c->shape, &err))
        return false;
    for (int64_t i = 0; i < tensor_count(c); i++)
        tensor_set_float64(&reciprocal, i, 1.0 / tensor_get_float64(c, i));
    struct edge inputs[] = {view->inputs[0], rewrite_constant(r, node, "reciprocal", &reciprocal)};
    struct node product = *view;
    product.op = mul;
    return add_instead(r, node, product, inputs, "multiplies by the reciprocal, which is exact");
}

int pass_arith(const struct graph *from, const struct pass_options *options, struct graph **to,
               int *n_changes, struct error *err)
{
    struct rewrite r;
    if (rewrite_open(&r, from, options, err))
        return err->code;
    graph_each_ordered(node, from, r.order) {
        struct node view = rewrite_view(&r, node);
        int same = node->n_outputs ? same_input(&r, node, &view) : -1;
        if (!(same >= 0 &&
              rewrite_replace(&r, node, view.inputs[same], node->op->def->identity.says)) &&
            !simplify_twice(&r, node, &view) && !multiply_instead(&r, node, &view) &&
            !simplify_reshape(&r, node, &view) && !simplify_transpose(&r, node, &view))
            rewrite_add(&r, node, &view);
    }
    return rewrite_close(&r, 0, to, n_changes);
}
