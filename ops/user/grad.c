/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradient functions of custom ops.
 */
#include "ops/user/internal.h"

void user_gradient(struct grad *grad)
{
    struct tf_grad handle = {&user_functions, {&user_functions, grad->node}, grad};
    if (user_row(grad->node)->gradient(&handle) && !grad->b.err->code)
        user_grad_fail(&handle, "its gradient function failed");
}

static struct tf_edge out(struct edge edge)
{
    return (struct tf_edge){edge.node, edge.slot};
}

/* Converts an edge; one that is not in the graph fails. */
static struct edge in(struct grad *grad, struct tf_edge edge)
{
    const struct graph *graph = grad->b.graph;
    if (edge.node >= 0 && (size_t)edge.node < graph->nodes.n && edge.slot >= 0 &&
        edge.slot < graph_node(graph, edge.node)->n_outputs)
        return (struct edge){edge.node, edge.slot};
    if (!grad->b.err->code)
        error_set(grad->b.err, ERR_DATA, "its gradient function uses a tensor that does not exist");
    return EDGE_NONE;
}

const tf_node *user_grad_node(const tf_grad *grad)
{
    return &grad->node;
}

struct tf_edge user_grad_input(const tf_grad *grad, int i)
{
    const struct node *node = grad->grad->node;
    return out(i >= 0 && i < node->n_inputs ? node->inputs[i] : EDGE_NONE);
}

struct tf_edge user_grad_output(const tf_grad *grad, int k)
{
    const struct node *node = grad->grad->node;
    return out(k >= 0 && k < node->n_outputs ? grad_output(grad->grad, k) : EDGE_NONE);
}

struct tf_edge user_grad_out(tf_grad *grad, int k, int or_zeros)
{
    if (k < 0 || k >= grad->grad->node->n_outputs)
        return out(EDGE_NONE);
    return out(or_zeros ? grad_out_or_zeros(grad->grad, k) : grad->grad->out[k]);
}

/* Parses the attributes of a new node from text, by its op's declaration. A missing op is reported
 * when the node is made. */
static void parse_attrs(struct grad *grad, struct arena *arena, const char *name,
                        const struct tf_op_attr *texts, int n, struct attr *attrs)
{
    const struct op *op = registry_find(grad->b.graph->registry, name);
    for (int i = 0; op && i < n; i++) {
        int at = op_find_attr(op, texts[i].name);
        attrs[i].name = texts[i].name;
        if (at < 0) {
            error_set(grad->b.err, ERR_DATA, "%s has no attribute '%s'", name, texts[i].name);
            return;
        }
        if (op->attrs[at].kind == ATTR_STRING) {
            attrs[i].value = attr_string(texts[i].value);
            continue;
        }
        const char *end = attr_parse(arena, texts[i].value, op->attrs[at].kind, DTYPE_INVALID,
                                     &attrs[i].value, grad->b.err);
        if (end && *end)
            error_set(grad->b.err, ERR_DATA, "unexpected '%.20s'", end);
        if (!end || *end) {
            error_prefix(grad->b.err, "%s: %s=%s: ", name, texts[i].name, texts[i].value);
            return;
        }
    }
}

struct tf_edge user_grad_op(tf_grad *grad, const char *op, const struct tf_edge *inputs,
                            int n_inputs, const struct tf_op_attr *attrs, int n_attrs)
{
    struct grad *own = grad->grad;
    struct arena arena = ARENA_INIT;
    struct edge *edges = arena_array(&arena, (size_t)n_inputs + 1, sizeof *edges);
    struct attr *values = arena_array(&arena, (size_t)n_attrs + 1, sizeof *values);
    for (int i = 0; i < n_inputs; i++)
        edges[i] = in(own, inputs[i]);
    if (!own->b.err->code)
        parse_attrs(own, &arena, op, attrs, n_attrs, values);
    struct edge made = build_op(&own->b, op, edges, n_inputs, values, n_attrs);
    arena_release(&arena);
    return out(made);
}

struct tf_edge user_grad_scalar(tf_grad *grad, struct tf_edge like, double value)
{
    struct edge edge = in(grad->grad, like);
    return out(build_scalar_like(&grad->grad->b, edge, value));
}

void user_grad_set(tf_grad *grad, int i, struct tf_edge gradient)
{
    struct edge edge = in(grad->grad, gradient);
    if (i >= 0 && i < grad->grad->node->n_inputs)
        grad->grad->in[i] = edge;
}

int user_grad_finish(const tf_grad *grad)
{
    return grad->grad->b.err->code;
}

int user_grad_fail(tf_grad *grad, const char *text)
{
    if (!grad->grad->b.err->code)
        error_set(grad->grad->b.err, ERR_DATA, "%s", text);
    return grad->grad->b.err->code;
}
