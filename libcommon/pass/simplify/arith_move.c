/* SPDX-License-Identifier: Apache-2.0
 *
 * Simplification of ops that only rearrange: Reshape and its kin, Transpose.
 */
#include "pass/simplify/arith_private.h"

const struct node *arith_inner(const struct rewrite *r, const struct node *view,
                               const struct op *op)
{
    const struct node *inner = graph_node(r->to, view->inputs[0].node);
    return inner->op == op && !inner->n_controls && !rewrite_is_opaque(r, inner) &&
                   !rewrite_reads(r, inner->inputs[0])
               ? inner
               : NULL;
}

/* Returns whether two shapes of the same number of elements must be equal: at most one dimension is
 * unknown, at the same place, and the others fix it. */
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

/* The tensor whose elements, in the same order, a chain of reshapes shows. */
static struct edge reshaped(const struct rewrite *r, struct edge edge)
{
    for (;;) {
        const struct node *node = graph_node(r->to, edge.node);
        if (!reshapes(node) || node->n_controls || rewrite_is_opaque(r, node) ||
            rewrite_reads(r, node->inputs[0]))
            return edge;
        /* A shape that is computed may be subject to conditions that the elements are not. */
        if (node->n_inputs > 1 && r->has_control_flow && !rewrite_value(r, node->inputs[1]))
            return edge;
        edge = node->inputs[0];
    }
}

bool arith_reshape(struct rewrite *r, const struct node *node, const struct node *view)
{
    if (!reshapes(node))
        return false;
    struct edge source = reshaped(r, view->inputs[0]);
    bool plain = node->n_inputs < 2 || !r->has_control_flow || rewrite_value(r, view->inputs[1]);
    if (plain &&
        must_equal(&graph_node(r->to, source.node)->outputs[source.slot].shape,
                   &node->outputs[0].shape) &&
        rewrite_may_replace(r, node, source)) {
        rewrite_replace(r, node, source, "has the shape already");
        return true;
    }
    if (!node_has(node, OP_IDEMPOTENT) || source.node == view->inputs[0].node)
        return false;
    struct edge inputs[] = {source, view->inputs[1]};
    struct node direct = *view;
    direct.inputs = inputs;
    rewrite_add(r, node, &direct);
    rewrite_note(r, node->name, "reshapes the input of the reshape before");
    return true;
}

static bool is_identity(const struct tensor *perm)
{
    for (int64_t i = 0; i < tensor_count(perm); i++)
        if (tensor_get_int64(perm, i) != i)
            return false;
    return true;
}

bool arith_transpose(struct rewrite *r, const struct node *node, const struct node *view)
{
    const struct tensor *perm =
        node_has(node, OP_PERMUTES) ? rewrite_value(r, view->inputs[1]) : NULL;
    if (!perm)
        return false;
    if (is_identity(perm) && rewrite_may_replace(r, node, view->inputs[0])) {
        rewrite_replace(r, node, view->inputs[0], "leaves the dimensions in order");
        return true;
    }
    const struct node *inner = arith_inner(r, view, node->op);
    const struct tensor *first = inner ? rewrite_value(r, inner->inputs[1]) : NULL;
    struct tensor both;
    if (!first)
        return false;
    /* perm of the input's perm. */
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

    if (is_identity(&both) && rewrite_may_replace(r, node, inner->inputs[0])) {
        tensor_release(&both);
        rewrite_replace(r, node, inner->inputs[0], "undoes its input");
        return true;
    }
    struct edge inputs[] = {inner->inputs[0], rewrite_constant(r, node, "perm", &both)};
    struct node direct = *view;
    direct.inputs = inputs;
    rewrite_add(r, node, &direct);
    rewrite_note(r, node->name, "does what two transposes did");
    return true;
}
