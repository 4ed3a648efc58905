/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables: what belongs to one (its read, its initial value), and the entries made from them. The
 * nodes are made by variable() in the prelude (variable.lua).
 */
#include <inttypes.h>
#include <string.h>

#include "graph/device_name.h"
#include "graph/walk.h"
#include "ops/script/internal.h"

const struct variable_note *variable_of(struct script *s, int node)
{
    int index = node_note(s, node)->variable;
    return index < 0 ? NULL : &s->variables.items[index];
}

static void add_note(struct script *s, struct variable_note what)
{
    node_note(s, what.node)->variable = (int)s->variables.n;
    vec_push(&s->variables, what);
}

/* Reads after the same nodes see the same value, and are merged into one. */
struct edge variable_own_read(lua_State *L, struct edge variable)
{
    struct script *s = script_of(L);
    size_t n = s->controls.n;
    const char *key = arena_printf(&s->scratch, "%d %d %" PRIx64, variable.node, s->context,
                                   hash_bytes(s->controls.items, n * sizeof(int), n));
    int64_t at;
    const struct own_read *there =
        map_get(&s->own_read_at, key, &at) ? &s->own_reads.items[at] : NULL;
    if (there && there->variable == variable.node && there->context == s->context &&
        (size_t)there->n_controls == n &&
        !memcmp(there->controls, s->controls.items, n * sizeof(int)))
        return there->edge;
    const struct node *node = graph_node(s->graph, variable.node);
    struct own_read read = {.variable = variable.node,
                            .context = s->context,
                            .controls = arena_copy(&s->arena, s->controls.items, n * sizeof(int)),
                            .n_controls = (int)n};
    struct new_node what = {
        .op = "Identity",
        .name = graph_unique_name(s->graph, arena_printf(&s->scratch, "%s/read", node->name)),
        .inputs = &variable,
        .n_inputs = 1,
        .device = node->device,
        .context = -1,
        .is_read = true};
    int leader = s->leader;
    s->leader = variable.node;
    read.edge = (struct edge){node_make(L, &what)->id, 0};
    s->leader = leader;
    map_put(&s->own_read_at, arena_strdup(&s->arena, key), (int64_t)s->own_reads.n);
    vec_push(&s->own_reads, read);
    return read.edge;
}

void variable_adopt(struct script *s)
{
    node_adopt(s);
    graph_each(node, s->graph)
        if (node_is(node, "Variable"))
            add_note(s, (struct variable_note){node->id, EDGE_NONE, EDGE_NONE, -1, 0, -1});
    graph_each(node, s->graph) {
        if (!node_is(node, "Identity") || !edge_exists(node->inputs[0]))
            continue;
        int index = node_note(s, node->inputs[0].node)->variable;
        if (index >= 0 && !edge_exists(s->variables.items[index].read))
            s->variables.items[index].read = (struct edge){node->id, 0};
    }
}

/* tf.variable(variable, read, assign, initial, named): notes what belongs together; the nodes made
 * since `named` (the first of them, a handle or nil) follow the variable's name. */
static int note_variable(lua_State *L)
{
    struct script *s = script_of(L);
    struct variable_note what = {.node = handle_check(L, 1, "variable").node,
                                 .read = handle_check(L, 2, "read"),
                                 .assign = handle_check(L, 3, "assign").node,
                                 .initial = handle_check(L, 4, "initial"),
                                 .first = (int)luaL_checkinteger(L, 5)};
    what.last = (int)s->graph->nodes.n - 1;
    add_note(s, what);
    node_note(s, what.node)->named = lua_toboolean(L, 6) ? NAMED_EXPLICIT : NAMED_GENERATED;
    return 0;
}

/* tf.variables(): all variables, in order of creation. */
static int list_variables(lua_State *L)
{
    struct script *s = script_of(L);
    lua_createtable(L, (int)s->variables.n, 0);
    for (size_t i = 0; i < s->variables.n; i++) {
        handle_push(L, (struct edge){s->variables.items[i].node, 0});
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* trainable(): variables of a floating type that are not marked otherwise. */
static int list_trainable(lua_State *L)
{
    struct script *s = script_of(L);
    int n = 0;
    lua_newtable(L);
    vec_each(variable, &s->variables) {
        if (!node_is_trained(graph_node(s->graph, variable->node)))
            continue;
        handle_push(L, (struct edge){variable->node, 0});
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* updates(): ops marked _update, which a training step also runs (moving averages). */
static int list_updates(lua_State *L)
{
    struct script *s = script_of(L);
    int n = 0;
    lua_newtable(L);
    graph_each(node, s->graph) {
        const struct attr_value *mark = node_attr(node, "_update");
        if (!mark || mark->kind != ATTR_BOOL || !mark->b)
            continue;
        handle_push(L, (struct edge){node->id, CONTROL_SLOT});
        lua_rawseti(L, -2, ++n);
    }
    return 1;
}

/* tensor(name): finds a tensor in the graph so far. */
static int find_tensor(lua_State *L)
{
    struct script *s = script_of(L);
    struct error err = ERROR_INIT;
    struct edge edge;
    if (lua_type(L, 1) != LUA_TSTRING)
        place_error(L, "tensor: the name must be text, not a %s",
                    lua_isnone(L, 1) ? "nil" : value_kind(L, 1));
    if (graph_parse_edge(s->graph, lua_tostring(L, 1), &edge, &err))
        place_error(L, "%s", err.text);
    if (edge.slot != CONTROL_SLOT && !graph_node(s->graph, edge.node)->n_outputs)
        edge.slot = CONTROL_SLOT;
    handle_push(L, edge);
    return 1;
}

static int next_id(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)script_of(L)->graph->nodes.n);
    return 1;
}

/* tf.unique(name): returns a full name within the scope that is still free. */
static int unique(lua_State *L)
{
    struct script *s = script_of(L);
    const char *full = node_full_name(s, luaL_checkstring(L, 1));
    lua_pushstring(L, graph_unique_name(s->graph, full));
    return 1;
}

void variable_open(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    set_function(L, "variables", list_variables);
    set_function(L, "trainable", list_trainable);
    set_function(L, "updates", list_updates);
    set_function(L, "tensor", find_tensor);
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "variable", note_variable);
    set_function(L, "next_id", next_id);
    set_function(L, "unique", unique);
    lua_pop(L, 2);
}

/* ---- the entries init and ready ---- */

/* Pushes the entry so far onto script->edges. */
static void start_entry(struct script *s, const char *name)
{
    s->edges.n = 0;
    const struct entry *entry = graph_entry(s->graph, name);
    for (int k = 0; entry && k < entry->n_edges; k++)
        vec_push(&s->edges, entry->edges[k]);
}

/* Returns the place of `ready`: each of the tasks, if variables are on all of several tasks. The
 * device within a task is left open, as some have no kernel for it. */
static const char *place_of_ready(struct script *s)
{
    vec_each(variable, &s->variables) {
        struct device_name device;
        struct error err = ERROR_INIT;
        const char *text = graph_node(s->graph, variable->node)->device;
        if (device_name_parse(&device, text, &err) || !device_task_is_many(device.task))
            continue;
        device.type[0] = '\0';
        device.index = DEVICE_OPEN;
        return device_name_text(&s->arena, &device);
    }
    return "";
}

static struct edge make(lua_State *L, const char *op, const char *name, const struct edge *inputs,
                        int n, int leader)
{
    struct script *s = script_of(L);
    struct new_node what = {.op = op, .inputs = inputs, .n_inputs = n};
    what.name = name ? graph_unique_name(s->graph, name) : NULL;
    if (leader >= 0)
        what.device = graph_node(s->graph, leader)->device;
    s->leader = leader;
    return (struct edge){node_make(L, &what)->id, 0};
}

/* ready = all of the entry's tensors so far and IsVariableInitialized of the new variables. */
static void make_ready(lua_State *L)
{
    struct script *s = script_of(L);
    start_entry(s, "ready");
    s->scope = "ready";
    s->device = place_of_ready(s);
    size_t n_before = s->edges.n;
    vec_each(v, &s->variables) {
        struct edge ref = {v->node, 0};
        if (v->assign >= 0)
            vec_push(&s->edges, make(L, "IsVariableInitialized", NULL, &ref, 1, v->node));
    }
    if (s->edges.n == n_before)
        return;
    struct edge all = s->edges.items[0];
    if (s->edges.n > 1) {
        struct edge *each =
            arena_copy(&s->scratch, s->edges.items, s->edges.n * sizeof *s->edges.items);
        struct edge inputs[2] = {make(L, "Pack", NULL, each, (int)s->edges.n, -1)};
        struct tensor zero = {.type = INT32, .data = &(int32_t){0}};
        struct attr attrs[] = {{"dtype", attr_type(INT32)}, {"value", attr_tensor(&zero)}};
        struct new_node axis = {.op = "Const", .attrs = attrs, .n_attrs = 2};
        inputs[1] = (struct edge){node_make(L, &axis)->id, 0};
        all = make(L, "All", "ready/all", inputs, 2, -1);
    }
    s->edges.n = 0;
    vec_push(&s->edges, all);
    graph_add_entry(s->graph, "ready", s->edges.items, (int)s->edges.n);
}

void variable_finish(lua_State *L)
{
    struct script *s = script_of(L);
    struct graph_walk walk = graph_walk_new(&s->scratch, s->graph);
    start_entry(s, "init");
    size_t n_before = s->edges.n;
    vec_each(v, &s->variables) {
        if (v->assign < 0)
            continue;
        /* An initial value that reads another variable might read it before it has a value. */
        const struct node *node;
        graph_walk_to(&walk, v->initial.node);
        while ((node = graph_walk_next(&walk, s->graph))) {
            if (variable_of(s, node->id))
                luaL_error(L,
                           "%s: its initial value reads the variable '%s', which may not have one "
                           "yet; use the field initial of '%s'",
                           node_text(graph_node(s->graph, v->node)), node->name, node->name);
            graph_walk_inputs(&walk, node);
        }
        vec_push(&s->edges, ((struct edge){v->assign, CONTROL_SLOT}));
    }
    if (s->edges.n > n_before)
        graph_add_entry(s->graph, "init", s->edges.items, (int)s->edges.n);
    make_ready(L);
}
