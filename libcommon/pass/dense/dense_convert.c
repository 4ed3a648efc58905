/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in other forms. Gradients are those of the mean of all workers' losses where workers
 * compute together, and of the worker's own loss where it is alone: from the one to the other they
 * are divided by the number of workers, or multiplied.
 */
#include <string.h>

#include "pass/dense/dense_private.h"

int dense_refuse(struct dense_cutter *c, const struct node *node, const char *why)
{
    if (c->err->code)
        return c->err->code;
    error_set(c->err, ERR_DATA, "%s", why);
    return node_fail(node, c->err);
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

/* Rows of workers are along the first axis: that one becomes it, and back. */
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

/* Where this worker's part is of a value like that. */
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

/* ---- this worker's rows ---- */

struct edge dense_row_count(struct build *b, struct edge x)
{
    return build_binary(b, "Gather", build_unary(b, "Shape", x), build_ints(b, (int64_t[]){0}, 1));
}

/* ---- from form to form ---- */

static struct edge source(const struct dense_cutter *c, struct edge edge)
{
    return rewrite_edge(&c->r, edge);
}

static struct edge to_own(struct dense_cutter *c, struct edge edge, struct dense_layout from)
{
    const struct shape *shape = &dense_output(c, edge)->shape;
    struct edge x = source(c, edge);
    if (from.form == DENSE_CUT)
        x = pad_part(c, x, shape, from.axis);
    /* The shape that the worker's own rows of a value have. */
    struct build *b = &c->b;
    struct edge rows = source(c, c->rows[dense_pass(graph_node(c->from, edge.node))]);
    struct edge parts[3] = {build_scalar(b, INT32, 0)};
    parts[1] = dense_row_count(b, rows);
    parts[2] = build_ints(b, shape->dims + 1, shape->rank - 1);
    struct edge all = shape->rank > 1 ? build_op(b, "Concat", parts, 3, NULL, 0) : parts[1];
    /* A sum is cut to the worker's rows; of a value that all have, the first worker's counts. */
    bool sums = from.form != DENSE_ALL;
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
                            struct dense_layout from)
{
    const struct node_output *output = dense_output(c, edge);
    struct edge x = source(c, edge);
    if (from.form == DENSE_SUM)
        return reduce(c, x, "sum");
    if (from.form == DENSE_CUT)
        return swap_and_add(c, "CollectiveAllGather", x, output->shape.rank, from.axis);
    if (from.form != DENSE_OWN)
        return x;
    bool is_mean = dtype_is_floating(output->type);
    if (!dense_is_rows(c, edge))
        return reduce(c, x, is_mean ? "mean" : "first");
    if (dense_has(c, edge.node, DENSE_GRADIENT) && !is_mean) {
        dense_refuse(c, reader, "it is given a gradient that is no float");
        return EDGE_NONE;
    }
    struct edge *rows = &c->rows[dense_pass(graph_node(c->from, edge.node))];
    *rows = edge_exists(*rows) ? *rows : edge;
    return dense_has(c, edge.node, DENSE_GRADIENT)
               ? reduce(c, x, "mean_rows")
               : collective_add(c, "CollectiveAllGather", &x, 1, NULL);
}

static struct edge to_cut(struct dense_cutter *c, const struct node *reader, struct edge edge,
                          struct dense_layout from, int axis)
{
    const struct shape *shape = &dense_output(c, edge)->shape;
    struct dense_layout whole = {DENSE_ALL, 0};
    if (shape->dims[axis] == SHAPE_UNKNOWN) {
        dense_refuse(c, reader, "its input would be cut along an axis whose length is not known");
        return EDGE_NONE;
    }
    if (from.form == DENSE_SUM)
        return swap_and_add(c, "CollectiveReduceScatter", source(c, edge), shape->rank, axis);
    return slice_part(c, dense_convert(c, reader, edge, whole), shape, axis, NULL);
}

static void begin(struct dense_cutter *c, struct edge edge)
{
    const struct node *node = graph_node(c->from, edge.node);
    c->b.scope = arena_printf(&c->to->arena, "dense/%s", node->name);
    c->b.device = node->device;
    c->b.file = node->file;
    c->b.line = node->line;
    c->priority = node_priority(node);
}

struct edge dense_convert(struct dense_cutter *c, const struct node *reader, struct edge edge,
                          struct dense_layout layout)
{
    struct dense_layout from = dense_layout_of(c, edge);
    struct edge result;
    if (layout.form == DENSE_OWN && !dense_is_rows(c, edge) && from.form != DENSE_OWN)
        layout.form = DENSE_SAME;
    if (layout.form == DENSE_SAME && from.form == DENSE_ALL)
        layout.form = DENSE_ALL;
    if (layout_equal(from, layout) || (from.form == DENSE_SAME && layout.form != DENSE_CUT))
        return source(c, edge);
    if (layout.form == DENSE_SAME)
        layout.form = DENSE_ALL;
    for (size_t i = 0; i < c->converted.n; i++)
        if (edge_equal(c->converted.items[i].edge, edge) &&
            layout_equal(c->converted.items[i].layout, layout))
            return c->converted.items[i].result;
    begin(c, edge);
    if (layout.form == DENSE_OWN)
        result = to_own(c, edge, from);
    else if (layout.form == DENSE_CUT)
        result = to_cut(c, reader, edge, from, layout.axis);
    else if (layout.form == DENSE_SUM)
        result = pad_part(c, source(c, edge), &dense_output(c, edge)->shape, from.axis);
    else
        result = to_whole(c, reader, edge, from);
    vec_push_in(&c->arena, &c->converted, ((struct conversion){edge, result, layout}));
    return result;
}

struct edge dense_initial(struct dense_cutter *c, const struct node *variable, struct edge edge)
{
    const struct attr mark = {WORKER_PART_INITIAL, attr_bool(true)};
    begin(c, (struct edge){variable->id, 0});
    return slice_part(c, source(c, edge), &variable->outputs[0].shape, c->cut[variable->id], &mark);
}
