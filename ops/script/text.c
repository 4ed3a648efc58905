/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as text, without addresses: they differ from run to run, and a text may become a name in
 * the graph. Tables and functions are numbered in the order in which their text is first asked for.
 */
#include <string.h>

#include "ops/script/internal.h"

#define NUMBERS "tf-tools.numbers" /* of objects; a table with weak keys */

const char *text_of(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    int top = lua_gettop(L);
    int type = lua_type(L, index);
    bool simple =
        type == LUA_TNIL || type == LUA_TBOOLEAN || type == LUA_TNUMBER || type == LUA_TSTRING;
    luaL_checkstack(L, 6, NULL);
    if (simple || luaL_getmetafield(L, index, "__tostring") != LUA_TNIL) {
        luaL_tolstring(L, index, NULL);
    } else {
        struct script *s = script_of(L);
        const char *kind = luaL_typename(L, index);
        if (luaL_getmetafield(L, index, "__name") == LUA_TSTRING)
            kind = lua_tostring(L, -1); /* stays below the result */
        lua_getfield(L, LUA_REGISTRYINDEX, NUMBERS);
        lua_pushvalue(L, index);
        if (lua_rawget(L, -2) == LUA_TNIL) {
            lua_pop(L, 1);
            lua_pushinteger(L, ++s->objects_named);
            lua_pushvalue(L, index);
            lua_pushvalue(L, -2);
            lua_rawset(L, -4);
        }
        lua_pushfstring(L, "%s: %I", kind, (LUAI_UACINT)lua_tointeger(L, -1));
    }
    lua_insert(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tostring(L, -1);
}

static int to_string(lua_State *L)
{
    luaL_checkany(L, 1);
    text_of(L, 1);
    return 1;
}

/* string.format(format, ...), upvalue: Lua's own. Values for %s are converted to text before. */
static int format(lua_State *L)
{
    int n = lua_gettop(L), argument = 1;
    for (const char *c = luaL_checkstring(L, 1); *c; c++) {
        if (*c != '%')
            continue;
        c += 1 + strspn(c + 1, "-+ #0123456789.");
        if (!*c)
            break;
        if (*c == 'p')
            place_error(L, "string.format: %%p is an address, which differs from run to run");
        argument += *c != '%';
        if (*c == 's' && argument <= n) {
            text_of(L, argument);
            lua_replace(L, argument);
        }
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, 1);
    return 1;
}

void text_open(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setfield(L, LUA_REGISTRYINDEX, NUMBERS);
    set_function(L, "tostring", to_string);
    lua_getfield(L, -1, LUA_STRLIBNAME);
    lua_getfield(L, -1, "format");
    lua_pushcclosure(L, format, 1);
    lua_setfield(L, -2, "format");
    lua_pop(L, 1);
}
