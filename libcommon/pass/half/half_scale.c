/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss scaling: the gradient of the loss is multiplied, gradients are divided before they are
 * handed over. A dynamic scale is a variable, with counters beside it. Whether all gradients are
 * finite is one bool; a Switch of it leaves dead what all updates wait for, where it is false. What
 * waits for updates waits for a ControlTrigger behind them instead, which is never dead.
 */
#include "graph/walk.h"
#include "pass/half/half_private.h"

/* ---- what is what ---- */

/* All that the nodes with `root` need gets the fact, and they themselves. */
static void mark_needed(struct half_scaler *s, unsigned root, unsigned fact)
{
    const struct graph *from = s->r.from;
    struct graph_walk walk = graph_walk_new(&s->r.arena, from);
    for (size_t i = 0; i < from->nodes.n; i++)
        if (s->facts[i] & root)
            graph_walk_to(&walk, (int)i);
    const bool *needed = graph_walk_end(&walk, from);
    for (size_t i = 0; i < from->nodes.n; i++)
        s->facts[i] |= needed[i] ? fact : 0;
}

/* ---- the loss and the gradients ---- */

static struct edge scale_as(struct half_scaler *s, enum dtype type)
{
    if (s->options->scaling == HALF_STATIC)
        return build_scalar(&s->b, type, s->options->factor);
    if (!edge_exists(s->scale))
        half_add_state(s);
    return build_cast(&s->b, s->scale, type);
}

/* ---- what waits ---- */

static void add_control(struct half_scaler *s, struct node *view, int control)
{
    int *controls = arena_array(&s->r.arena, (size_t)view->n_controls + 1, sizeof *controls);
    int n = 0;
    while (n < view->n_controls && view->controls[n] < control) {
        controls[n] = view->controls[n];
        n++;
    }
    controls[n] = control;
    for (int i = n; i < view->n_controls; i++)
        controls[i + 1] = view->controls[i];
    view->controls = controls;
    view->n_controls++;
}

/* The value for a gated node's: a variable, read when all is over, or a checked value. */
static struct edge instead_of(struct half_scaler *s, struct edge edge)
{
    const struct node *node = graph_node(s->r.from, edge.node);
    const struct node *variable = part_written(s->r.from, node);
    if (!(s->facts[node->id] & SCALE_GATED))
        return rewrite_edge(&s->r, edge);
    return variable ? (struct edge){s->r.after[variable->id][0], 0}
                    : rewrite_edge(&s->r, node->inputs[0]);
}

/* Returns whether a node goes with the updates, and is dead when they are. */
static bool is_late(const struct half_scaler *s, int node)
{
    return s->facts[node] & SCALE_GATED ||
           (s->facts[node] & SCALE_LATE && s->facts[node] & SCALE_INSIDE);
}

/* ---- the order in which nodes are made ---- */

/* First all that no update is waited for by, then updates, then what waits for them. */
static int visit_all(struct half_scaler *s)
{
    const struct graph *from = s->r.from;
    for (size_t i = 0; i < from->nodes.n && !s->b.failed; i++)
        if (!(s->facts[s->r.order[i]] & (SCALE_GATED | SCALE_LATE))) {
            const struct node *node = graph_node(from, s->r.order[i]);
            if (node_attr(node, "_loss")) {
                struct edge one = {rewrite_copy(&s->r, node)->id, 0};
                enum dtype type = node->outputs[0].type;
                s->r.edges[s->r.first[node->id]] =
                    build_binary(&s->b, "Mul", one, scale_as(s, type));
                rewrite_note(&s->r, node->name, "is scaled");
                s->r.n_changes--; /* gradients are counted */
            } else if (s->facts[node->id] & SCALE_GRADIENT) {
                struct node view = rewrite_view(&s->r, node);
                enum dtype type = node->outputs[0].type;
                struct edge plain = build_binary(&s->b, "Div", view.inputs[0], scale_as(s, type));

                if (!s->b.failed) {
                    view.inputs[0] = plain;
                    struct edge made = {rewrite_add(&s->r, node, &view)->id, 0};
                    rewrite_note(&s->r, node->name, "is divided by the loss scale");
                    vec_push_in(&s->r.arena, &s->gradients, made);
                }
            } else
                rewrite_copy(&s->r, node);
        }
    if (s->options->scaling != HALF_DYNAMIC || s->b.failed)
        return s->b.failed ? s->err->code : 0;
    half_add_decision(s);
    for (size_t i = 0; i < from->nodes.n && !s->b.failed; i++) {
        const struct node *node = graph_node(from, s->r.order[i]);
        if (s->facts[node->id] & SCALE_GATED) {
            struct node view = rewrite_view(&s->r, node);
            add_control(s, &view, s->go);
            vec_push_in(&s->r.arena, &s->waits, rewrite_add(&s->r, node, &view)->id);
        } else if (is_late(s, node->id))
            rewrite_copy(&s->r, node);
    }
    half_add_end(s);
    for (size_t i = 0; i < from->nodes.n && !s->b.failed; i++) {
        const struct node *node = graph_node(from, s->r.order[i]);
        if (!(s->facts[node->id] & SCALE_LATE) || is_late(s, node->id))
            continue;
        struct node copy = *node, view;
        bool waits = false;
        copy.controls = arena_array(&s->r.arena, (size_t)node->n_controls, sizeof *copy.controls);
        copy.n_controls = 0;
        for (int j = 0; j < node->n_controls; j++) {
            if (is_late(s, node->controls[j]))
                waits = true;
            else
                copy.controls[copy.n_controls++] = node->controls[j];
        }
        view = rewrite_view(&s->r, &copy);
        for (int j = 0; j < node->n_inputs; j++) {
            waits |= (s->facts[node->inputs[j].node] & SCALE_GATED) != 0;
            view.inputs[j] = instead_of(s, node->inputs[j]);
        }
        if (waits)
            add_control(s, &view, s->done);
        rewrite_add(&s->r, node, &view);
    }
    return s->b.failed ? s->err->code : 0;
}

/* ---- names ---- */

/* A name of the scale's own: checkpoints know it by it. */
static const char *choose_scope(struct half_scaler *s)
{
    const char *name = "loss_scale";
    for (int i = 1;; i++) {
        size_t n = strlen(name), k = 0;
        while (k < s->r.from->nodes.n && strncmp(graph_node(s->r.from, (int)k)->name, name, n) != 0)
            k++;
        if (k == s->r.from->nodes.n)
            return name;
        name = arena_printf(&s->r.to->arena, "loss_scale_%d", i);
    }
}

int half_scale(const struct graph *from, const struct half_options *options, struct graph **to,
               int *n, struct error *err)
{
    struct half_scaler s = {.options = options, .err = err, .scale = EDGE_NONE};
    *to = NULL;
    *n = 0;
    if (options->scaling == HALF_UNSCALED)
        return 0;
    if (rewrite_open(&s.r, from, options->pass, err))
        return err->code;
    s.facts = arena_array(&s.r.arena, from->nodes.n, sizeof *s.facts);
    graph_each(node, from) {
        if (node_attr(node, "_gradient") && node->n_inputs == 1 && node->n_outputs == 1 &&
            dtype_is_floating(node->outputs[0].type)) {
            s.facts[node->id] |= SCALE_GRADIENT;
            s.gradient = node;
            s.n_gradients++;
        }
        s.n_losses += node_attr(node, "_loss") != NULL;
    }
    if (s.options->scaling == HALF_DYNAMIC) {
        mark_needed(&s, SCALE_GRADIENT, SCALE_BEFORE);
        struct spread data = {.roots = SCALE_GRADIENT, .fact = SCALE_OF_GRADIENTS};
        struct spread after = {.roots = SCALE_GRADIENT, .fact = SCALE_AFTER, .controls = true};
        struct spread late = {.roots = SCALE_GATED, .fact = SCALE_LATE, .controls = true};
        spread_facts(from, s.r.order, s.facts, data);
        spread_facts(from, s.r.order, s.facts, after);
        mark_needed(&s, SCALE_AFTER, SCALE_TRAINS);
        /* Updates wait, and so do checks of what was handed over; what gradients themselves need
         * cannot. */
        graph_each(node, from) {
            bool waits = part_written(from, node) ||
                         (node_has(node, OP_CHECKS) && s.facts[node->id] & SCALE_OF_GRADIENTS);
            if (waits && s.facts[node->id] & SCALE_TRAINS && !(s.facts[node->id] & SCALE_BEFORE))
                s.facts[node->id] |= SCALE_GATED;
        }
        spread_facts(from, s.r.order, s.facts, late);
        mark_needed(&s, SCALE_GATED, SCALE_INSIDE);
    }
    s.b = (struct build){.graph = s.r.to, .scope = choose_scope(&s), .device = "", .err = err};
    int code = 0;
    if (s.n_gradients && !s.n_losses)
        code = error_set(err, ERR_DATA,
                         "the gradients of '%s' cannot be scaled: the gradient of the loss is not "
                         "marked, or was folded; what scales reads the graph as tf-graph wrote it",
                         s.gradient->name);
    else if (s.n_gradients && s.n_losses > 1 && options->scaling == HALF_DYNAMIC)
        code = error_set(err, ERR_DATA,
                         "the graph trains by %d losses, which cannot share a dynamic scale: give "
                         "a number, or none",
                         s.n_losses);
    if (!code && s.n_gradients)
        code = visit_all(&s);
    if (!code && s.n_gradients && options->scaling == HALF_DYNAMIC)
        half_redirect_ends(&s);
    struct half_scaler made = s;
    code = rewrite_close(&s.r, code, to, n);
    if (!code && *to && options->scaling == HALF_DYNAMIC)
        code = half_extend_entries(&made, *to);
    if (code && *to) {
        graph_free(*to);
        *to = NULL;
    }
    return code;
}
