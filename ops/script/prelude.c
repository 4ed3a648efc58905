/* SPDX-License-Identifier: Apache-2.0
 *
 * The prelude: Lua that is built in. Its chunks run with the globals as environment, so that what
 * they define is global without being named, and get the internals as their argument.
 */
#include <string.h>

#include "ops/script/internal.h"

const struct prelude_module *prelude_find(const char *name)
{
    for (const struct prelude_module *m = prelude_modules; m->name; m++)
        if (!strcmp(m->name, name))
            return m;
    return NULL;
}

static void run(lua_State *L, const struct prelude_module *module)
{
    if (luaL_loadbufferx(L, (const char *)module->chunk, module->bytes, module->name, "b"))
        lua_error(L);
    lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
    lua_setupvalue(L, -2, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    lua_call(L, 1, 0);
}

void prelude_open(lua_State *L)
{
    const struct prelude_module *base = prelude_find("base");
    if (base) /* what the others are written in */
        run(L, base);
    for (const struct prelude_module *m = prelude_modules; m->name; m++)
        if (m != base)
            run(L, m);
}
