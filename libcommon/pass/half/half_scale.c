/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss scaling: the gradient of the loss is multiplied, and gradients are divided before they are
 * handed over. A dynamic scale is a variable, with counters beside it. One bool tells whether all
 * gradients are finite; if not, a Switch on it makes dead the node that all updates wait for. Nodes
 * that wait for updates instead wait for a ControlTrigger after them, which is never dead.
 */
#include <math.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/build.h"
#include "pass/half/half.h"
#include "pass/rewrite.h"

/* ---- facts about the source, and new nodes ---- */

enum half_scale_fact {
    SCALE_GRADIENT = 1 << 0,     /* handed over by minimize() */
    SCALE_BEFORE = 1 << 1,       /* such gradients need it */
    SCALE_OF_GRADIENTS = 1 << 2, /* computed from them */
    SCALE_AFTER = 1 << 3,        /* computed from them, or waits for them */
    SCALE_TRAINS = 1 << 4,       /* something after them needs it */
    SCALE_GATED = 1 << 5,        /* runs if all gradients are finite */
    SCALE_LATE = 1 << 6,         /* comes after a gated node */
    SCALE_INSIDE = 1 << 7,       /* a gated node needs it */
};

/* A variable of the result: the scale, or a counter of good or of skipped steps. */
struct scale_variable {
    struct edge variable, value; /* the value in this step */
};

enum { SCALE, GOOD, SKIPPED, SCALE_VARIABLES };

struct half_scaler {
    struct rewrite r;
    const struct half_options *options;
    struct build b;
    unsigned *facts;             /* by node */
    const struct node *gradient; /* one of them */
    int n_gradients, n_losses;

    /* In the result: */
    struct scale_variable variables[SCALE_VARIABLES];
    VEC(struct edge) gradients; /* those handed over */
    int go, done;               /* gated nodes run after `go`; `done` runs after them */
    VEC(int) waits;             /* gated nodes */
};

/* ---- the scale itself: variables ---- */

static void add_variable(struct half_scaler *s, struct scale_variable *added, const char *suffix,
                         enum dtype type, double value)
{
    struct graph *to = s->r.to;
    const char *name = arena_printf(&to->arena, "%s%s", s->b.scope, suffix);
    const char *group = arena_printf(&to->arena, "loc:@%s", name);
    struct attr attrs[] = {{"dtype", attr_type(type)},
                           {"shape", attr_shape(&SHAPE_SCALAR)},
                           {"_trainable", attr_bool(false)}};
    added->variable = build_op(&s->b, "Variable", NULL, 0, attrs, 3);
    if (s->r.err->code || graph_rename(to, graph_node(to, added->variable.node), name, s->r.err))
        return;
    struct edge first = build_scalar(&s->b, type, value);
    struct edge initial = build_binary(&s->b, "Assign", added->variable, first);
    rewrite_extend_entry(&s->r, "init", (struct edge){initial.node, CONTROL_SLOT});
    s->b.colocate = group;
    added->value = build_unary(&s->b, "Identity", added->variable);
    s->b.colocate = NULL;
}

/* ---- the update of the scale ---- */

/* Gated nodes run after the scale was changed: a step that runs an update also changes the
 * scale. */
static void add_decision(struct half_scaler *s)
{
    int assigned[SCALE_VARIABLES];
    struct edge scale = s->variables[SCALE].value, good = s->variables[GOOD].value;
    struct edge skipped = s->variables[SKIPPED].value;
    /* The sum of squares is infinite or NaN if any element is. */
    struct build *b = &s->b;
    struct edge *sums = arena_array(&s->r.arena, s->gradients.n, sizeof *sums);
    for (size_t i = 0; i < s->gradients.n; i++)
        sums[i] = build_cast(b, build_unary(b, "L2Loss", s->gradients.items[i]), FLOAT32);
    struct edge total = build_op(b, "AddN", sums, (int)s->gradients.n, NULL, 0);
    struct edge finite = build_binary(b, "Less", total, build_scalar(b, FLOAT32, INFINITY));
    struct edge one = build_scalar_like(b, good, 1), zero = build_scalar_like(b, good, 0);
    good = build_binary(b, "Add", good, one);
    struct edge grows =
        build_binary(b, "GreaterEqual", good, build_scalar_like(b, good, HALF_GOOD_STEPS));
    struct edge twice = build_binary(b, "Mul", scale, build_scalar_like(b, scale, 2));
    struct edge half = build_binary(b, "Mul", scale, build_scalar_like(b, scale, 0.5));
    struct edge larger =
        build_binary(b, "Minimum", twice, build_scalar_like(b, scale, HALF_SCALE_LAST));
    struct edge smaller = build_binary(b, "Maximum", half, build_scalar_like(b, scale, 1));
    struct edge kept = build_op(b, "Select", (struct edge[]){grows, larger, scale}, 3, NULL, 0);
    struct edge stays = build_binary(b, "LogicalAnd", finite, build_unary(b, "LogicalNot", grows));
    struct edge more = build_binary(b, "Add", skipped, one);
    const struct edge next[SCALE_VARIABLES][3] = {
        {finite, kept, smaller}, {stays, good, zero}, {finite, skipped, more}};
    for (int i = 0; i < SCALE_VARIABLES; i++) {
        struct edge value = build_op(b, "Select", next[i], 3, NULL, 0);
        assigned[i] = build_binary(b, "Assign", s->variables[i].variable, value).node;
    }
    struct edge both = build_binary(b, "Switch", finite, finite);
    s->go = build_after(b, build_slot(both, 1), assigned, SCALE_VARIABLES).node;
}

/* Returns a gated output's substitute: a variable, read after all updates, or a checked value. */
static struct edge instead_of(struct half_scaler *s, struct edge edge)
{
    const struct node *node = graph_node(s->r.from, edge.node);
    const struct node *variable = access_written(s->r.from, node);
    if (!(s->facts[node->id] & SCALE_GATED))
        return rewrite_edge(&s->r, edge);
    return variable ? (struct edge){s->r.after[variable->id][0], 0}
                    : rewrite_edge(&s->r, node->inputs[0]);
}

/* ---- entries ---- */

static void redirect_ends(struct half_scaler *s)
{
    const struct graph *from = s->r.from;
    for (size_t i = 0; i < from->entries.n; i++)
        for (int k = 0; k < from->entries.items[i].n_edges; k++) {
            struct edge edge = from->entries.items[i].edges[k];
            if (!(s->facts[edge.node] & SCALE_GATED))
                continue;
            if (edge.slot == CONTROL_SLOT) {
                s->r.after[edge.node][0] = s->done;
                continue;
            }
            struct edge *now = &s->r.edges[s->r.first[edge.node] + edge.slot];
            *now = instead_of(s, edge);
            if (!access_written(from, graph_node(from, edge.node)))
                continue;
            /* Read the variable as it is after all updates. */
            *now = build_after(&s->b, *now, &s->done, 1);
        }
}

/* The graph is ready when the scale's variables are, too. */
static void extend_ready(struct half_scaler *s)
{
    const struct entry *entry = graph_entry(s->r.from, "ready");
    if (!entry || entry->n_edges != 1 || entry->edges->slot == CONTROL_SLOT)
        return;
    struct edge all = rewrite_edge(&s->r, *entry->edges);
    for (int i = 0; i < SCALE_VARIABLES; i++) {
        struct edge there = build_unary(&s->b, "IsVariableInitialized", s->variables[i].variable);
        all = build_binary(&s->b, "LogicalAnd", all, there);
    }
    rewrite_extend_entry(&s->r, "ready", all);
}

/* ---- the loss and the gradients ---- */

static struct edge scale_as(struct half_scaler *s, enum dtype type)
{
    if (s->options->scaling == HALF_STATIC)
        return build_scalar(&s->b, type, s->options->factor);
    if (!edge_exists(s->variables[SCALE].value)) {
        add_variable(s, &s->variables[SCALE], "", FLOAT32, HALF_SCALE_FIRST);
        add_variable(s, &s->variables[GOOD], "/good_steps", INT64, 0);
        add_variable(s, &s->variables[SKIPPED], "/skipped_steps", INT64, 0);
    }
    return build_cast(&s->b, s->variables[SCALE].value, type);
}

/* Returns whether a node belongs to the updates, and is dead when they are. */
static bool is_late(const struct half_scaler *s, int node)
{
    return s->facts[node] & SCALE_GATED ||
           (s->facts[node] & SCALE_LATE && s->facts[node] & SCALE_INSIDE);
}

/* ---- the order of making nodes ---- */

/* A node that waits for updates gets what stands for their results, and waits for `done`. */
static void copy_waiting(struct half_scaler *s, const struct node *node)
{
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
    struct node *made = rewrite_add(&s->r, node, &view);
    if (waits)
        graph_add_control(s->r.to, made, s->done);
}

/* Makes what stands for a node. */
static void copy_node(struct half_scaler *s, const struct node *node)
{
    enum dtype type = node->n_outputs ? node->outputs[0].type : DTYPE_INVALID;
    if (node_attr(node, "_loss")) {
        struct edge one = {rewrite_copy(&s->r, node)->id, 0};
        s->r.edges[s->r.first[node->id]] = build_binary(&s->b, "Mul", one, scale_as(s, type));
        rewrite_note(&s->r, node->name, "is scaled");
        s->r.n_changes--; /* gradients are counted */
    } else if (s->facts[node->id] & SCALE_GRADIENT) {
        struct node view = rewrite_view(&s->r, node);
        view.inputs[0] = build_binary(&s->b, "Div", view.inputs[0], scale_as(s, type));
        if (s->r.err->code)
            return;
        struct edge made = {rewrite_add(&s->r, node, &view)->id, 0};
        rewrite_note(&s->r, node->name, "is divided by the loss scale");
        vec_push_in(&s->r.arena, &s->gradients, made);
    } else if (s->facts[node->id] & SCALE_GATED) {
        struct node *copy = rewrite_copy(&s->r, node);
        graph_add_control(s->r.to, copy, s->go);
        vec_push_in(&s->r.arena, &s->waits, copy->id);
    } else if (s->facts[node->id] & SCALE_LATE && !is_late(s, node->id))
        copy_waiting(s, node);
    else
        rewrite_copy(&s->r, node);
}

/* Visits first nodes that do not wait for updates, then updates, then nodes that wait for them. */
static int visit_all(struct half_scaler *s)
{
    for (int turn = 0; turn < (s->options->scaling == HALF_DYNAMIC ? 3 : 1); turn++) {
        const struct node_spec spec = {.op = "ControlTrigger",
                                       .name = rewrite_name_near(&s->r, s->b.scope, "done"),
                                       .controls = s->waits.items,
                                       .n_controls = (int)s->waits.n};
        if (turn == 1)
            add_decision(s);
        const struct node *done =
            turn == 2 && !s->r.err->code ? graph_add(s->r.to, &spec, s->r.err) : NULL;
        s->done = done ? done->id : -1;
        graph_each_ordered(node, s->r.from, s->r.order) {
            int own = is_late(s, node->id) ? 1 : s->facts[node->id] & SCALE_LATE ? 2 : 0;
            if (own == turn && !s->r.err->code)
                copy_node(s, node);
        }
    }
    return s->r.err->code;
}

/* ---- names ---- */

/* Chooses a name for the scale that is not in use: checkpoints identify it by this name. */
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
    struct half_scaler s = {.options = options, .variables[SCALE].value = EDGE_NONE};
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
        static const struct spread first[] = {
            {SCALE_GRADIENT, SCALE_BEFORE, .controls = true, .up = true, .loops = true},
            {.roots = SCALE_GRADIENT, .fact = SCALE_OF_GRADIENTS},
            {SCALE_GRADIENT, SCALE_AFTER, .controls = true},
            {SCALE_AFTER, SCALE_TRAINS, .controls = true, .up = true, .loops = true}};
        static const struct spread then[] = {
            {SCALE_GATED, SCALE_LATE, .controls = true},
            {SCALE_GATED, SCALE_INSIDE, .controls = true, .up = true, .loops = true}};
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
            spread_facts(from, s.r.order, s.facts, first[i]);
        /* Updates are gated, and so are checks of gradients that were handed over; but nothing that
         * the gradients themselves need. */
        graph_each(node, from) {
            bool waits = access_written(from, node) ||
                         (node_has(node, OP_CHECKS) && s.facts[node->id] & SCALE_OF_GRADIENTS);
            if (waits && s.facts[node->id] & (SCALE_AFTER | SCALE_TRAINS) &&
                !(s.facts[node->id] & SCALE_BEFORE))
                s.facts[node->id] |= SCALE_GATED;
        }
        for (size_t i = 0; i < sizeof then / sizeof *then; i++)
            spread_facts(from, s.r.order, s.facts, then[i]);
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
    if (!code && s.n_gradients && options->scaling == HALF_DYNAMIC) {
        redirect_ends(&s);
        extend_ready(&s);
        code = err->code;
    }
    return rewrite_close(&s.r, code, to, n);
}
