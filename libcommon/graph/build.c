/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build.h"

#include <stdio.h>

#include "base/memory.h"

struct edge build_op(struct build *b, const char *op, const struct edge *inputs, int n_inputs,
                     const struct attr *attrs, int n_attrs)
{
    if (b->err->code)
        return EDGE_NONE;
    for (int i = 0; i < n_inputs; i++) {
        if (!edge_exists(inputs[i])) {
            error_set(b->err, ERR_INTERNAL, "%s: input %d does not exist", op, i);
            return EDGE_NONE;
        }
    }
    char base[1024];
    bool scoped = b->scope && *b->scope;
    snprintf(base, sizeof base, "%s%s%s", scoped ? b->scope : "", scoped ? "/" : "", op);
    struct attr *all = mem_array((size_t)n_attrs + 1, sizeof *all);
    for (int i = 0; i < n_attrs; i++)
        all[i] = attrs[i];
    const char *group[] = {b->colocate};
    if (b->colocate)
        all[n_attrs++] =
            (struct attr){"_class", {.kind = ATTR_LIST_STRING, .n = 1, .strings = group}};
    struct node_spec spec = {.op = op,
                             .name = graph_unique_name(b->graph, base),
                             .inputs = inputs,
                             .n_inputs = n_inputs,
                             .controls = b->controls,
                             .n_controls = b->n_controls,
                             .attrs = all,
                             .n_attrs = n_attrs,
                             .device = b->device,
                             .file = b->file,
                             .line = b->line};
    struct node *node = graph_add(b->graph, &spec, b->err);
    mem_free(all);
    return node ? (struct edge){node->id, 0} : EDGE_NONE;
}

struct edge build_unary(struct build *b, const char *op, struct edge x)
{
    return build_op(b, op, &x, 1, NULL, 0);
}

struct edge build_binary(struct build *b, const char *op, struct edge x, struct edge y)
{
    return build_op(b, op, (struct edge[]){x, y}, 2, NULL, 0);
}

struct edge build_after(struct build *b, struct edge x, const int *controls, int n)
{
    struct build after = *b;
    after.controls = controls;
    after.n_controls = n;
    return build_unary(&after, "Identity", x);
}

struct edge build_const(struct build *b, const struct tensor *value)
{
    struct attr attrs[] = {{"dtype", attr_type(value->type)}, {"value", attr_tensor(value)}};
    return build_op(b, "Const", NULL, 0, attrs, 2);
}

struct edge build_scalar(struct build *b, enum dtype type, double value)
{
    uint64_t element = 0;
    struct tensor t = tensor_borrow(type, &SHAPE_SCALAR, &element);
    tensor_set_float64(&t, 0, value);
    return build_const(b, &t);
}

struct edge build_scalar_like(struct build *b, struct edge x, double value)
{
    return b->err->code ? EDGE_NONE : build_scalar(b, build_type(b, x), value);
}

struct edge build_ints(struct build *b, const int64_t *values, int n)
{
    int32_t *elements = mem_array((size_t)n + 1, sizeof *elements);
    for (int i = 0; i < n; i++)
        elements[i] = (int32_t)values[i];
    struct shape shape = shape_vector(n);
    struct tensor t = tensor_borrow(INT32, &shape, elements);
    struct edge edge = build_const(b, &t);
    mem_free(elements);
    return edge;
}

enum dtype build_type(const struct build *b, struct edge x)
{
    return edge_exists(x) ? graph_output(b->graph, x)->type : DTYPE_INVALID;
}

const struct shape *build_shape(const struct build *b, struct edge x)
{
    static const struct shape unknown = {.rank = SHAPE_UNKNOWN};
    return edge_exists(x) ? &graph_output(b->graph, x)->shape : &unknown;
}

struct edge build_cast(struct build *b, struct edge x, enum dtype type)
{
    const struct attr attr = {"DstT", attr_type(type)};
    return !b->err->code && build_type(b, x) == type ? x : build_op(b, "Cast", &x, 1, &attr, 1);
}
