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
