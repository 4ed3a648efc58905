/* SPDX-License-Identifier: Apache-2.0
 *
 * Running shape functions over a graph, and the helpers they share.
 */
#include "graph/infer.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"

/* Returns the name of the declared argument that input `index` belongs to. */
static const char *input_name(const struct infer *infer, int index)
{
    const struct op *op = infer->node->op;
    return op->inputs[node_argument(infer->node, op->inputs, &index)].name;
}

int infer_rank(struct infer *infer, int input, int rank)
{
    const struct shape *s = infer_shape(infer, input);
    if (s->rank == SHAPE_UNKNOWN || s->rank == rank)
        return 0;
    static const char *const names[] = {"a scalar", "a vector", "a matrix"};
    if (rank < 3)
        return infer_fail(infer, "%s must be %s, not %s", input_name(infer, input), names[rank],
                          shape_text(s));
    return infer_fail(infer, "%s must have rank %d, not %s", input_name(infer, input), rank,
                      shape_text(s));
}

int infer_rank_at_least(struct infer *infer, int input, int rank)
{
    const struct shape *s = infer_shape(infer, input);
    if (s->rank == SHAPE_UNKNOWN || s->rank >= rank)
        return 0;
    return infer_fail(infer, "%s must have at least rank %d, not %s", input_name(infer, input),
                      rank, shape_text(s));
}

int infer_scalars(struct infer *infer, int from, int to)
{
    int code = 0;
    for (int i = from; i < to && !code; i++)
        code = infer_scalar(infer, i);
    return code;
}

int infer_merge(struct infer *infer, int a, int b, struct shape *merged)
{
    const struct shape *x = infer_shape(infer, a), *y = infer_shape(infer, b);
    if (shape_merge(x, y, merged))
        return 0;
    return infer_fail(infer, "%s and %s must have the same shape, not %s and %s",
                      input_name(infer, a), input_name(infer, b), shape_text(x), shape_text(y));
}

int infer_alike(struct infer *infer)
{
    return infer_merge(infer, 0, 1, &infer->out[0]);
}

bool infer_value_int(const struct infer *infer, int input, int64_t *value)
{
    const struct tensor *t = infer_value(infer, input);
    if (!t || tensor_count(t) != 1 || !dtype_is_integer(t->type))
        return false;
    *value = tensor_get_int64(t, 0);
    return true;
}

int infer_axis(struct infer *infer, int input, int rank, int *axis)
{
    int64_t value;
    int code = infer_scalar(infer, input);
    *axis = -1;
    if (code || rank < 0 || !infer_value_int(infer, input, &value))
        return code;
    if (!shape_axis(value, rank, axis))
        return infer_fail(infer, "%s %" PRId64 " is outside [%d, %d)", input_name(infer, input),
                          value, -rank, rank);
    return 0;
}

bool infer_shape_of_value(const struct tensor *value, struct shape *shape)
{
    if (!dtype_is_integer(value->type) || value->shape.rank > 1 ||
        tensor_count(value) > SHAPE_RANK_MAX)
        return false;
    *shape = (struct shape){.rank = (int)tensor_count(value)};
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = tensor_get_int64(value, i);
        shape->dims[i] = dim < 0 ? SHAPE_UNKNOWN : dim;
    }
    return true;
}

int infer_dims(struct infer *infer, int input, struct shape *shape)
{
    const struct tensor *dims = infer_value(infer, input);
    *shape = SHAPE_ANY;
    if (infer_vector(infer, input))
        return infer->err->code;
    if (dims && tensor_count(dims) > SHAPE_RANK_MAX)
        return infer_fail(infer, "a shape of %" PRId64 " dimensions: at most %d are possible",
                          tensor_count(dims), SHAPE_RANK_MAX);
    for (int64_t i = 0; dims && i < tensor_count(dims); i++)
        if (tensor_get_int64(dims, i) < 0)
            return infer_fail(infer, "dimension %" PRId64 " is negative: %" PRId64, i,
                              tensor_get_int64(dims, i));
    infer_value_shape(infer, input, shape);
    return 0;
}

int infer_sizes(struct infer *infer, int input, int rank, struct shape *sizes)
{
    if (infer_dims(infer, input, sizes))
        return infer->err->code;
    if (sizes->rank >= 0 && sizes->rank != rank)
        return infer_fail(infer, "sizes must have %d elements, not %d", rank, sizes->rank);
    if (sizes->rank < 0)
        *sizes = shape_unknown(rank);
    return 0;
}

int infer_unchanged(struct infer *infer)
{
    for (int i = 0; i < infer->n_out; i++)
        infer->out[i] = *infer_shape(infer, 0);
    return 0;
}

int infer_broadcast(struct infer *infer)
{
    const struct shape *x = infer_shape(infer, 0), *y = infer_shape(infer, 1);
    if (shape_broadcast(x, y, &infer->out[0]))
        return 0;
    return infer_fail(infer, "shapes %s and %s cannot be broadcast", shape_text(x), shape_text(y));
}

int infer_output_scalar(struct infer *infer)
{
    for (int i = 0; i < infer->n_out; i++)
        infer->out[i] = SHAPE_SCALAR;
    return 0;
}

int infer_all_scalars(struct infer *infer)
{
    infer_output_scalar(infer);
    return infer_scalars(infer, 0, infer->n_in);
}

int infer_output_declared(struct infer *infer)
{
    infer->out[0] = *node_attr(infer->node, "shape")->shape;
    return 0;
}

int infer_output_attribute(struct infer *infer)
{
    infer_output_scalar(infer);
    infer->out[0] = *node_attr(infer->node, "shape")->shape;
    return shape_is_known(&infer->out[0]) ? 0 : infer_fail(infer, "the shape must be known");
}

bool infer_value_unchanged(const struct infer *infer, struct shape *value)
{
    return infer_value_shape(infer, 0, value);
}

bool infer_value_joined(const struct infer *infer, int first, struct shape *value)
{
    *value = SHAPE_SCALAR;
    for (int i = first; i < infer->n_in; i++) {
        struct shape part;
        if (!infer_value_shape(infer, i, &part) || value->rank + part.rank > SHAPE_RANK_MAX)
            return false;
        memcpy(value->dims + value->rank, part.dims, (size_t)part.rank * sizeof *part.dims);
        value->rank += part.rank;
    }
    return true;
}

static int infer_run(struct infer *infer)
{
    for (int i = 0; i < infer->n_out; i++)
        infer->out[i] = SHAPE_ANY;
    const struct op_def *def = infer->node->op->def;
    for (int i = 0; infer->in && i < infer->n_in; i++)
        if (!infer->in[i] && strcmp(def->name, "Merge")) /* an input that will be closed later */
            return 0;
    int code = def->shape ? def->shape(infer) : 0;
    for (int i = 0; !code && i < infer->n_out; i++) {
        const struct shape *out = &infer->out[i];
        int64_t count = shape_count(out);
        if (count > TENSOR_BYTES_MAX || (count < 0 && shape_is_known(out)))
            return infer_fail(infer, "a result of shape %s is too large", shape_text(out));
    }
    return code;
}

/* ---- in a step ---- */

static const struct tensor *value_of_input(const struct infer *infer, int input)
{
    const struct infer_inputs *inputs = infer->context;
    return input >= inputs->from && input < inputs->to ? inputs->in[input] : NULL;
}

static bool value_shape_of_input(const struct infer *infer, int input, struct shape *shape)
{
    const struct tensor *value = value_of_input(infer, input);
    return value && infer_shape_of_value(value, shape);
}

int infer_from_inputs(const struct node *node, const struct infer_inputs *inputs, struct shape *out,
                      struct error *err)
{
    struct infer infer = {.node = node,
                          .tensors = inputs->in,
                          .out = out,
                          .n_in = inputs->n,
                          .n_out = node->n_outputs,
                          .value = value_of_input,
                          .value_shape = value_shape_of_input,
                          .context = inputs,
                          .err = err};
    return infer_run(&infer);
}

/* ---- constants ----
 *
 * What is known of a value before anything runs: whole constants, and integer vectors of which some
 * elements are known (the shape of a batch is [?,28,28,1]; so is a Reshape's argument that is
 * computed from it). */

/* Nodes visited for one value, with repeats: v + v of v + v of ... has 2^n paths. Also the limit of
 * nodes in a chain that only pass the value on. */
#define VISITS_MAX 1000
#define INPUTS_MAX 16 /* of a node whose value is known: a vector as short as a shape */

struct constant_search {
    const struct graph *graph;
    int *visits;
};

static bool known_vector(const struct constant_search *search, struct edge edge, struct shape *out);

static const struct node *passed_through(const struct graph *graph, struct edge *edge)
{
    const struct node *node = graph_node(graph, edge->node);
    for (int i = 0; i < VISITS_MAX && node_has(node, OP_PASSES) && edge_exists(node->inputs[0]);
         i++) {
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

/* ---- values that ops infer ---- */

static const struct tensor *constant_input(const struct infer *infer, int input)
{
    const struct constant_search *search = infer->context;
    return graph_constant(search->graph, infer->node->inputs[input]);
}

static bool vector_input(const struct infer *infer, int input, struct shape *shape)
{
    return known_vector(infer->context, infer->node->inputs[input], shape);
}

/* Returns whether the search continues through the node, all of whose inputs exist. */
static bool follows(const struct constant_search *search, const struct node *node,
                    struct shape *out)
{
    const struct node_output *in[INPUTS_MAX];
    if (!node->op->def->value || node->n_inputs > INPUTS_MAX)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        in[i] = graph_output(search->graph, node->inputs[i]);
    const struct infer infer = {.node = node,
                                .in = in,
                                .n_in = node->n_inputs,
                                .value = constant_input,
                                .value_shape = vector_input,
                                .context = search};
    if (!node->op->def->value(&infer, out))
        return false;
    for (int i = 0; i < out->rank && node->outputs[0].type == INT32; i++)
        if (out->dims[i] > INT32_MAX)
            out->dims[i] = SHAPE_UNKNOWN; /* the cast wraps or loses bits */
    return true;
}

static bool known_vector(const struct constant_search *search, struct edge edge, struct shape *out)
{
    const struct graph *graph = search->graph;
    if (++*search->visits > VISITS_MAX || !edge_exists(edge))
        return false;
    enum dtype type = graph_output(graph, edge)->type;
    if (type != INT32 && type != INT64)
        return false;
    const struct node *node = passed_through(graph, &edge);
    const struct shape *own = &node->outputs[edge.slot].shape;
    if (own->rank > 1)
        return false;
    if (node_is(node, "Const"))
        return infer_shape_of_value(node_attr(node, "value")->tensor, out);
    for (int i = 0; i < node->n_inputs; i++)
        if (!edge_exists(node->inputs[i]))
            return false;
    if (edge.slot == 0 && follows(search, node, out))
        return true;
    if (own->rank < 0 || (own->rank == 1 && (own->dims[0] < 0 || own->dims[0] > SHAPE_RANK_MAX)))
        return false;
    *out = shape_unknown(own->rank == 0 ? 1 : (int)own->dims[0]); /* at least the length is known */
    return true;
}

bool graph_constant_shape(const struct graph *graph, struct edge edge, struct shape *shape)
{
    int visits = 0;
    const struct constant_search search = {.graph = graph, .visits = &visits};
    return known_vector(&search, edge, shape);
}

bool graph_constant_axes(const struct graph *graph, struct edge edge, int rank, unsigned *axes)
{
    const struct tensor *list = graph_constant(graph, edge);
    *axes = 0;
    for (int64_t i = 0; list && i < tensor_count(list); i++) {
        int axis;
        if (!shape_axis(tensor_get_int64(list, i), rank, &axis))
            return false;
        *axes |= 1U << axis;
    }
    return list;
}

/* ---- over a graph ---- */

#define SMALL_INPUTS 16

static const struct tensor *value_in_graph(const struct infer *infer, int input)
{
    struct edge edge = infer->node->inputs[input];
    return edge_exists(edge) ? graph_constant(infer->context, edge) : NULL;
}

static bool value_shape_in_graph(const struct infer *infer, int input, struct shape *shape)
{
    struct edge edge = infer->node->inputs[input];
    return edge_exists(edge) && graph_constant_shape(infer->context, edge, shape);
}

int infer_node(const struct graph *graph, const struct node *node, const char *visited,
               struct shape *out, struct error *err)
{
    const struct node_output *small[SMALL_INPUTS], **in = small;
    if (node->n_inputs > SMALL_INPUTS)
        in = mem_array((size_t)node->n_inputs, sizeof *in);
    for (int i = 0; i < node->n_inputs; i++) {
        struct edge e = node->inputs[i];
        bool known = edge_exists(e) && (!visited || visited[e.node]);
        in[i] = known ? graph_output(graph, e) : NULL;
    }
    struct infer infer = {.node = node,
                          .in = in,
                          .out = out,
                          .n_in = node->n_inputs,
                          .n_out = node->n_outputs,
                          .value = value_in_graph,
                          .value_shape = value_shape_in_graph,
                          .context = graph,
                          .err = err};
    int code = infer_run(&infer);
    if (in != small)
        mem_free(in);
    return code;
}

/* One pass in topological order. Each pass can only lose information about shapes (join), so the
 * passes end. */
static int infer_pass(struct graph *graph, const int *order, char *visited, bool *changed,
                      struct error *err)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, order[i]);
        struct shape *out = mem_array((size_t)node->n_outputs, sizeof *out);
        int code = infer_node(graph, node, visited, out, err);
        for (int k = 0; !code && k < node->n_outputs; k++) {
            struct shape joined =
                visited[node->id] ? shape_join(&node->outputs[k].shape, &out[k]) : out[k];
            if (!shape_equal(&joined, &node->outputs[k].shape))
                *changed = true;
            node->outputs[k].shape = joined;
        }
        mem_free(out);
        if (code)
            return node_fail(node, err);
        visited[node->id] = 1;
    }
    return 0;
}

int graph_infer(struct graph *graph, struct error *err)
{
    if (!graph->nodes.n)
        return 0;
    int *order = mem_array(graph->nodes.n, sizeof *order);
    char *visited = mem_alloc(graph->nodes.n);
    int code = graph_order(graph, order, err);
    bool changed = false; /* with a loop: the first pass does not know its back edges */
    for (size_t i = 0; i < graph->nodes.n && !changed; i++)
        changed = node_is(graph_node(graph, (int)i), "NextIteration");
    if (!code)
        code = infer_pass(graph, order, visited, &(bool){false}, err);
    while (!code && changed) {
        changed = false;
        code = infer_pass(graph, order, visited, &changed, err);
    }
    mem_free(visited);
    mem_free(order);
    return code;
}
