/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of a value before anything runs: whole constants, and integer vectors of which some
 * elements are known (the shape of a batch is [?,28,28,1], and so is a Reshape's argument made of
 * it).
 */
#include <string.h>

#include "graph/infer.h"

/* Nodes looked at for one value, repeats counted: v + v of v + v of ... has 2^n paths. */
#define VISITS_MAX 1000

struct search {
    const struct graph *graph;
    int visits;
};

static bool known_vector(struct search *search, struct edge edge, struct shape *out);

static const struct node *passed_through(const struct graph *graph, struct edge *edge)
{
    const struct node *node = graph_node(graph, edge->node);
    while ((node_is(node, "Identity") || node_is(node, "StopGradient")) &&
           edge_exists(node->inputs[0])) {
        *edge = node->inputs[0];
        node = graph_node(graph, edge->node);
    }
    return node;
}

const struct tensor *graph_constant(const struct graph *graph, struct edge edge)
{
    const struct node *node = passed_through(graph, &edge);
    const struct attr_value *value = node_is(node, "Const") ? node_attr(node, "value") : NULL;
    return value ? value->tensor : NULL;
}

static bool is_int(const struct graph *graph, struct edge edge)
{
    enum dtype type = graph_node(graph, edge.node)->outputs[edge.slot].type;
    return type == INT32 || type == INT64;
}

static bool from_constant(const struct tensor *t, struct shape *out)
{
    if (t->shape.rank > 1 || tensor_count(t) > SHAPE_RANK_MAX)
        return false;
    *out = (struct shape){.rank = (int)tensor_count(t)};
    for (int i = 0; i < out->rank; i++) {
        int64_t v = tensor_get_int64(t, i);
        out->dims[i] = v < 0 ? SHAPE_UNKNOWN : v;
    }
    return true;
}

static bool concatenate(struct search *search, const struct node *node, int first,
                        struct shape *out)
{
    *out = SHAPE_SCALAR;
    for (int i = first; i < node->n_inputs; i++) {
        struct shape part;
        if (!known_vector(search, node->inputs[i], &part) || out->rank + part.rank > SHAPE_RANK_MAX)
            return false;
        memcpy(out->dims + out->rank, part.dims, (size_t)part.rank * sizeof *part.dims);
        out->rank += part.rank;
    }
    return true;
}

static bool arithmetic(const char *op, int64_t a, int64_t b, int64_t *result)
{
    if (!strcmp(op, "Add"))
        return !__builtin_add_overflow(a, b, result);
    if (!strcmp(op, "Sub"))
        return !__builtin_sub_overflow(a, b, result) && *result >= 0;
    if (!strcmp(op, "Mul"))
        return !__builtin_mul_overflow(a, b, result);
    if (b == 0)
        return false;
    *result = a / b; /* FloorDiv and Div: both operands are not negative here */
    return true;
}

static bool element_wise(struct search *search, const struct node *node, struct shape *out)
{
    struct shape a, b;
    if (!known_vector(search, node->inputs[0], &a) || !known_vector(search, node->inputs[1], &b))
        return false;
    if (a.rank != b.rank && a.rank != 1 && b.rank != 1)
        return false;
    out->rank = a.rank > b.rank ? a.rank : b.rank;
    for (int i = 0; i < out->rank; i++) {
        int64_t x = a.dims[a.rank == 1 ? 0 : i], y = b.dims[b.rank == 1 ? 0 : i];
        if (x < 0 || y < 0 || !arithmetic(node->op->def->name, x, y, &out->dims[i]))
            out->dims[i] = SHAPE_UNKNOWN;
    }
    return true;
}

/* A scalar or vector taken out of a known vector: v[begin], v[begin:end]. */
static bool strided_slice(struct search *search, const struct node *node, struct shape *out)
{
    struct shape v;
    const struct graph *graph = search->graph;
    const struct tensor *begin = graph_constant(graph, node->inputs[1]);
    const struct tensor *end = graph_constant(graph, node->inputs[2]);
    const struct tensor *step = graph_constant(graph, node->inputs[3]);
    if (!begin || !end || !step || tensor_count(begin) != 1 || tensor_get_int64(step, 0) != 1 ||
        node_int(node, "ellipsis_mask") || node_int(node, "new_axis_mask") ||
        !known_vector(search, node->inputs[0], &v))
        return false;
    int64_t from = tensor_get_int64(begin, 0), to = tensor_get_int64(end, 0);
    from = node_int(node, "begin_mask") ? 0 : from < 0 ? from + v.rank : from;
    to = node_int(node, "end_mask") ? v.rank : to < 0 ? to + v.rank : to;
    if (node_int(node, "shrink_axis_mask"))
        to = from + 1;
    to = to > v.rank ? v.rank : to;
    if (from < 0 || from > to)
        return false;
    *out = shape_of((int)(to - from), v.dims + from);
    return true;
}

static bool computed(struct search *search, const struct node *node, struct shape *out)
{
    const char *op = node->op->def->name;
    if (!strcmp(op, "Pack") || !strcmp(op, "Concat"))
        return concatenate(search, node, *op == 'C', out);
    if (!strcmp(op, "Add") || !strcmp(op, "Sub") || !strcmp(op, "Mul") || !strcmp(op, "Div") ||
        !strcmp(op, "FloorDiv"))
        return element_wise(search, node, out);
    if (!strcmp(op, "StridedSlice"))
        return strided_slice(search, node, out);
    if (!strcmp(op, "ExpandDims") || !strcmp(op, "Cast") || !strcmp(op, "Squeeze"))
        return is_int(search->graph, node->inputs[0]) && known_vector(search, node->inputs[0], out);
    return false;
}

static bool known_vector(struct search *search, struct edge edge, struct shape *out)
{
    const struct graph *graph = search->graph;
    if (++search->visits > VISITS_MAX || !edge_exists(edge) || !is_int(graph, edge))
        return false;
    const struct node *node = passed_through(graph, &edge);
    const struct shape *own = &node->outputs[edge.slot].shape;
    if (own->rank > 1)
        return false;
    if (node_is(node, "Const"))
        return from_constant(node_attr(node, "value")->tensor, out);
    for (int i = 0; i < node->n_inputs; i++)
        if (!edge_exists(node->inputs[i]))
            return false;
    if (node_is(node, "Shape") || node_is(node, "Rank") || node_is(node, "Size")) {
        const struct edge *in = &node->inputs[0];
        const struct shape *s = &graph_node(graph, in->node)->outputs[in->slot].shape;
        if (s->rank == SHAPE_UNKNOWN)
            return false;
        *out = node_is(node, "Shape")  ? *s
               : node_is(node, "Rank") ? shape_vector(s->rank)
                                       : shape_vector(shape_count(s));
        return true;
    }
    if (computed(search, node, out))
        return true;
    if (own->rank < 0 || (own->rank == 1 && (own->dims[0] < 0 || own->dims[0] > SHAPE_RANK_MAX)))
        return false;
    out->rank = own->rank == 0 ? 1 : (int)own->dims[0]; /* at least the length is known */
    for (int i = 0; i < out->rank; i++)
        out->dims[i] = SHAPE_UNKNOWN;
    return true;
}

bool graph_constant_shape(const struct graph *graph, struct edge edge, struct shape *shape)
{
    struct search search = {.graph = graph};
    return known_vector(&search, edge, shape);
}
