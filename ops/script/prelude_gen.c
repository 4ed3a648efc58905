/* SPDX-License-Identifier: Apache-2.0
 *
 * A build program: prelude_gen FILE.lua... writes the prelude as C, compiled to Lua bytecode.
 * Loading its text would take tf-graph 3 ms, loading bytecode takes a tenth of that.
 */
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

static int write_bytes(lua_State *L, const void *bytes, size_t n, void *context)
{
    const unsigned char *p = bytes;
    (void)L;
    (void)context;
    for (size_t i = 0; i < n; i++)
        printf("%u,%s", p[i], i % 32 == 31 ? "\n" : "");
    return 0;
}

/* The name without folder and ".lua". */
static const char *module_name(lua_State *L, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    return lua_pushlstring(L, base, strcspn(base, "."));
}

static int generate(lua_State *L)
{
    char text[65536];
    int n = lua_gettop(L);
    puts("#include \"ops/script/internal.h\"");
    for (int i = 1; i <= n; i++) {
        const char *path = lua_tostring(L, i);
        FILE *file = fopen(path, "r");
        if (!file)
            return luaL_error(L, "%s: cannot be read", path);
        size_t bytes = fread(text, 1, sizeof text, file);
        fclose(file);
        if (bytes == sizeof text)
            return luaL_error(L, "%s: too long", path);
        /* Like luaL_loadfile, but with the name that users see in messages. */
        const char *chunk = lua_pushfstring(L, "=[prelude] %s.lua", module_name(L, path));
        if (luaL_loadbufferx(L, text, bytes, chunk, "t"))
            return lua_error(L);
        printf("static const unsigned char chunk_%d[] = {", i);
        lua_dump(L, write_bytes, NULL, 0);
        puts("};");
        lua_settop(L, n);
    }
    puts("const struct prelude_module prelude_modules[] = {");
    for (int i = 1; i <= n; i++) {
        printf("{\"%s\", chunk_%d, sizeof chunk_%d},\n", module_name(L, lua_tostring(L, i)), i, i);
        lua_settop(L, n);
    }
    puts("{0, 0, 0}};");
    return 0;
}

int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    luaL_checkstack(L, argc + 20, NULL);
    lua_pushcfunction(L, generate);
    for (int i = 1; i < argc; i++)
        lua_pushstring(L, argv[i]);
    int failed = lua_pcall(L, argc - 1, 0, 0);
    if (failed)
        fprintf(stderr, "prelude_gen: %s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed || fflush(stdout) != 0;
}
