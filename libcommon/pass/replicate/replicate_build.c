/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that replication makes. Once something has failed they are edges without a node, and
 * r->err says what it was.
 */
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_private.h"

int replicate_op(struct replicator *r, const char *op, const char *name, struct edge a,
                 struct edge b)
{
    struct edge inputs[] = {a, b};
    struct node_spec spec = {
        .op = op, .inputs = inputs, .n_inputs = edge_exists(a) + edge_exists(b)};
    return r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec);
}

struct edge replicate_number(struct replicator *r, const char *name, enum dtype type, double value)
{
    struct tensor number = {.type = type, .data = arena_alloc(&r->to->arena, sizeof(double))};
    tensor_set_float64(&number, 0, value);
    struct attr attrs[] = {{"dtype", attr_type(type)}, {"value", attr_tensor(&number)}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

struct edge replicate_variable(struct replicator *r, const struct attr *mark, const char *name,
                               enum dtype type, const struct shape *shape)
{
    struct attr attrs[] = {{"dtype", attr_type(type)},
                           {"shape", attr_shape(shape)},
                           *mark,
                           {"_trainable", attr_bool(false)}};
    struct node_spec spec = {.op = "Variable", .attrs = attrs, .n_attrs = 4};
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

struct edge replicate_local(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape)
{
    const struct attr mark = {WORKER_LOCAL, attr_bool(true)};
    return replicate_variable(r, &mark, name, type, shape);
}

const char *replicate_text(struct replicator *r, const char *name, const char *suffix)
{
    return arena_printf(&r->to->arena, "%s/%s", name, suffix);
}

struct edge replicate_vector(struct replicator *r, const char *name, const int64_t *numbers, int n)
{
    struct tensor vector = {
        .type = INT64,
        .shape = shape_vector(n),
        .data = arena_copy(&r->to->arena, numbers, (size_t)(n ? n : 1) * sizeof *numbers)};
    struct attr attrs[] = {{"dtype", attr_type(INT64)}, {"value", attr_tensor(&vector)}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    return replicate_out(r->err->code ? -1 : replicate_add(r, WORKER_DEVICE, name, &spec));
}

struct edge replicate_zeros(struct replicator *r, const char *name, enum dtype type,
                            const struct shape *shape)
{
    struct edge zero = replicate_number(r, replicate_text(r, name, "zero"), type, 0);
    struct edge size =
        replicate_vector(r, replicate_text(r, name, "shape"), shape->dims, shape->rank);
    return replicate_out(replicate_op(r, "Fill", replicate_text(r, name, "zeros"), size, zero));
}

const char *replicate_name_of(struct replicator *r, struct edge edge, const char *suffix)
{
    return replicate_text(r, graph_node(r->from, edge.node)->name, suffix);
}
