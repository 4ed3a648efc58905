/* SPDX-License-Identifier: Apache-2.0
 *
 * The prelude: Lua that is built in. Its chunks run with the globals as environment, so that what
 * they define is global without being named, and get the internals as their argument.
 */
#include <string.h>

#include "ops/script/internal.h"

const char *prelude_find(const char *name)
{
    for (const struct prelude_text *p = prelude_texts; p->name; p++)
        if (!strcmp(p->name, name))
            return p->text;
    return NULL;
}

static void run(lua_State *L, const char *name, const char *text)
{
    lua_pushfstring(L, "=[prelude] %s.lua", name);
    if (luaL_loadbufferx(L, text, strlen(text), lua_tostring(L, -1), "t"))
        lua_error(L);
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    lua_setupvalue(L, -2, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

void prelude_open(lua_State *L)
{
    const char *base = prelude_find("base");
    if (base) /* what the others are written in */
        run(L, "base", base);
    for (const struct prelude_text *p = prelude_texts; p->name; p++)
        if (strcmp(p->name, "base"))
            run(L, p->name, p->text);
}
