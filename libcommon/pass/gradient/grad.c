/* SPDX-License-Identifier: Apache-2.0
 *
 * gradients_add: finds the nodes between xs and ys, processes them backward, and reports where a
 * path ended if no gradient came through. It touches only nodes that ys depend on.
 */
#include <string.h>

#include "graph/walk.h"
#include "pass/gradient/grad_engine.h"

struct gradient_request {
    const struct edge *ys, *grad_ys, *xs;
    int n_ys, n_xs;
};

struct build grad_build(struct grad_engine *e, const char *suffix, const struct node *forward)
{
    struct build b = {.graph = e->graph,
                      .scope =
                          suffix ? arena_printf(&e->arena, "%s/%s", e->scope, suffix) : e->scope,
                      .device = e->options->device,
                      .colocate = e->options->group,
                      .file = e->options->file,
                      .line = e->options->line,
                      .err = e->err};
    if (e->options->colocate && forward) {
        b.colocate = arena_printf(&e->arena, "loc:@%s", forward->name);
        b.device = forward->device;
    }
    return b;
}

static const char *edge_text(struct grad_engine *e, struct edge edge)
{
    struct str text = STR_INIT;
    graph_print_edge(&text, e->graph, edge);
    const char *copy = arena_strdup(&e->arena, str_text(&text));
    str_release(&text);
    return copy;
}

/* ---- nodes between xs and ys ---- */

/* Returns whether a node ends paths: they do not follow back edges of the loop around ys and xs. */
static bool is_barrier(const struct grad_engine *e, int id)
{
    return e->frames && e->frames->variable[id] >= 0 && e->frames->frame[id] == e->base &&
           node_is(graph_node(e->graph, id), "Merge");
}

static void find_ancestors(struct grad_engine *e, const struct gradient_request *r)
{
    VEC(int) stack = VEC_INIT;
    for (int i = 0; i < r->n_ys; i++)
        vec_push_in(&e->arena, &stack, r->ys[i].node);
    while (stack.n) {
        int id = vec_pop(&stack);
        if (e->marks[id] & MARK_ANCESTOR)
            continue;
        e->marks[id] |= MARK_ANCESTOR;
        vec_push_in(&e->arena, &e->ancestors, id);
        const struct node *node = graph_node(e->graph, id);
        for (int i = 0; i < node->n_inputs && !is_barrier(e, id); i++)
            vec_push_in(&e->arena, &stack, node->inputs[i].node);
    }
}

/* Marks the ancestors that depend on some x: back edges of loops may lead to earlier ones. */
static void find_between(struct grad_engine *e, const struct gradient_request *r)
{
    for (int i = 0; i < r->n_xs; i++)
        if (e->marks[r->xs[i].node] & MARK_ANCESTOR)
            e->marks[r->xs[i].node] |= MARK_BETWEEN;
    for (bool news = true; news;) {
        news = false;
        for (int id = 0; id < e->n_forward; id++) {
            if (e->marks[id] != MARK_ANCESTOR || is_barrier(e, id))
                continue;
            const struct node *node = graph_node(e->graph, id);
            for (int k = 0; k < node->n_inputs; k++)
                e->marks[id] |= e->marks[node->inputs[k].node] & MARK_BETWEEN;
            news |= e->marks[id] & MARK_BETWEEN;
        }
    }
}

/* ---- control flow ---- */

static int check_frames(struct grad_engine *e, const struct edge *edges, int n)
{
    for (int i = 0; i < n; i++)
        if (frames_output(e->frames, graph_node(e->graph, edges[i].node)) != e->base)
            return error_set(e->err, ERR_DATA, "gradients: '%s' and '%s' are not in the same loop",
                             edge_text(e, edges[0]), edge_text(e, edges[i]));
    return 0;
}

static int analyse_frames(struct grad_engine *e, const struct gradient_request *r)
{
    bool needed = false;
    for (size_t i = 0; i < e->ancestors.n; i++) {
        const struct node *node = graph_node(e->graph, e->ancestors.items[i]);
        needed = needed || node_has(node, OP_CONTROL_FLOW);
        /* A node with a stack as its only input is a pop in the gradient of a loop; a push has a
         * second input. */
        struct edge in = node->n_inputs == 1 ? node->inputs[0] : EDGE_NONE;
        if (edge_exists(in) && graph_output(e->graph, in)->type == RESOURCE)
            return error_set(e->err, ERR_DATA,
                             "%s: second derivatives through a loop are not supported",
                             node_text(node));
    }
    if (!needed)
        return 0;
    if (frames_new(e->graph, &e->frames, e->err))
        return e->err->code;
    e->base = frames_output(e->frames, graph_node(e->graph, r->ys[0].node));
    e->spaces = arena_array(&e->arena, e->frames->frames.n, sizeof *e->spaces);
    for (size_t i = 0; i < e->frames->frames.n; i++)
        map_put(&e->loop_names, e->frames->frames.items[i].name, 0);
    if (check_frames(e, r->ys, r->n_ys) || check_frames(e, r->xs, r->n_xs))
        return e->err->code;
    if (e->base == FRAME_ROOT)
        return 0;
    for (size_t i = 0; i < e->ancestors.n; i++) /* repeated, as barriers are now known */
        e->marks[e->ancestors.items[i]] = 0;
    e->ancestors.n = 0;
    find_ancestors(e, r);
    return 0;
}

/* ---- start and end ---- */

static int check_types(struct grad_engine *e, const struct edge *edges, int n, const char *what)
{
    for (int i = 0; i < n; i++) {
        const struct node *node = graph_node(e->graph, edges[i].node);
        if (edges[i].slot < 0 || edges[i].slot >= node->n_outputs)
            return error_set(e->err, ERR_DATA, "gradients: %s: '%s' is not a tensor",
                             node_text(node), edge_text(e, edges[i]));
        if (!grad_differentiable(node->outputs[edges[i].slot].type))
            return error_set(e->err, ERR_DATA,
                             "gradients: %s: %s must be of a floating-point type, not %s",
                             node_text(node), what, dtype_name(node->outputs[edges[i].slot].type));
    }
    return 0;
}

/* Returns whether `id` depends on x, through nodes between. */
static bool depends_on(struct grad_engine *e, int id, int x)
{
    struct graph_walk walk = graph_walk_new(&e->arena, e->graph);
    const struct node *node;
    graph_walk_to(&walk, id);
    while ((node = graph_walk_next(&walk, e->graph)))
        if (e->marks[node->id] & MARK_BETWEEN)
            graph_walk_inputs(&walk, node);
    return walk.seen[x];
}

static int collect(struct grad_engine *e, const struct gradient_request *r, struct gradient *result)
{
    for (int i = 0; i < r->n_xs; i++) {
        result[i] = grad_total(e, NULL, r->xs[i]);
        if (e->err->code)
            return e->err->code;
        if (edge_exists(result[i].values) || e->options->allow_missing)
            continue;
        struct edge x = r->xs[i];
        const char *y = edge_text(e, r->ys[0]), *to = node_text(graph_node(e->graph, x.node));
        for (size_t j = 0; j < e->cuts.n; j++) {
            const struct node *cut = graph_node(e->graph, e->cuts.items[j]);
            if (depends_on(e, cut->id, x.node))
                return error_set(
                    e->err, ERR_DATA,
                    "there is no gradient of '%s' to %s: it ends at %s, as %s passes none on", y,
                    to, node_text(cut), cut->op->def->name);
        }
        return error_set(e->err, ERR_DATA,
                         "there is no gradient of '%s' to %s: '%s' does not depend on it", y, to,
                         y);
    }
    return 0;
}

static int run(struct grad_engine *e, const struct gradient_request *r, struct gradient *result)
{
    if (check_types(e, r->ys, r->n_ys, "what is differentiated") ||
        check_types(e, r->xs, r->n_xs, "what it is differentiated by"))
        return e->err->code;
    find_ancestors(e, r);
    if (analyse_frames(e, r))
        return e->err->code;
    find_between(e, r);
    grad_sort_ancestors(e);
    struct build b = grad_build(e, NULL, NULL);
    for (int i = 0; i < r->n_ys; i++) {
        struct edge y = r->ys[i], g = r->grad_ys ? r->grad_ys[i] : EDGE_NONE;
        if (!edge_exists(g) && build_shape(&b, y)->rank == 0)
            g = build_scalar_like(&b, y, 1);
        else if (!edge_exists(g))
            g = build_binary(&b, "Fill", build_unary(&b, "Shape", y), build_scalar_like(&b, y, 1));
        if (grad_adopt(e, NULL))
            return e->err->code;
        grad_contribute(e, y, (struct gradient){g, EDGE_NONE});
    }
    if (grad_process_frame(e, NULL, e->base))
        return e->err->code;
    if (collect(e, r, result))
        return e->err->code;
    /* Skip nodes added to the forward graph, which the controls may wait for. */
    const struct gradients_options *options = e->options;
    bool *waits = arena_array(&e->arena, e->graph->nodes.n, sizeof *waits); /* by node */
    for (size_t i = 0; i < e->made.n && options->n_controls; i++) {
        struct node *node = graph_node(e->graph, e->n_forward + (int)i);
        if (e->made.items[i].forward_frame >= 0)
            continue;
        /* A node runs after the controls if one input does; a Merge only if all do, except later
         * ones, which are back edges. */
        bool any = false, all = true;
        for (int j = 0; j < node->n_inputs; j++) {
            bool waiting = waits[node->inputs[j].node];
            any = any || waiting;
            all = all && (waiting || node->inputs[j].node >= node->id);
        }
        bool found = node_is(node, "Merge") ? all : any;
        for (int j = 0; j < node->n_controls; j++)
            found |= waits[node->controls[j]];
        waits[node->id] = found || !node_is(node, "Const");
        for (int k = 0; k < options->n_controls && waits[node->id] && !found; k++)
            graph_add_control(e->graph, node, options->controls[k]);
    }
    return 0;
}

int gradients_add(struct graph *graph, const struct edge *ys, const struct edge *grad_ys, int n_ys,
                  const struct edge *xs, int n_xs, const struct gradients_options *options,
                  struct gradient *result, struct error *err)
{
    static const struct gradients_options defaults;
    struct gradient_request r = {ys, grad_ys, xs, n_ys, n_xs};
    struct grad_engine e = {.graph = graph,
                            .options = options ? options : &defaults,
                            .err = err,
                            .n_forward = (int)graph->nodes.n};
    e.scope = e.options->scope ? e.options->scope : "gradients";
    e.marks = arena_alloc(&e.arena, graph->nodes.n + 1);
    e.contributions = arena_array(&e.arena, graph->nodes.n + 1, sizeof *e.contributions);
    for (int i = 0; i < n_xs; i++)
        result[i] = (struct gradient){EDGE_NONE, EDGE_NONE};
    int code = n_ys ? run(&e, &r, result) : error_set(err, ERR_DATA, "gradients of nothing");
    if (e.frames)
        for (size_t i = 0; i < e.frames->frames.n; i++)
            if (e.spaces && e.spaces[i])
                edge_map_release(&e.spaces[i]->values);
    frames_free(e.frames);
    map_release(&e.loop_names);
    arena_release(&e.arena);
    return code;
}
