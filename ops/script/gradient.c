/* SPDX-License-Identifier: Apache-2.0
 *
 * tf.gradients for the prelude: libcommon/pass/gradient/grad.h on Lua's tensors.
 */
#include <string.h>

#include "graph/walk.h"
#include "ops/script/internal.h"
#include "pass/gradient/grad.h"

/* Returns the tensors of a list at stack index `index`, reading variables. */
static struct edge *values_of(lua_State *L, int index, const char *what, int *n)
{
    struct script *s = script_of(L);
    s->edges.n = 0;
    if (!lua_isnoneornil(L, index))
        handle_collect(L, index, what);
    *n = (int)s->edges.n;
    struct edge *edges = arena_array(&s->scratch, s->edges.n + 1, sizeof *edges);
    for (int i = 0; i < *n; i++)
        edges[i] = context_route(L, s->context, handle_first_value(L, s->edges.items[i]));
    return edges;
}

struct gradient_call {
    const struct edge *ys, *grad_ys; /* grad_ys may be NULL */
    int n_ys;
    const struct edge *xs;
    int n;
    struct gradients_options options;
    struct gradient *result; /* by x */
    size_t n_done;           /* nodes that already follow the controls in force */
};

/* ---- variables that are read more than once ---- */

/* The x's, followed by the separate reads that control() made of variables among them. */
struct own_xs {
    const bool *used;
    int *first, *next; /* x's plus one: by node its last x, by x the previous one of its node */
    VEC(struct edge) all;
    VEC(int) of; /* the x that each read after the x's belongs to */
    int n_nodes; /* before routes to the variables are added */
};

static void add_read(lua_State *L, const struct own_read *read, struct own_xs *own)
{
    struct script *s = script_of(L);
    struct edge first = handle_first_value(L, (struct edge){read->variable, 0});
    if (!own->used[read->edge.node])
        return;
    first = context_route(L, s->context, first); /* like the x's; a new route is of no x */
    for (int i = first.node < own->n_nodes ? own->first[first.node] : 0; i; i = own->next[i]) {
        if (read->context != s->context)
            place_error(L,
                        "gradients: %s is read again within control() in a branch or a loop; "
                        "read it outside",
                        node_text(graph_node(s->graph, read->variable)));
        vec_push_in(&s->scratch, &own->all, read->edge);
        vec_push_in(&s->scratch, &own->of, i - 1);
    }
}

static struct own_xs with_own_reads(lua_State *L, const struct gradient_call *w)
{
    struct script *s = script_of(L);
    struct graph_walk walk = graph_walk_new(&s->scratch, s->graph);
    const struct node *node; /* walks what the y's depend on */
    for (int i = 0; i < w->n_ys && s->own_reads.n; i++)
        graph_walk_to(&walk, w->ys[i].node);
    while ((node = graph_walk_next(&walk, s->graph)))
        graph_walk_inputs(&walk, node);
    struct own_xs own = {.used = walk.seen, .n_nodes = (int)s->graph->nodes.n};
    own.first = arena_array(&s->scratch, s->graph->nodes.n + 1, sizeof *own.first);
    own.next = arena_array(&s->scratch, (size_t)w->n + 1, sizeof *own.next);
    for (int i = w->n; i > 0; i--) {
        own.next[i] = own.first[w->xs[i - 1].node];
        own.first[w->xs[i - 1].node] = i;
    }
    for (int i = 0; i < w->n; i++)
        vec_push_in(&s->scratch, &own.all, w->xs[i]);
    vec_each(read, &s->own_reads)
        add_read(L, read, &own);
    return own;
}

/* d(ys)/dx, the sum over all reads if x is a variable. */
static int add_all(lua_State *L, struct build *b, struct gradient_call *w)
{
    struct script *s = script_of(L);
    const struct own_xs own = with_own_reads(L, w);
    int n = (int)own.all.n;
    struct gradients_options options = w->options;
    options.allow_missing |= n > w->n;
    struct gradient *each = arena_array(&s->scratch, (size_t)n + 1, sizeof *each);
    if (gradients_add(s->graph, w->ys, w->grad_ys, w->n_ys, own.all.items, n, &options, each,
                      b->err))
        return b->err->code;
    w->n_done = s->graph->nodes.n;
    for (int k = 0; k < n - w->n; k++) {
        struct gradient *sum = &each[own.of.items[k]];
        const struct gradient *more = &each[w->n + k];
        struct edge x = w->xs[own.of.items[k]];
        if (edge_exists(more->values)) {
            struct edge dense = gradient_dense(b, more, x);
            if (edge_exists(sum->values))
                dense = build_binary(b, "Add", gradient_dense(b, sum, x), dense);
            *sum = (struct gradient){dense, EDGE_NONE};
        }
    }
    bool missing = false;
    for (int i = 0; i < w->n; i++)
        missing |= !edge_exists(each[i].values);
    memcpy(w->result, each, (size_t)w->n * sizeof *each);
    if (b->err->code || !missing || w->options.allow_missing)
        return b->err->code;
    return gradients_add(s->graph, w->ys, w->grad_ys, w->n_ys, w->xs, w->n, &w->options, w->result,
                         b->err);
}

static bool flag(lua_State *L, const char *name)
{
    bool value = lua_istable(L, 4) && (lua_getfield(L, 4, name), lua_toboolean(L, -1));
    lua_settop(L, 4);
    return value;
}

/* tf.gradients(ys, xs, grad_ys, {allow_missing=, rows=, colocate=}): returns a list with a tensor,
 * {values=, indices=}, or false if there is none, for each x. */
static int gradients(lua_State *L)
{
    struct script *s = script_of(L);
    lua_settop(L, 4);
    int unfinished = context_unfinished(s);
    if (unfinished >= 0)
        place_error(L, "gradients: the loop of %s failed and was not completed",
                    node_text(graph_node(s->graph, unfinished)));
    node_adopt(s);
    int n_ys, n_xs, n_grads;
    struct edge *ys = values_of(L, 1, "gradients: ys", &n_ys);
    struct edge *xs = values_of(L, 2, "gradients: xs", &n_xs);
    struct edge *grad_ys = values_of(L, 3, "gradients: grad_ys", &n_grads);
    if (n_grads && n_grads != n_ys)
        place_error(L, "gradients: %d grad_ys for %d ys", n_grads, n_ys);
    bool rows = flag(L, "rows");
    struct gradient_call wanted = {
        .ys = ys, .grad_ys = n_grads ? grad_ys : NULL, .n_ys = n_ys, .xs = xs, .n = n_xs};
    /* The nodes made have the device, colocation and controls in force, like an op. */
    wanted.options = (struct gradients_options){.colocate = flag(L, "colocate"),
                                                .allow_missing = flag(L, "allow_missing"),
                                                .scope = node_full_name(s, "gradients"),
                                                .device = s->device};
    if (s->leader >= 0)
        wanted.options.group =
            arena_printf(&s->scratch, "loc:@%s", graph_node(s->graph, s->leader)->name);
    int *controls = arena_array(&s->scratch, s->controls.n + 1, sizeof *controls);
    for (size_t i = 0; i < s->controls.n; i++)
        if (context_route_control(L, s->context, s->controls.items[i]))
            controls[wanted.options.n_controls++] = s->controls.items[i];
    wanted.options.controls = controls;
    place_find(L, &wanted.options.file, &wanted.options.line);
    struct error err = ERROR_INIT;
    struct build b = {.graph = s->graph,
                      .scope = wanted.options.scope,
                      .device = wanted.options.device,
                      .colocate = wanted.options.group,
                      .file = wanted.options.file,
                      .line = wanted.options.line,
                      .err = &err};
    wanted.result = arena_array(&s->scratch, (size_t)n_xs + 1, sizeof *wanted.result);
    size_t first = s->graph->nodes.n;
    if (!s->first_gradient)
        s->first_gradient = first;
    context_hide_open(s);
    int code = add_all(L, &b, &wanted);
    context_show_open(s);
    if (code)
        place_error(L, "%s", err.text);
    lua_createtable(L, n_xs, 0);
    for (int i = 0; i < n_xs; i++) {
        const struct gradient *g = &wanted.result[i];
        if (!edge_exists(g->values)) {
            lua_pushboolean(L, false);
        } else if (rows && edge_exists(g->indices)) {
            lua_newtable(L);
            handle_push(L, g->values);
            lua_setfield(L, -2, "values");
            handle_push(L, g->indices);
            lua_setfield(L, -2, "indices");
        } else {
            struct edge dense = gradient_dense(&b, g, xs[i]);
            if (b.err->code)
                place_error(L, "%s", b.err->text);
            handle_push(L, dense);
        }
        lua_rawseti(L, 5, i + 1);
    }
    /* These nodes add gradients of several reads, and make rows dense. */
    for (size_t i = wanted.n_done; i < s->graph->nodes.n; i++) {
        struct node *node = graph_node(s->graph, (int)i);
        for (int k = 0; k < wanted.options.n_controls && !node_is(node, "Const"); k++)
            graph_add_control(s->graph, node, controls[k]);
    }
    /* Nodes without inputs must run only if the branch does, or once per iteration. Those that read
     * only outside values may always run: they have no effect. */
    if (s->context) {
        for (size_t i = first; i < s->graph->nodes.n; i++) {
            struct node *node = graph_node(s->graph, (int)i);
            if (!node->n_inputs && !node->n_controls)
                graph_add_control(s->graph, node, s->contexts.items[s->context].pivot);
        }
    }
    /* Nodes made by the gradient pass name their forward op's group. As names may still change,
     * groups are kept as node ids until the end. */
    node_adopt(s);
    for (size_t i = first; i < s->graph->nodes.n; i++) {
        const struct attr_value *group = node_attr(graph_node(s->graph, (int)i), "_class");
        if (!group || group->kind != ATTR_LIST_STRING || !group->n)
            continue;
        const struct node *leader = group_leader(s->graph, group->strings[0]);
        if (leader)
            node_note(s, (int)i)->leader = leader->id;
    }
    return 1;
}

void gradient_rename(lua_State *L, const char *old, const char *name)
{
    struct script *s = script_of(L);
    const char *middle = arena_printf(&s->scratch, "gradients/%s_grad/", old);
    struct error err = ERROR_INIT;
    for (size_t i = s->first_gradient; s->first_gradient && i < s->graph->nodes.n; i++) {
        struct node *node = graph_node(s->graph, (int)i);
        const char *at = strstr(node->name, middle);
        if (!at || (at != node->name && at[-1] != '/'))
            continue;
        const char *full =
            arena_printf(&s->scratch, "%.*sgradients/%s_grad/%s", (int)(at - node->name),
                         node->name, name, at + strlen(middle));
        if (graph_rename(s->graph, node, graph_unique_name(s->graph, full), &err))
            place_error(L, "%s", err.text);
    }
}

void gradient_open(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "gradients", gradients);
    lua_pop(L, 1);
}
