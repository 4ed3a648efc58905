/* SPDX-License-Identifier: Apache-2.0
 *
 * Control-flow contexts. Every node belongs to one: the root, a branch of a cond, or a while loop;
 * they nest. A node may take tensors of its own context only, so one from outside is brought in,
 * once per context: into a branch by a Switch on the predicate, into a loop by a constant Enter,
 * and through every context between. Nodes without inputs depend on the context's pivot, which is
 * live exactly when the branch is taken, or once per iteration. The lowering is TensorFlow's; cond
 * and while_loop themselves are in the prelude (flow.lua), over the functions here.
 */
#include <stdio.h>
#include <string.h>

#include "ops/script/internal.h"

static bool encloses(const struct script *s, int outer, int context)
{
    while (context > outer)
        context = s->contexts.items[context].parent;
    return context == outer;
}

static void check_visible(lua_State *L, int context, int node)
{
    struct script *s = script_of(L);
    int made_in = node_note(s, node)->context;
    if (!encloses(s, made_in, context))
        place_error(L, "%s was made in %s and cannot be used outside of it",
                    node_text(graph_node(s->graph, node)),
                    s->contexts.items[made_in].kind == CONTEXT_LOOP ? "a loop"
                                                                    : "a branch of a cond");
}

struct edge context_route(lua_State *L, int context, struct edge edge)
{
    struct script *s = script_of(L);
    if (node_note(s, edge.node)->context == context)
        return edge;
    check_visible(L, context, edge.node);
    char key[32];
    snprintf(key, sizeof key, "%d:%d", edge.node, edge.slot);
    int64_t found;
    if (map_get(&s->contexts.items[context].captured, key, &found))
        return s->captures.items[found];
    struct edge outer = context_route(L, s->contexts.items[context].parent, edge);
    const struct context *c = &s->contexts.items[context];
    struct edge inputs[] = {outer, c->pred};
    struct attr attrs[] = {{"frame_name", attr_string(c->frame)},
                           {"is_constant", attr_bool(true)},
                           {"parallel_iterations", attr_int(c->parallel_iterations)}};
    bool is_cond = c->kind == CONTEXT_COND;
    struct new_node what = {.op = is_cond ? "Switch" : "Enter",
                            .inputs = inputs,
                            .n_inputs = is_cond ? 2 : 1,
                            .attrs = attrs,
                            .n_attrs = is_cond ? 0 : 3,
                            .context = context};
    /* Settings in force for the calling op do not apply to the gate. */
    size_t n_controls = s->controls.n;
    int leader = s->leader;
    const char *scope = s->scope;
    s->controls.n = 0;
    s->leader = -1;
    s->scope = c->scope;
    struct edge inner = {node_make(L, &what)->id, is_cond ? c->branch : 0};
    s->controls.n = n_controls;
    s->leader = leader;
    s->scope = scope;
    map_put(&s->contexts.items[context].captured, arena_strdup(&s->arena, key),
            (int64_t)s->captures.n);
    vec_push(&s->captures, inner);
    return inner;
}

bool context_route_ref(lua_State *L, int context, struct edge edge)
{
    struct script *s = script_of(L);
    int made_in = node_note(s, edge.node)->context;
    check_visible(L, context, edge.node);
    for (int c = context; c != made_in; c = s->contexts.items[c].parent)
        if (s->contexts.items[c].kind == CONTEXT_LOOP)
            place_error(L,
                        "%s is a variable outside of the loop: a loop cannot change it; make "
                        "it a loop variable and Assign the result",
                        node_text(graph_node(s->graph, edge.node)));
    return context != made_in;
}

bool context_route_control(lua_State *L, int context, int node)
{
    struct script *s = script_of(L);
    check_visible(L, context, node);
    int made_in = node_note(s, node)->context;
    int loop = -1; /* the outermost loop between the two contexts */
    for (int c = context; c != made_in; c = s->contexts.items[c].parent)
        if (s->contexts.items[c].kind == CONTEXT_LOOP)
            loop = c;
    if (loop < 0)
        return true;
    /* All its variables wait, as the condition may depend on any of them; their Enters and Merges
     * were made one after the other. */
    int enter = s->contexts.items[loop].enter;
    for (size_t i = (size_t)enter; enter >= 0 && i < s->graph->nodes.n; i++) {
        struct node *of = graph_node(s->graph, (int)i);
        if (!node_is(of, "Enter") && !node_is(of, "Merge"))
            break;
        if (node_is(of, "Enter"))
            graph_add_control(s->graph, of, node);
    }
    return false;
}

/* The last input, which comes from the loop's body, may be missing. */
static bool is_open(const struct node *node)
{
    return node->n_inputs && !edge_exists(node->inputs[node->n_inputs - 1]);
}

int context_unfinished(struct script *s)
{
    for (size_t i = s->n_given; i < s->graph->nodes.n; i++)
        if (is_open(graph_node(s->graph, (int)i)) &&
            !encloses(s, node_note(s, (int)i)->context, s->context))
            return (int)i;
    return -1;
}

void context_hide_open(struct script *s)
{
    for (size_t i = s->n_given; i < s->graph->nodes.n; i++) {
        struct node *node = graph_node(s->graph, (int)i);
        if (!is_open(node))
            continue;
        node->n_inputs--;
        vec_push(&s->open, node->id);
    }
}

void context_show_open(struct script *s)
{
    while (s->open.n)
        graph_node(s->graph, vec_pop(&s->open))->n_inputs++;
}

/* tf.context{kind=, pred=, branch=, pivot=, frame=, parallel_iterations=}: makes a context within
 * the current one, and returns its number. */
static int new_context(lua_State *L)
{
    struct script *s = script_of(L);
    struct context c = {.parent = s->context, .pivot = -1, .enter = -1, .scope = s->scope};
    struct edge edge;
    lua_settop(L, 1);
    lua_getfield(L, 1, "kind");
    c.kind = !strcmp(luaL_checkstring(L, -1), "loop") ? CONTEXT_LOOP : CONTEXT_COND;
    lua_getfield(L, 1, "pred");
    c.pred = handle_test(L, -1, &edge) ? edge : EDGE_NONE;
    lua_getfield(L, 1, "branch");
    c.branch = (int)lua_tointeger(L, -1);
    lua_getfield(L, 1, "pivot");
    if (handle_test(L, -1, &edge))
        c.pivot = edge.node;
    lua_getfield(L, 1, "frame");
    c.frame = arena_strdup(&s->arena, luaL_optstring(L, -1, ""));
    lua_getfield(L, 1, "parallel_iterations");
    c.parallel_iterations = luaL_optinteger(L, -1, 0);
    lua_pushinteger(L, (lua_Integer)s->contexts.n);
    vec_push(&s->contexts, c);
    return 1;
}

/* tf.pivot(context, tensor [, enter]) */
static int set_pivot(lua_State *L)
{
    struct context *c = &script_of(L)->contexts.items[luaL_checkinteger(L, 1)];
    struct edge edge;
    c->pivot = handle_check(L, 2, "pivot").node;
    if (handle_test(L, 3, &edge))
        c->enter = edge.node;
    return 0;
}

/* tf.route(tensor): returns the tensor as it is seen in the current context. */
static int route(lua_State *L)
{
    struct edge edge = handle_value(L, handle_check(L, 1, "route"));
    handle_push(L, context_route(L, script_of(L)->context, edge));
    return 1;
}

/* tf.gate(context, op, inputs, attrs): makes a control-flow node of that context, whose inputs may
 * be of any context and are not routed; false leaves an input open. */
static int gate(lua_State *L)
{
    struct script *s = script_of(L);
    struct edge inputs[8];
    struct attr attrs[4];
    int n = (int)lua_rawlen(L, 3), n_attrs = 0;
    luaL_argcheck(L, n <= 8, 3, "too many inputs");
    for (int i = 0; i < n; i++) {
        lua_rawgeti(L, 3, i + 1);
        if (!handle_test(L, -1, &inputs[i]))
            inputs[i] = EDGE_NONE;
    }
    const struct op *op = registry_find(s->graph->registry, luaL_checkstring(L, 2));
    luaL_argcheck(L, op, 2, "no such op");
    for (int i = 0; lua_istable(L, 4) && i < op->n_attrs && n_attrs < 4; i++)
        if (lua_getfield(L, 4, op->attrs[i].name) != LUA_TNIL)
            attrs[n_attrs++] = (struct attr){
                op->attrs[i].name, value_attr(L, -1, &op->attrs[i], DTYPE_INVALID, op->def->name)};
    struct new_node what = {.op = op->def->name,
                            .inputs = inputs,
                            .n_inputs = n,
                            .attrs = attrs,
                            .n_attrs = n_attrs,
                            .context = (int)luaL_checkinteger(L, 1)};
    return handle_push_outputs(L, node_make(L, &what));
}

/* tf.close(merge, index, tensor): sets the input that was left open. */
static int close_input(lua_State *L)
{
    struct script *s = script_of(L);
    struct node *merge = graph_node(s->graph, handle_check(L, 1, "close").node);
    struct error err = ERROR_INIT;
    if (graph_set_input(s->graph, merge, (int)luaL_checkinteger(L, 2), handle_check(L, 3, "close"),
                        &err))
        place_error(L, "%s", err.text);
    return 0;
}

static int current(lua_State *L)
{
    lua_pushinteger(L, script_of(L)->context);
    return 1;
}

void context_open(lua_State *L)
{
    struct script *s = script_of(L);
    vec_push(&s->contexts, ((struct context){.kind = CONTEXT_ROOT, .parent = -1, .scope = ""}));
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "context", new_context);
    set_function(L, "pivot", set_pivot);
    set_function(L, "route", route);
    set_function(L, "gate", gate);
    set_function(L, "close", close_input);
    set_function(L, "current", current);
    lua_pop(L, 1);
}
