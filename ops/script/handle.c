/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors and ops as Lua values: a userdata that holds an edge. A variable is a tensor, too: an op
 * that needs its value gets its read, an op that changes it gets the variable itself.
 */
#include <string.h>

#include "ops/script/internal.h"

#define METATABLE "tensor"
/* Handles are numbered as they are created, which gives them an order as keys of a table. */
struct edge_handle {
    struct edge edge;
    int64_t number;
};

#define LISTS_DEPTH_MAX 100 /* of lists of ops; the stack must hold the recursion */

void handle_push(lua_State *L, struct edge edge)
{
    struct edge_handle *handle = lua_newuserdatauv(L, sizeof *handle, 0);
    *handle = (struct edge_handle){edge, ++script_of(L)->handles_made};
    luaL_setmetatable(L, METATABLE);
}

bool handle_test(lua_State *L, int index, struct edge *edge)
{
    if (lua_type(L, index) != LUA_TUSERDATA)
        return false;
    const struct edge_handle *handle = luaL_testudata(L, index, METATABLE);
    if (!handle)
        return false;
    *edge = handle->edge;
    return true;
}

struct edge handle_check(lua_State *L, int index, const char *what)
{
    struct edge edge;
    if (!handle_test(L, index, &edge))
        place_error(L, "%s must be a tensor or an op, not a %s", what, value_kind(L, index));
    return edge;
}

int handle_push_outputs(lua_State *L, const struct node *node)
{
    luaL_checkstack(L, node->n_outputs + 1, "too many outputs");
    if (!node->n_outputs) {
        handle_push(L, (struct edge){node->id, CONTROL_SLOT});
        return 1;
    }
    for (int k = 0; k < node->n_outputs; k++)
        handle_push(L, (struct edge){node->id, k});
    return node->n_outputs;
}

struct edge handle_first_value(lua_State *L, struct edge edge)
{
    struct script *s = script_of(L);
    if (edge.slot == CONTROL_SLOT)
        place_error(L, "%s has no output", node_text(graph_node(s->graph, edge.node)));
    const struct variable_note *variable = variable_of(s, edge.node);
    return variable && edge_exists(variable->read) ? variable->read : edge;
}

struct edge handle_value(lua_State *L, struct edge edge)
{
    struct script *s = script_of(L);
    struct edge first = handle_first_value(L, edge);
    if (first.node == edge.node)
        return first;
    if (s->controls.n)
        return s->shares_reads ? first : variable_own_read(L, edge);
    int around = s->context; /* the loop within control(), if there is one */
    while (around && !s->contexts.items[around].n_controls)
        around = s->contexts.items[around].parent;
    if (!around)
        return first;
    const struct context c = s->contexts.items[around];
    int context = s->context;
    for (int i = 0; i < c.n_controls; i++)
        vec_push(&s->controls, c.controls[i]);
    s->context = c.parent;
    edge = variable_own_read(L, edge);
    s->context = context;
    s->controls.n = 0;
    return edge;
}

static void collect(lua_State *L, int index, const char *what, int depth)
{
    struct script *s = script_of(L);
    struct edge edge;
    index = lua_absindex(L, index);
    if (handle_test(L, index, &edge)) {
        vec_push(&s->edges, edge);
        return;
    }
    if (lua_type(L, index) != LUA_TTABLE)
        place_error(L, "%s must be a tensor, an op or a list of them, not a %s", what,
                    value_kind(L, index));
    if (depth == LISTS_DEPTH_MAX)
        place_error(L, "%s: lists are nested more than %d deep", what, LISTS_DEPTH_MAX);
    luaL_checkstack(L, 4, "lists are nested too deeply");
    value_check_list(L, index, what);
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, index, i);
        collect(L, -1, what, depth + 1);
        lua_pop(L, 1);
    }
}

void handle_collect(lua_State *L, int index, const char *what)
{
    collect(L, index, what, 0);
}

static const struct node_output *handle_output(lua_State *L, struct edge edge)
{
    const struct node *node = graph_node(script_of(L)->graph, edge.node);
    if (edge.slot == CONTROL_SLOT)
        place_error(L, "%s has no output", node_text(node));
    return &node->outputs[edge.slot];
}

static void push_shape(lua_State *L, const struct shape *shape)
{
    if (shape->rank == SHAPE_UNKNOWN) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, shape->rank, 0);
    for (int i = 0; i < shape->rank; i++) {
        lua_pushinteger(L, shape->dims[i]);
        lua_seti(L, -2, i + 1);
    }
}

/* Checks the one argument of a method besides the tensor. */
static void check_one(lua_State *L, const char *method)
{
    if (lua_gettop(L) > 2)
        place_error(L, "%s takes one argument, not %d", method, lua_gettop(L) - 1);
}

static int method_output(lua_State *L)
{
    check_one(L, "output");
    struct edge edge = handle_check(L, 1, "output: the tensor");
    lua_Integer slot = luaL_checkinteger(L, 2);
    const struct node *node = graph_node(script_of(L)->graph, edge.node);
    if (slot < 0 || slot >= node->n_outputs)
        place_error(L, "%s has no output %lld, it has %d", node_text(node), (long long)slot,
                    node->n_outputs);
    handle_push(L, (struct edge){edge.node, (int)slot});
    return 1;
}

static int method_attr(lua_State *L)
{
    check_one(L, "attr");
    struct edge edge = handle_check(L, 1, "attr: the tensor");
    const struct node *node = graph_node(script_of(L)->graph, edge.node);
    const struct attr_value *value = node_attr(node, luaL_checkstring(L, 2));
    switch (value ? value->kind : ATTR_NONE) {
    case ATTR_INT:
        lua_pushinteger(L, value->i);
        break;
    case ATTR_FLOAT:
        lua_pushnumber(L, value->f);
        break;
    case ATTR_BOOL:
        lua_pushboolean(L, value->b);
        break;
    case ATTR_STRING:
        lua_pushstring(L, value->s);
        break;
    case ATTR_TYPE:
        lua_pushstring(L, dtype_name(value->type));
        break;
    case ATTR_SHAPE:
        push_shape(L, value->shape);
        break;
    default:
        lua_pushnil(L);
    }
    return 1;
}

static int push_input(lua_State *L)
{
    check_one(L, "input");
    struct edge edge = handle_check(L, 1, "input: the tensor");
    lua_Integer index = luaL_checkinteger(L, 2);
    const struct node *node = graph_node(script_of(L)->graph, edge.node);
    if (index < 0 || index >= node->n_inputs)
        place_error(L, "%s has no input %lld, it has %d", node_text(node), (long long)index,
                    node->n_inputs);
    if (!edge_exists(node->inputs[index]))
        place_error(L, "input %lld of %s comes when the loop is complete", (long long)index,
                    node_text(node));
    handle_push(L, node->inputs[index]);
    return 1;
}

static int push_field(lua_State *L, struct edge edge, const char *key)
{
    struct script *s = script_of(L);
    const struct node *node = graph_node(s->graph, edge.node);
    if (!strcmp(key, "name")) {
        if (edge.slot > 0)
            lua_pushfstring(L, "%s:%d", node->name, edge.slot);
        else
            lua_pushstring(L, node->name);
    } else if (!strcmp(key, "op")) {
        lua_pushstring(L, node->op->def->name);
    } else if (!strcmp(key, "device")) {
        lua_pushstring(L, node->device ? node->device : "");
    } else if (!strcmp(key, "id")) {
        lua_pushinteger(L, node->id);
    } else if (!strcmp(key, "n_outputs")) {
        lua_pushinteger(L, node->n_outputs);
    } else if (!strcmp(key, "dtype")) {
        lua_pushstring(L, dtype_name(handle_output(L, edge)->type));
    } else if (!strcmp(key, "shape")) {
        push_shape(L, &handle_output(L, edge)->shape);
    } else if (!strcmp(key, "rank")) {
        int rank = handle_output(L, edge)->shape.rank;
        if (rank == SHAPE_UNKNOWN)
            lua_pushnil(L);
        else
            lua_pushinteger(L, rank);
    } else if (!strcmp(key, "is_variable")) {
        lua_pushboolean(L, variable_of(s, edge.node) != NULL);
    } else if (!strcmp(key, "read") || !strcmp(key, "initial")) {
        const struct variable_note *variable = variable_of(s, edge.node);
        struct edge part = !variable       ? EDGE_NONE
                           : key[0] == 'i' ? variable->initial
                                           : variable->read;
        if (edge_exists(part))
            handle_push(L, part);
        else
            lua_pushnil(L);
        return 1;
    } else {
        return 0;
    }
    return 1;
}

static int handle_index(lua_State *L)
{
    static const char *const fields[] = {"name",      "op",    "device",      "id",    "dtype",
                                         "n_outputs", "shape", "rank",        "read",  "initial",
                                         "output",    "attr",  "is_variable", "input", NULL};
    struct edge edge = handle_check(L, 1, "tensor");
    if (lua_type(L, 2) != LUA_TSTRING)
        place_error(L, "a tensor cannot be indexed by a %s; use Gather, Slice or StridedSlice",
                    value_kind(L, 2));
    const char *key = lua_tostring(L, 2);
    if (push_field(L, edge, key))
        return 1;
    if (!strcmp(key, "output"))
        lua_pushcfunction(L, method_output);
    else if (!strcmp(key, "attr"))
        lua_pushcfunction(L, method_attr);
    else if (!strcmp(key, "input"))
        lua_pushcfunction(L, push_input);
    else
        place_error(L, "a tensor has no field '%s'%s", key, place_hint(str_nearest(key, fields)));
    return 1;
}

static int handle_newindex(lua_State *L)
{
    place_error(L, "a tensor's fields cannot be set");
}

static int handle_equal(lua_State *L)
{
    struct edge a, b;
    lua_pushboolean(L, handle_test(L, 1, &a) && handle_test(L, 2, &b) && a.node == b.node &&
                           a.slot == b.slot);
    return 1;
}

static int handle_compare(lua_State *L)
{
    place_error(L, "tensors are compared by Less, LessEqual, Greater, GreaterEqual and Equal: "
                   "an operator of Lua cannot return a tensor");
}

static int handle_text(lua_State *L)
{
    struct edge edge = handle_check(L, 1, "tensor");
    const struct node *node = graph_node(script_of(L)->graph, edge.node);
    if (edge.slot == CONTROL_SLOT) {
        lua_pushfstring(L, "op '%s'", node->name);
        return 1;
    }
    const struct node_output *output = &node->outputs[edge.slot];
    lua_pushfstring(L, "tensor '%s' %s", node->name,
                    shape_text_typed(output->type, &output->shape));
    return 1;
}

/* tf.number_of(tensor): its number, in the order in which handles were created. */
static int number_of(lua_State *L)
{
    const struct edge_handle *handle = luaL_checkudata(L, 1, METATABLE);
    lua_pushinteger(L, handle->number);
    return 1;
}

void handle_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"__index", handle_index},
                                       {"__newindex", handle_newindex},
                                       {"__eq", handle_equal},
                                       {"__lt", handle_compare},
                                       {"__le", handle_compare},
                                       {"__tostring", handle_text},
                                       {NULL, NULL}};
    luaL_newmetatable(L, METATABLE);
    luaL_setfuncs(L, methods, 0);
    lua_pushliteral(L, METATABLE);
    lua_setfield(L, -2, "__metatable");
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "number_of", number_of);
    lua_pop(L, 2);
}
