/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that were never set. A misspelt global, or field of a library or of the prelude, would be
 * nil, which an option takes for "not given". So reading one is an error that names the nearest
 * name. A script can test with rawget(_G, "name"), or set the global to nil first.
 */
#include <stdlib.h>
#include <string.h>

#include "ops/script/internal.h"

#define DECLARED "tf-tools.declared" /* globals that were set to nil */

/* Names that could have been meant, in the scratch arena; the strings belong to Lua. */
struct suggestions {
    struct arena *arena;
    VEC(const char *) all;
};

static void add_name(struct suggestions *names, const char *name)
{
    vec_push_in(names->arena, &names->all, name);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds keys in sorted order, as the first of equally near names is suggested. */
static void add_keys(lua_State *L, int table, struct suggestions *names)
{
    size_t first = names->all.n;
    table = lua_absindex(L, table);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (lua_type(L, -2) == LUA_TSTRING)
            add_name(names, lua_tostring(L, -2));
        lua_pop(L, 1);
    }
    if (names->all.n > first)
        qsort(names->all.items + first, names->all.n - first, sizeof *names->all.items,
              compare_strings);
}

static const char *hint(const char *key, struct suggestions *names)
{
    add_name(names, NULL);
    return place_hint(str_nearest(key, names->all.items));
}

/* __index of the globals, which are looked up last. Upvalue: what the script assigned. */
static int missing_global(lua_State *L)
{
    lua_settop(L, 2);
    lua_getfield(L, LUA_REGISTRYINDEX, DECLARED);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, 3) != LUA_TNIL) {
        lua_pushnil(L);
        return 1;
    }
    struct suggestions names = {.arena = &script_of(L)->scratch};
    /* Adds locals of the script functions on the stack: the one that reads the name, and usually
     * those around it. */
    lua_Debug frame;
    const char *name;
    for (int level = 1; lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "S", &frame);
        for (int i = 1; frame.source[0] == '@' && (name = lua_getlocal(L, &frame, i)); i++) {
            lua_pop(L, 1);
            if (name[0] != '(')
                add_name(&names, name);
        }
    }
    add_keys(L, lua_upvalueindex(1), &names);
    add_keys(L, 1, &names);
    const char *key = text_of(L, 2);
    place_error(L, "the global '%s' was never set%s", key, hint(key, &names));
}

/* __index of a library. Upvalue: its name. */
static int missing_field(lua_State *L)
{
    struct suggestions names = {.arena = &script_of(L)->scratch};
    add_keys(L, 1, &names);
    const char *key = text_of(L, 2);
    place_error(L, "%s has no field '%s'%s", lua_tostring(L, lua_upvalueindex(1)), key,
                hint(key, &names));
}

/* tf.nearest(word, list): "; did you mean 'x'?", or "". */
static int nearest(lua_State *L)
{
    struct suggestions names = {.arena = &script_of(L)->scratch};
    const char *word = luaL_checkstring(L, 1);
    lua_Integer n = luaL_len(L, 2);
    luaL_checkstack(L, 1, NULL);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 2, i);
        add_name(&names, arena_strdup(names.arena, luaL_checkstring(L, -1)));
        lua_pop(L, 1);
    }
    lua_pushstring(L, hint(word, &names));
    return 1;
}

void missing_declare(lua_State *L, int key)
{
    key = lua_absindex(L, key);
    lua_getfield(L, LUA_REGISTRYINDEX, DECLARED);
    lua_pushvalue(L, key);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

void missing_push_field(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_pushcclosure(L, missing_field, 1);
}

void missing_open(lua_State *L)
{
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, DECLARED);
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "nearest", nearest);
    lua_pop(L, 1);
}

void missing_guard(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    /* Gives each library a metatable; tables that have one (D, entry, _G) keep it. */
    int globals = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, globals)) {
        if (lua_type(L, -2) == LUA_TSTRING && lua_istable(L, -1) && !lua_getmetatable(L, -1)) {
            lua_newtable(L);
            missing_push_field(L, lua_tostring(L, -3));
            lua_setfield(L, -2, "__index");
            lua_pushboolean(L, false);
            lua_setfield(L, -2, "__metatable");
            lua_setmetatable(L, -2);
            lua_pop(L, 1);
        } else {
            lua_settop(L, globals + 1);
        }
    }
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, ASSIGNED);
    lua_pushcclosure(L, missing_global, 1);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}
