/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script may do: the pure part of Lua's library, modules beside it, within limits
 * (limits.c). Removed are: os, io, debug, package, coroutine, dofile, loadfile, collectgarbage,
 * string.dump; only text can be loaded, finalizers are refused (they would run in the middle of our
 * C code), random numbers start from the script's seed, no text contains an address (text.c).
 */
#include <string.h>

#include "base/memory.h"
#include "ops/script/internal.h"
#include "ops/script/load.h"

static int print(lua_State *L)
{
    struct script *s = script_of(L);
    int n = lua_gettop(L);
    luaL_Buffer line;
    luaL_buffinit(L, &line);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&line, '\t');
        text_of(L, i);
        luaL_addvalue(&line);
    }
    luaL_pushresult(&line);
    if (s->options.print)
        s->options.print(lua_tostring(L, -1));
    return 0;
}

static int set_metatable(lua_State *L)
{
    luaL_argexpected(L, lua_type(L, 2) == LUA_TNIL || lua_type(L, 2) == LUA_TTABLE, 2,
                     "nil or table");
    luaL_checktype(L, 1, LUA_TTABLE);
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        place_error(L, "setmetatable: the metatable is protected");
    lua_settop(L, 2);
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            place_error(L, "setmetatable: finalizers (__gc) are not available to scripts");
        lua_pop(L, 1);
    }
    lua_setmetatable(L, 1);
    return 1;
}

/* load(text [, name [, mode [, env]]]): text only, in the script's environment. */
static int load_text(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    const char *name = luaL_optstring(L, 2, "=(load)");
    lua_settop(L, 4);
    if (luaL_loadbufferx(L, text, n, name, "t")) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (lua_isnil(L, 4))
        lua_getfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    else
        lua_pushvalue(L, 4);
    lua_setupvalue(L, -2, 1);
    return 1;
}

int sandbox_protected(lua_State *L, int n_arguments)
{
    int at = lua_gettop(L) - n_arguments;
    lua_pushcfunction(L, sandbox_message);
    lua_insert(L, at);
    int status = lua_pcall(L, n_arguments, LUA_MULTRET, at);
    lua_remove(L, at);
    return status;
}

/* Pushes the chunk as a function of the script's environment. */
static void sandbox_load(lua_State *L, const char *text, size_t n, const char *chunk)
{
    if (luaL_loadbufferx(L, text, n, chunk, "t")) {
        if (str_starts(lua_tostring(L, -1), "attempt to load a binary chunk"))
            lua_pushfstring(L, "%s: %s", chunk + 1, lua_tostring(L, -1));
        lua_error(L);
    }
    lua_getfield(L, LUA_REGISTRYINDEX, ENVIRONMENT);
    lua_setupvalue(L, -2, 1);
}

void sandbox_run(lua_State *L, const char *text, size_t n, const char *chunk, int n_results)
{
    sandbox_load(L, text, n, chunk);
    lua_call(L, 0, n_results);
}

/* Valid: letters, digits and _, joined by single dots, so that no name leads out of the folder. */
static bool module_name_valid(const char *name)
{
    bool after_dot = true;
    for (; *name; name++) {
        bool word = *name == '_' || (*name >= '0' && *name <= '9') ||
                    ((*name | 32) >= 'a' && (*name | 32) <= 'z');
        if (!word && (*name != '.' || after_dot))
            return false;
        after_dot = !word;
    }
    return !after_dot;
}

static void run_module(lua_State *L, const char *name)
{
    struct script *s = script_of(L);
    char *path = arena_printf(&s->arena, "%s%s%s.lua", s->folder, *s->folder ? "/" : "", name);
    for (char *c = path + strlen(path) - strlen(name) - 4; c < path + strlen(path) - 4; c++)
        if (*c == '.')
            *c = '/';
    struct error err = ERROR_INIT;
    size_t n;
    char *text = load_file(path, LOAD_SCRIPT_BYTES, &n, &err);
    if (!text)
        place_error(L, "require '%s': %s", name, err.text);
    const char *chunk = lua_pushfstring(L, "@%s", path);
    const char *copy = lua_pushlstring(L, text, n); /* the following calls may not return */
    mem_free(text);
    sandbox_load(L, copy, n, chunk);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, true);
    }
}

/* require "name": NAME.lua beside the script, once; or a table of the prelude ("nn", "optim"). */
static int require(lua_State *L)
{
    size_t n;
    const char *name = luaL_checklstring(L, 1, &n);
    if (strlen(name) != n || !module_name_valid(name))
        place_error(L,
                    "require '%s': a module is named by letters, digits and _, with dots for "
                    "folders; it lies beside the script",
                    name);
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, "tf-tools.modules");
    if (lua_getfield(L, 2, name) == LUA_TLIGHTUSERDATA)
        place_error(L, "require '%s': the module requires itself", name);
    if (!lua_isnil(L, -1))
        return 1;
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    lua_pushvalue(L, 1);
    if (prelude_find(name) && lua_rawget(L, -2) == LUA_TTABLE)
        return 1;
    lua_settop(L, 2);
    lua_pushlightuserdata(L, script_of(L)); /* marks the one being loaded */
    lua_setfield(L, 2, name);
    run_module(L, name);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

/* fail(format, ...): an error at the user's line, for the prelude. */
static int fail(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1)); /* string.format as it was before any script */
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    place_error(L, "%s", lua_tostring(L, -1));
}

void sandbox_open(lua_State *L)
{
    static const char *const pure[] = {
        "assert", "error",  "ipairs",       "next",     "pcall",    "rawequal", "rawget", "rawlen",
        "rawset", "select", "getmetatable", "tonumber", "tostring", "type",     "xpcall", NULL};
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, INTERNALS);
    lua_newtable(L); /* the globals */
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, GLOBALS);
    luaL_requiref(L, "_G", luaopen_base, 0);
    lua_insert(L, -2);
    for (const char *const *name = pure; *name; name++) {
        lua_getfield(L, -2, *name);
        lua_setfield(L, -2, *name);
    }
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    lua_pushnil(L);
    lua_setfield(L, -2, "dump");
    lua_setfield(L, -2, LUA_STRLIBNAME);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    lua_setfield(L, -2, LUA_TABLIBNAME);
    luaL_requiref(L, LUA_UTF8LIBNAME, luaopen_utf8, 1);
    lua_setfield(L, -2, LUA_UTF8LIBNAME);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, script_of(L)->options.seed);
    lua_pushinteger(L, 0);
    lua_call(L, 2, 0);
    lua_pushnil(L);
    lua_setfield(L, -2, "randomseed");
    lua_setfield(L, -2, LUA_MATHLIBNAME);
    text_open(L);
    sort_open(L);
    /* All strings share one metatable. */
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
    set_function(L, "setmetatable", set_metatable);
    set_function(L, "load", load_text);
    set_function(L, "require", require);
    set_function(L, "print", print);
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    lua_getfield(L, -2, LUA_STRLIBNAME);
    lua_getfield(L, -1, "format");
    lua_pushcclosure(L, fail, 1);
    lua_setfield(L, -3, "fail");
    lua_pop(L, 1);
    lua_pop(L, 1);
    limits_open(L);
    lua_pop(L, 2);
}

int sandbox_message(lua_State *L)
{
    const char *file = "script", *message;
    int line = 0;
    bool has_place = place_find(L, &file, &line);
    if (lua_isstring(L, 1) || luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL)
        message = luaL_tolstring(L, 1, NULL);
    else
        message = lua_pushfstring(L, "%s:%d: error: a %s", file, line, luaL_typename(L, 1));
    if (has_place && strstr(message, "C stack overflow"))
        message = lua_pushfstring(L,
                                  "%s:%d: functions that scope, cond, pcall and the like call are "
                                  "nested too deeply: up to 60, one in the other, are sure to fit",
                                  file, line);
    /* messages of C functions have no place of their own */
    if (has_place && (str_starts(message, "[prelude] ") || str_starts(message, "attempt to ")))
        message = lua_pushfstring(L, "%s:%d: %s", file, line, message);
    luaL_gsub(L, message, "\n", " ");
    return 1;
}
