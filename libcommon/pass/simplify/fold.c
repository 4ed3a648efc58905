/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant folding: a node whose inputs are all constants becomes a constant, computed by the
 * kernels that would compute it in each step; for Shape, Size and Rank it suffices to know the
 * shape. Constants without control edges are the start. Not folded: nodes that have state, steer,
 * may be fed or fail; results larger than FOLD_BYTES_MAX, or that would make the graph much larger
 * than the inputs that they replace (a large Fill).
 */

#include "graph/frames.h"
#include "graph/infer.h"
#include "pass/rewrite.h"
#include "pass/simplify/simplify.h"

#define SMALL_BYTES 4096 /* always worth a constant */

struct folder {
    struct rewrite r;
    char *constant;        /* by node: its outputs can be computed now */
    struct tensor *values; /* by output (rewrite.first): computed values; zeroed: none */
    VEC(struct edge) wanted;
};

/* ---- foldable nodes ---- */

static bool is_worth(const struct graph *graph, const struct node *node, int64_t bytes)
{
    int64_t input_bytes = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct node_output *input = graph_output(graph, node->inputs[i]);
        int64_t own = shape_bytes(&input->shape, input->type);
        input_bytes += own > 0 ? own : 0;
    }
    return bytes <= SMALL_BYTES || (bytes <= FOLD_BYTES_MAX && bytes <= 2 * input_bytes);
}

/* A Const counts as folded; an Identity is left to arithmetic simplification, which removes it. */
static bool may_fold(const struct folder *f, const struct node *node)
{
    if (f->r.flags[node->id] & (REWRITE_STATEFUL | REWRITE_OPAQUE) ||
        node_has(node, OP_CONTROL_FLOW | OP_FED))
        return false;
    if (node->n_controls || !node->n_outputs || node->op->def->identity.when == SAME_ALWAYS ||
        node_attr(node, "_loss"))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (!f->constant[node->inputs[i].node])
            return false;
    for (int i = 0; i < node->n_outputs; i++)
        if (!is_worth(f->r.from, node, shape_bytes(&node->outputs[i].shape, node->outputs[i].type)))
            return node_is(node, "Const");
    return node->n_inputs > 0 || node_is(node, "Const");
}

/* ---- known shapes ---- */

static bool fits(const struct shape *dims, enum dtype type)
{
    for (int i = 0; i < dims->rank; i++)
        if (dims->dims[i] < 0 || (type == INT32 && dims->dims[i] > INT32_MAX))
            return false;
    return type == INT32 || type == INT64;
}

/* Folds Shape, Size or Rank of a known shape, unless something depends on whether the node runs. */
static void fold_shape(struct folder *f, const struct node *node)
{
    const struct frames *frames = f->r.frames;
    bool asks = node_has(node, OP_SHAPE_ONLY) && node->op->def->value;
    if (!asks || node->n_controls || f->constant[node->id] ||
        f->r.flags[node->id] & (REWRITE_OPAQUE | REWRITE_STATEFUL))
        return;
    if (frames &&
        (frames->frame[node->id] != FRAME_ROOT || frames->condition[node->id] != CONDITION_NONE))
        return;
    struct shape dims;
    struct error err = ERROR_INIT;
    const struct node_output *own = &node->outputs[0];
    struct tensor *value = &f->values[f->r.first[node->id]];
    if (!graph_constant_shape(f->r.from, (struct edge){node->id, 0}, &dims) ||
        !fits(&dims, own->type) || !shape_is_known(&own->shape) ||
        tensor_alloc(value, own->type, &own->shape, &err))
        return;
    for (int i = 0; i < dims.rank; i++)
        tensor_set_int64(value, i, dims.dims[i]);
}

/* ---- evaluation ---- */

/* Collects an output of a folded node that a node that is not folded, or a name, needs. */
static void want(struct folder *f, char *wanted, struct edge edge)
{
    const struct node *node = graph_node(f->r.from, edge.node);
    if (edge.slot == CONTROL_SLOT || !f->constant[edge.node] || node_is(node, "Const"))
        return;
    int place = f->r.first[edge.node] + edge.slot;
    if (!wanted[place]) {
        wanted[place] = 1;
        vec_push_in(&f->r.arena, &f->wanted, edge);
    }
}

/* Evaluates all at once; if that fails, one by one, to find those that fail. */
static void evaluate(struct folder *f)
{
    const struct fold_evaluator *e = f->r.options->evaluator;
    struct error err = ERROR_INIT;
    int n = (int)f->wanted.n;
    if (!e || !n)
        return;
    int *copy = arena_array(&f->r.arena, f->r.from->nodes.n, sizeof *copy);
    /* Copy only the constant nodes that the wanted edges need, so that evaluations are small. */
    struct graph *part = graph_new(f->r.from->registry);
    graph_each_ordered(node, f->r.from, f->r.order) {
        if (!f->constant[node->id])
            continue;
        struct node *made = graph_add_copy(part, node);
        made->device = made->assigned = "";
        for (int k = 0; k < node->n_inputs; k++)
            made->inputs[k].node = copy[node->inputs[k].node];
        copy[node->id] = made->id;
    }
    struct edge *edges = arena_array(&f->r.arena, (size_t)n, sizeof *edges);
    struct tensor *values = arena_array(&f->r.arena, (size_t)n, sizeof *values);
    for (int i = 0; i < n; i++)
        edges[i] = (struct edge){copy[f->wanted.items[i].node], f->wanted.items[i].slot};
    bool all = !e->evaluate(e->context, part, edges, n, values, &err);
    for (int i = 0; i < n; i++) {
        error_clear(&err);
        if (!all && !(n > 1 && !e->evaluate(e->context, part, &edges[i], 1, &values[i], &err)))
            continue;
        struct edge edge = f->wanted.items[i];
        struct tensor *value = &values[i];
        const struct node *node = graph_node(f->r.from, edge.node);
        if (is_worth(f->r.from, node, (int64_t)tensor_bytes(value)))
            f->values[f->r.first[edge.node] + edge.slot] = *value;
        else
            tensor_release(value);
    }
    graph_free(part);
}

/* ---- the new graph ---- */

int pass_fold(const struct graph *from, const struct pass_options *options, struct graph **to,
              int *n_changes, struct error *err)
{
    struct folder f = {.constant = NULL};
    if (rewrite_open(&f.r, from, options, err))
        return err->code;
    const size_t n_outputs = f.r.n_outputs;
    f.constant = arena_alloc(&f.r.arena, from->nodes.n + 1);
    f.values = arena_array(&f.r.arena, n_outputs, sizeof *f.values);
    graph_each_ordered(node, from, f.r.order) {
        f.constant[node->id] = may_fold(&f, node);
    }
    int code = f.r.has_control_flow ? frames_new(from, &f.r.frames, err) : 0;
    if (!code) {
        for (size_t i = 0; i < from->nodes.n; i++)
            fold_shape(&f, graph_node(from, (int)i));
        char *wanted = arena_alloc(&f.r.arena, n_outputs + 1);
        graph_each(node, from) {
            for (int k = 0; k < node->n_inputs && !f.constant[node->id]; k++)
                want(&f, wanted, node->inputs[k]);
        }
        graph_each_named(at, from)
            want(&f, wanted, at.edge);
        evaluate(&f);
        graph_each_ordered(node, from, f.r.order) {
            bool kept = f.r.flags[node->id] & REWRITE_KEPT, has_value = false;
            for (int k = 0; k < node->n_outputs; k++)
                has_value |= f.values[f.r.first[node->id] + k].type != DTYPE_INVALID;
            if (!has_value || (kept && node->n_outputs > 1))
                rewrite_copy(&f.r, node);
            else if (node->n_outputs == 1) {
                struct tensor *value = &f.values[f.r.first[node->id]];
                const struct node constant = rewrite_constant_view(&f.r, node, value);
                rewrite_add(&f.r, node, &constant);
                rewrite_note(&f.r, node->name, node->op->def->name);
            } else {
                /* Each of several outputs becomes a constant; the node itself is then unused. */
                rewrite_copy(&f.r, node);
                for (int j = 0; j < node->n_outputs; j++) {
                    struct tensor *value = &f.values[f.r.first[node->id] + j];
                    if (value->type != DTYPE_INVALID)
                        f.r.edges[f.r.first[node->id] + j] =
                            rewrite_constant(&f.r, node, "fold", value);
                }
                rewrite_note(&f.r, node->name, node->op->def->name);
            }
        }
    }
    for (size_t i = 0; i < n_outputs; i++)
        tensor_release(&f.values[i]);
    code = rewrite_close(&f.r, code, to, n_changes);
    /* Constants tell more about shapes. A contradiction found so is left for the step to report:
     * the graph stays as it was. */
    struct error ignored = ERROR_INIT;
    if (!code && *to && graph_infer(*to, &ignored)) {
        graph_free(*to);
        *to = NULL;
        *n_changes = 0;
    }
    return code;
}
