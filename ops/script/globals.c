/* SPDX-License-Identifier: Apache-2.0
 *
 * Globals are names: a tensor or op assigned to a global gets its name, so that it can be fetched
 * by it. The environment of scripts is an empty table, so that every assignment is seen here.
 * Assigned values are kept in a separate table, looked up before the globals: a script may name a
 * tensor `init` or `clip`, and the prelude still finds its own.
 */
#include <string.h>

#include "ops/script/internal.h"

static void set_alias(struct script *s, const char *name, struct edge edge)
{
    int64_t at = (int64_t)s->aliases.n;
    if (!map_get(&s->alias_at, name, &at)) {
        vec_push(&s->aliases, ((struct alias){.name = arena_strdup(&s->arena, name)}));
        map_put(&s->alias_at, s->aliases.items[at].name, at);
    }
    s->aliases.items[at].edge = edge;
}

/* Frees the name. Placeholders, which are fed by name, and explicit names keep theirs. */
static void take_name(lua_State *L, const char *name)
{
    struct script *s = script_of(L);
    if (map_get(&s->alias_at, name, NULL))
        set_alias(s, name, EDGE_NONE);
    struct node *holder = graph_find(s->graph, name);
    if (!holder)
        return;
    struct note *note = node_note(s, holder->id);
    if (note->named == NAMED_EXPLICIT || node_has(holder, OP_SOURCE))
        place_error(L, "the name '%s' is taken by %s; call this global otherwise, or make it local",
                    name, node_text(holder));
    note->named = NAMED_GENERATED;
    node_rename(L, holder, graph_unique_name(s->graph, name));
    gradient_rename(L, name, holder->name);
}

/* _ENV[name] = value */
static int assign_global(lua_State *L)
{
    struct edge edge;
    lua_settop(L, 3);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (!strcmp(name, "entry"))
        place_error(L, "entry has what --run names: entry.NAME = ...");
    if (!strcmp(name, "D"))
        place_error(L, "D has what -D gives; call this global otherwise");
    if (*name && handle_test(L, 3, &edge)) {
        struct script *s = script_of(L);
        struct node *node = graph_node(s->graph, edge.node);
        if (graph_name_valid(name) && strcmp(node->name, name)) {
            take_name(L, name);
            struct note *note = node_note(s, node->id);
            if (note->named == NAMED_GENERATED && node->n_outputs <= 1) {
                node_rename(L, node, name);
                note->named = NAMED_GLOBAL;
            } else if (edge.slot != CONTROL_SLOT) {
                set_alias(s, name, handle_value(L, edge));
            }
        }
    }
    if (lua_isnil(L, 3) && !lua_isnil(L, 2))
        missing_declare(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_replace(L, 1);
    lua_rawset(L, 1);
    return 0;
}

/* entry[name] = tensor, op or list: what --run NAME fetches or runs. */
static int assign_entry(lua_State *L)
{
    struct script *s = script_of(L);
    if (lua_type(L, 2) != LUA_TSTRING || !graph_name_valid(lua_tostring(L, 2)))
        place_error(L, "an entry's name is a text like a node's name");
    const char *name = lua_tostring(L, 2);
    s->edges.n = 0;
    handle_collect(L, 3, arena_printf(&s->scratch, "entry.%s", name));
    int n = (int)s->edges.n;
    struct edge *edges = arena_array(&s->scratch, (size_t)n + 1, sizeof *edges);
    for (int i = 0; i < n; i++) {
        edges[i] = s->edges.items[i];
        if (edges[i].slot == CONTROL_SLOT)
            context_route_control(L, 0, edges[i].node);
        else
            edges[i] = context_route(L, 0, handle_value(L, edges[i]));
    }
    graph_add_entry(s->graph, name, edges, n);
    lua_getmetatable(L, 1);
    lua_getfield(L, -1,
                 "__index"); /* what a script reads: in `entry` itself no other would be seen */
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
    return 0;
}

/* D.name: a parameter; nil when it was not given. */
static int get_parameter(lua_State *L)
{
    struct script *s = script_of(L);
    const char *name = luaL_checkstring(L, 2), *text = NULL;
    if (!map_get(&s->asked_at, name, NULL)) {
        vec_push(&s->asked, arena_strdup(&s->arena, name));
        map_put(&s->asked_at, s->asked.items[s->asked.n - 1], 0);
    }
    int64_t at;
    if (map_get(&s->parameter_at, name, &at)) {
        s->parameters.items[at].used = true;
        text = s->parameters.items[at].value;
    }
    if (!text)
        lua_pushnil(L);
    else if (!strcmp(text, "true") || !strcmp(text, "false"))
        lua_pushboolean(L, *text == 't');
    else if (!lua_stringtonumber(L, text))
        lua_pushstring(L, text);
    return 1;
}

static int set_parameter(lua_State *L)
{
    place_error(L, "D holds the parameters given by -D and cannot be changed");
}

/* tf.nameless(tensor): the prelude chose its name, so a global's name may replace it. */
static int forget_name(lua_State *L)
{
    struct edge edge = handle_check(L, 1, "nameless");
    node_note(script_of(L), edge.node)->named = NAMED_GENERATED;
    lua_settop(L, 1);
    return 1;
}

/* aliases of the prelude: tf.alias(name, tensor) */
static int add_alias(lua_State *L)
{
    struct edge edge = handle_value(L, handle_check(L, 2, "alias"));
    set_alias(script_of(L), luaL_checkstring(L, 1), edge);
    return 0;
}

/* rawget(table, key), which does not fail for a name that was never set. The values of _G and D are
 * kept elsewhere. Upvalues: _G, D, what the script assigned, the globals. */
static int raw_get(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    if (lua_rawequal(L, 1, lua_upvalueindex(2))) {
        lua_gettable(L, 1);
        return 1;
    }
    bool is_environment = lua_rawequal(L, 1, lua_upvalueindex(1));
    lua_pushvalue(L, 2);
    if (lua_rawget(L, is_environment ? lua_upvalueindex(3) : 1) != LUA_TNIL || !is_environment)
        return 1;
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(4));
    return 1;
}

/* rawset(table, key, value); for _G, D and entry it is an assignment. Upvalues: these three. */
static int raw_set(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    bool is_proxy = false;
    for (int i = 1; i <= 3; i++)
        is_proxy = is_proxy || lua_rawequal(L, 1, lua_upvalueindex(i));
    if (is_proxy)
        lua_settable(L, 1);
    else
        lua_rawset(L, 1);
    lua_settop(L, 1);
    return 1;
}

static void proxy(lua_State *L, const char *name, lua_CFunction get, lua_CFunction set)
{
    lua_newtable(L);
    lua_newtable(L);
    if (get) {
        lua_pushcfunction(L, get);
    } else { /* a table of what was assigned */
        lua_newtable(L);
        lua_newtable(L);
        missing_push_field(L, name);
        lua_setfield(L, -2, "__index");
        lua_setmetatable(L, -2);
    }
    lua_setfield(L, -2, "__index");
    set_function(L, "__newindex", set);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, name);
}

void globals_open(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    proxy(L, "D", get_parameter, set_parameter);
    proxy(L, "entry", NULL, assign_entry);

    lua_newtable(L); /* what the script assigns */
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, ASSIGNED);

    lua_newtable(L); /* the environment */
    lua_newtable(L);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, assign_global, 1);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, "_G");
    int top = lua_gettop(L);
    int globals = top - 2;
    lua_pushvalue(L, top);
    lua_getfield(L, globals, "D");
    lua_pushvalue(L, top - 1);
    lua_pushvalue(L, globals);
    lua_pushcclosure(L, raw_get, 4);
    lua_setfield(L, globals, "rawget");
    lua_pushvalue(L, top);
    lua_getfield(L, globals, "D");
    lua_getfield(L, globals, "entry");
    lua_pushcclosure(L, raw_set, 3);
    lua_setfield(L, globals, "rawset");
    lua_setfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    lua_pop(L, 1);

    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "alias", add_alias);
    set_function(L, "nameless", forget_name);
    lua_getfield(L, -2, "entry");
    luaL_getmetafield(L, -1, "__index");
    lua_setfield(L, -3, "entries"); /* what was assigned to it, for pairs */
    lua_pop(L, 3);
}

void globals_finish(lua_State *L)
{
    struct script *s = script_of(L);
    struct error err = ERROR_INIT;
    vec_each(alias, &s->aliases)
        if (edge_exists(alias->edge) && graph_add_alias(s->graph, alias->name, alias->edge, &err))
            luaL_error(L, "%s", err.text);
}
