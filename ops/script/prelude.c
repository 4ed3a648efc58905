/* SPDX-License-Identifier: Apache-2.0
 *
 * The prelude: Lua that is built in. Its chunks run with the globals as environment, so that their
 * definitions become globals without naming nodes, and get the internals as argument.
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

/* tf.parameters(f): returns the number of parameters of a prelude function, and their names;
 * nothing for a C function, or one with variable arguments. */
static int parameters(lua_State *L)
{
    lua_Debug about;
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    lua_getinfo(L, ">Su", &about);
    if (*about.what == 'C' || about.isvararg)
        return 0;
    lua_pushinteger(L, about.nparams);
    lua_createtable(L, about.nparams, 0);
    for (int i = 1; i <= about.nparams; i++) {
        lua_pushvalue(L, 1);
        const char *name = lua_getlocal(L, NULL, i);
        lua_pop(L, 1);
        lua_pushstring(L, name);
        lua_seti(L, 3, i);
    }
    return 2;
}

void prelude_open(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
    set_function(L, "parameters", parameters);
    lua_pop(L, 1);
    const struct prelude_module *base = prelude_find("base");
    if (base) /* the other modules use it */
        run(L, base);
    for (const struct prelude_module *m = prelude_modules; m->name; m++)
        if (m != base)
            run(L, m);
    if (base) {
        /* Calls tf.seal(globals) once all is defined. */
        lua_getfield(L, LUA_REGISTRYINDEX, INTERNALS);
        lua_getfield(L, -1, "seal");
        lua_getfield(L, LUA_REGISTRYINDEX, GLOBALS);
        lua_call(L, 1, 0);
        lua_pop(L, 1);
    }
}
