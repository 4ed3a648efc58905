/* SPDX-License-Identifier: Apache-2.0
 *
 * Going backward through the nodes of one frame. Nodes of the frame are units of their own, a loop
 * within it is one unit: a unit is processed when all its consumers have been, so that all
 * contributions to its outputs are there.
 */
#include "pass/gradient/grad_engine.h"

struct frame_walk {
    struct grad_engine *e;
    struct grad_space *space;
    int frame;
    const int *nodes; /* that run in the frame, or in a loop within it */
    int n_nodes;
    int *pending; /* of the engine: a unit is of one frame */
    int *queue, first, last;
};

/* Units are node ids, or n_forward + the frame of a loop; -1: not in this frame. */
static int unit_of(const struct frame_walk *w, int id)
{
    const struct grad_engine *e = w->e;
    if (!(e->marks[id] & MARK_BETWEEN))
        return -1;
    int frame = grad_frame(e, id);
    if (frame == w->frame) {
        bool own_loop = e->frames && e->frames->variable[id] >= 0 &&
                        !node_is(graph_node(e->graph, id), "Enter");
        return own_loop ? -1 : id;
    }
    while (frame >= 0 && e->frames->frames.items[frame].parent != w->frame)
        frame = e->frames->frames.items[frame].parent;
    return frame < 0 ? -1 : e->n_forward + frame;
}

void grad_sort_ancestors(struct grad_engine *e)
{
    size_t n_frames = e->frames ? e->frames->frames.n : 1, n = e->ancestors.n;
    int *at = arena_array(&e->arena, n_frames, sizeof *at);
    e->by_frame = arena_array(&e->arena, n + 1, sizeof *e->by_frame);
    e->begin = arena_array(&e->arena, n_frames, sizeof *e->begin);
    e->end = arena_array(&e->arena, n_frames, sizeof *e->end);
    e->pending = arena_array(&e->arena, (size_t)e->n_forward + n_frames, sizeof *e->pending);
    for (size_t i = 0; i < n; i++)
        at[grad_frame(e, e->ancestors.items[i])]++; /* nodes of its own */
    for (size_t f = n_frames; f-- > 0;) {           /* those of loops within it as well */
        e->end[f] += at[f];
        if (f)
            e->end[e->frames->frames.items[f].parent] += e->end[f];
    }
    for (size_t f = 0; f < n_frames; f++) { /* at: where the next loop within it begins */
        int *parent = f ? &at[e->frames->frames.items[f].parent] : NULL;
        e->begin[f] = parent ? *parent : 0;
        if (parent)
            *parent += e->end[f];
        at[f] += e->begin[f];
        e->end[f] += e->begin[f];
    }
    int *own = arena_copy(&e->arena, e->begin, n_frames * sizeof *own);
    for (size_t i = 0; i < n; i++)
        e->by_frame[own[grad_frame(e, e->ancestors.items[i])]++] = e->ancestors.items[i];
}

static void finish_node(struct frame_walk *w, int unit, int id)
{
    const struct node *node = graph_node(w->e->graph, id);
    for (int k = 0; k < node->n_inputs; k++) {
        int from = unit_of(w, node->inputs[k].node);
        if (from >= 0 && from != unit && --w->pending[from] == 0)
            w->queue[w->last++] = from;
    }
}

/* ---- one node ---- */

static int call_gradient(struct frame_walk *w, struct grad *g)
{
    struct grad_engine *e = w->e;
    const struct op_def *def = g->node->op->def;
    if (node_is(g->node, "Switch"))
        return grad_switch(e, g);
    if (node_is(g->node, "Merge"))
        return grad_merge(e, g);
    if (node_is(g->node, "Enter")) {
        g->in[0] = g->out[0];
        return 0;
    }
    if (!def->gradient)
        return error_set(e->err, ERR_DATA, "%s: op %s has no gradient%s%s", node_text(g->node),
                         def->name, def->no_gradient ? ": " : "",
                         def->no_gradient ? def->no_gradient : "");
    def->gradient(g);
    if (grad_finish(g))
        return error_prefix(e->err, "%s: gradient of %s: ", node_text(g->node), def->name);
    return 0;
}

/* Hands what the gradient function set on to the inputs. */
static int pass_on(struct frame_walk *w, const struct grad *g)
{
    struct grad_engine *e = w->e;
    bool any = false;
    for (int i = 0; i < g->node->n_inputs; i++) {
        struct edge input = g->node->inputs[i];
        struct gradient gradient = {g->in[i], g->in_indices[i]};
        if (!edge_exists(gradient.values) || !(e->marks[input.node] & MARK_BETWEEN))
            continue;
        enum dtype type = build_type(&g->b, input);
        if (build_type(&g->b, gradient.values) != type)
            return error_set(e->err, ERR_INTERNAL, "%s: gradient of input %d is %s, not %s",
                             node_text(g->node), i, dtype_name(build_type(&g->b, gradient.values)),
                             dtype_name(type));
        gradient.values = grad_value(e, w->space, gradient.values);
        if (edge_exists(gradient.indices))
            gradient.indices = grad_value(e, w->space, gradient.indices);
        if (e->err->code)
            return e->err->code;
        grad_contribute(e, input, gradient);
        any = true;
    }
    if (!any)
        vec_push_in(&e->arena, &e->cuts, g->node->id);
    return 0;
}

/* Rows pass through a read of a variable as rows. */
static bool pass_identity(struct frame_walk *w, const struct node *node)
{
    if (!node_is(node, "Identity"))
        return false;
    struct gradient total = grad_total(w->e, w->space, (struct edge){node->id, 0});
    if (edge_exists(total.values))
        grad_contribute(w->e, node->inputs[0], total);
    return true;
}

static int process_node(struct frame_walk *w, const struct node *node)
{
    struct grad_engine *e = w->e;
    bool is_wanted = false;
    for (int i = 0; i < node->n_inputs; i++)
        is_wanted |= e->marks[node->inputs[i].node] & MARK_BETWEEN;
    if (!is_wanted || pass_identity(w, node))
        return e->err->code;
    size_t n_out = (size_t)node->n_outputs, n_in = (size_t)node->n_inputs;
    struct edge *edges = arena_array(&e->arena, n_out + 2 * n_in + 1, sizeof *edges);
    struct grad g = {.node = node, .out = edges, .in = edges + n_out};
    g.in_indices = g.in + n_in;
    bool any = false;
    for (size_t k = 0; k < n_out; k++) {
        edges[k] = grad_total_dense(e, w->space, (struct edge){node->id, (int)k});
        any = any || edge_exists(edges[k]);
    }
    for (size_t i = 0; i < 2 * n_in; i++)
        g.in[i] = EDGE_NONE;
    if (any && !e->err->code) {
        int mark = (int)e->graph->nodes.n;
        g.b = grad_build(e, arena_printf(&e->arena, "%s_grad", node->name), node);
        if (node->op->def->flags & OP_NO_GRADIENT)
            vec_push_in(&e->arena, &e->cuts, node->id);
        else if (!call_gradient(w, &g) && !grad_adopt(e, w->space, mark))
            pass_on(w, &g);
    }
    return e->err->code;
}

int grad_process_frame(struct grad_engine *e, struct grad_space *space, int frame)
{
    struct frame_walk w = {.e = e,
                           .space = space,
                           .frame = frame,
                           .nodes = e->by_frame + e->begin[frame],
                           .n_nodes = e->end[frame] - e->begin[frame],
                           .pending = e->pending};
    w.queue = arena_array(&e->arena, (size_t)w.n_nodes + 1,
                          sizeof *w.queue); /* a unit has a node at least */
    for (int i = 0; i < w.n_nodes; i++) {
        int id = w.nodes[i], unit = unit_of(&w, id);
        const struct node *node = graph_node(e->graph, id);
        for (int k = 0; k < node->n_inputs && unit >= 0; k++) {
            int from = unit_of(&w, node->inputs[k].node);
            if (from >= 0 && from != unit)
                w.pending[from]++;
        }
    }
    for (int i = 0; i < w.n_nodes; i++) {
        int unit = unit_of(&w, w.nodes[i]);
        if (unit < 0 || w.pending[unit])
            continue;
        w.pending[unit] = -1; /* queued: a loop's unit is met once for each of its nodes */
        w.queue[w.last++] = unit;
    }
    while (w.first < w.last && !e->err->code) {
        int unit = w.queue[w.first++];
        if (unit < e->n_forward)
            process_node(&w, graph_node(e->graph, unit));
        else
            grad_process_loop(e, space, unit - e->n_forward);
        if (unit < e->n_forward) {
            finish_node(&w, unit, unit);
            continue;
        }
        for (int i = e->begin[unit - e->n_forward]; i < e->end[unit - e->n_forward]; i++)
            if (unit_of(&w, e->by_frame[i]) == unit)
                finish_node(&w, unit, e->by_frame[i]);
    }
    return e->err->code;
}
