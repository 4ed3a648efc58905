/* SPDX-License-Identifier: Apache-2.0
 *
 * Contributions to the gradient of an edge, and their sum. Row-wise contributions stay rows as long
 * as there are no dense ones; a single dense one makes the sum dense.
 */
#include "pass/gradient/grad_engine.h"

static struct contributions *list_of(struct grad_engine *e, struct edge edge)
{
    struct contributions **lists = &e->contributions[edge.node];
    if (!*lists)
        *lists = arena_array(&e->arena, (size_t)graph_node(e->graph, edge.node)->n_outputs,
                             sizeof **lists);
    return &(*lists)[edge.slot];
}

void grad_contribute(struct grad_engine *e, struct edge edge, struct gradient gradient)
{
    struct contributions *list = list_of(e, edge);
    struct contribution *made = arena_alloc(&e->arena, sizeof *made);
    made->gradient = gradient;
    if (list->first)
        list->last->next = made;
    else
        list->first = made;
    list->last = made;
}

void grad_forget(struct grad_engine *e, struct edge edge)
{
    *list_of(e, edge) = (struct contributions){0};
}

struct edge gradient_dense(struct build *b, const struct gradient *gradient, struct edge x)
{
    if (!edge_exists(gradient->indices))
        return gradient->values;
    struct edge begin = build_ints(b, (int64_t[]){0}, 1), one = build_ints(b, (int64_t[]){1}, 1);
    struct edge slice[] = {build_unary(b, "Shape", x), begin, one};
    struct edge rows = build_unary(b, "Squeeze", build_op(b, "Slice", slice, 3, NULL, 0));
    const struct shape *shape = build_shape(b, x);
    if (shape->rank > 0 && shape->dims[0] >= 0) {
        int32_t count = (int32_t)shape->dims[0];
        struct tensor t = tensor_borrow(INT32, &SHAPE_SCALAR, &count);
        rows = build_const(b, &t);
    }
    struct edge inputs[] = {gradient->values, gradient->indices, rows};
    return build_op(b, "UnsortedSegmentSum", inputs, 3, NULL, 0);
}

/* Rows can be put one after the other if all are rows and their numbers of one type. */
static bool stay_rows(const struct build *b, const struct contribution *list)
{
    enum dtype type = build_type(b, list->gradient.indices);
    for (; list; list = list->next)
        if (!edge_exists(list->gradient.indices) || build_type(b, list->gradient.indices) != type)
            return false;
    return true;
}

struct gradient grad_total(struct grad_engine *e, struct grad_space *space, struct edge edge)
{
    struct contributions *list = list_of(e, edge);
    struct contribution *first = list->first;
    struct gradient none = {EDGE_NONE, EDGE_NONE};
    int n = 0, mark = (int)e->graph->nodes.n;
    for (const struct contribution *c = first; c; c = c->next)
        n++;
    if (n < 2)
        return n ? first->gradient : none;
    struct build b = grad_build(e, NULL, graph_node(e->graph, edge.node));
    const struct contribution *c = first;
    struct edge *values = arena_array(&e->arena, (size_t)n + 1, sizeof *values);
    if (stay_rows(&b, first)) { /* their values and indices one after the other */
        struct edge *indices = arena_array(&e->arena, (size_t)n + 1, sizeof *indices);
        for (int i = 1; i <= n; i++, c = c->next) {
            values[i] = c->gradient.values;
            indices[i] = c->gradient.indices;
        }
        values[0] = indices[0] = build_scalar(&b, INT32, 0);
        first->gradient.values = build_op(&b, "Concat", values, n + 1, NULL, 0);
        first->gradient.indices = build_op(&b, "Concat", indices, n + 1, NULL, 0);
    } else {
        for (int i = 0; i < n; i++, c = c->next)
            values[i] = gradient_dense(&b, &c->gradient, edge);
        first->gradient = (struct gradient){build_op(&b, "AddN", values, n, NULL, 0), EDGE_NONE};
    }
    first->next = NULL;
    list->last = first;
    if (b.failed || grad_adopt(e, space, mark))
        return none;
    return first->gradient;
}

struct edge grad_total_dense(struct grad_engine *e, struct grad_space *space, struct edge edge)
{
    struct gradient total = grad_total(e, space, edge);
    if (!edge_exists(total.indices))
        return total.values;
    struct build b = grad_build(e, NULL, graph_node(e->graph, edge.node));
    int mark = (int)e->graph->nodes.n;
    struct edge dense = gradient_dense(&b, &total, edge);
    return b.failed || grad_adopt(e, space, mark) ? EDGE_NONE : dense;
}
