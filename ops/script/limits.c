/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a script may use: instructions, memory (Lua's and the graph's) and nodes (node.c). Some
 * functions of Lua's library loop up to a number given by the script without executing
 * instructions: they are charged that many.
 */
#include <stdlib.h>

#include "ops/script/internal.h"

#define HOOK_INSTRUCTIONS 100000

void *limits_alloc(void *script, void *pointer, size_t old_bytes, size_t bytes)
{
    struct script *s = script;
    if (!pointer)
        old_bytes = 0; /* Lua passes the kind of object there */
    if (bytes == 0) {
        s->memory_used -= old_bytes;
        free(pointer);
        return NULL;
    }
    if (bytes > old_bytes && bytes - old_bytes > s->options.memory_bytes - s->memory_used) {
        s->refused = false;
        return NULL;
    }
    void *grown = realloc(pointer, bytes);
    if (grown)
        s->memory_used += bytes - old_bytes;
    else
        s->refused = true;
    return grown;
}

void limits_check_memory(lua_State *L)
{
    const struct script *s = script_of(L);
    size_t arenas = s->graph->arena.total + s->arena.total + s->scratch.total;
    if (arenas > s->options.memory_bytes)
        place_error(L, "the graph needs more than %zu MiB of memory",
                    s->options.memory_bytes >> 20);
}

static void count_instructions(lua_State *L, lua_Debug *activation);

/* Charges instructions. Beyond the limit every instruction fails, so that no pcall keeps the script
 * alive. */
static void spend(lua_State *L, double instructions)
{
    struct script *s = script_of(L);
    double used = (double)s->instructions_used + instructions;
    s->instructions_used = used < 0x1p62 ? (int64_t)used : (int64_t)1 << 62;
    if (s->instructions_used <= s->options.instructions)
        return;
    lua_sethook(L, count_instructions, LUA_MASKCOUNT, 1);
    place_error(L, "the script runs for more than %lld instructions: is this an endless loop?",
                (long long)s->options.instructions);
}

static void count_instructions(lua_State *L, lua_Debug *activation)
{
    (void)activation;
    limits_check_memory(L);
    spend(L, HOOK_INSTRUCTIONS);
}

/* ---- functions of Lua's library ---- */

static double number(lua_State *L, int index, double otherwise)
{
    return lua_isnumber(L, index) ? (double)lua_tonumber(L, index) : otherwise;
}

/* string.rep(text, n, separator) of empty strings; others are limited by memory. */
static double cost_of_rep(lua_State *L)
{
    return lua_rawlen(L, 1) || lua_rawlen(L, 3) ? 0 : number(L, 2, 0);
}

/* table.move(from, first, last, ...) */
static double cost_of_move(lua_State *L)
{
    return number(L, 3, 0) - number(L, 2, 0);
}

/* table.concat(list, separator, first, last) */
static double cost_of_concat(lua_State *L)
{
    return number(L, 4, 0) - number(L, 3, 0);
}

/* The cost of functions that walk a list: its real length, as __len could return anything. */
static double cost_of_list(lua_State *L)
{
    if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL)
        place_error(L, "functions of 'table' take no list that has a metamethod __len");
    return lua_istable(L, 1) ? (double)lua_rawlen(L, 1) : 0;
}

static const struct metered_function {
    const char *library, *name;
    double (*cost)(lua_State *L);
} all_counted[] = {{"string", "rep", cost_of_rep},      {"table", "move", cost_of_move},
                   {"table", "concat", cost_of_concat}, {"table", "insert", cost_of_list},
                   {"table", "remove", cost_of_list},   {"table", "sort", cost_of_list}};

/* Upvalues: the function to call, and its index. */
static int call_counted(lua_State *L)
{
    int n = lua_gettop(L);
    double cost = all_counted[lua_tointeger(L, lua_upvalueindex(2))].cost(L);
    lua_settop(L, n);
    if (cost > 0)
        spend(L, cost);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, n, LUA_MULTRET);
    return lua_gettop(L);
}

/* Called with the globals on top of the stack. */
void limits_open(lua_State *L)
{
    for (size_t i = 0; i < sizeof all_counted / sizeof *all_counted; i++) {
        lua_getfield(L, -1, all_counted[i].library);
        lua_getfield(L, -1, all_counted[i].name);
        lua_pushinteger(L, (lua_Integer)i);
        lua_pushcclosure(L, call_counted, 2);
        lua_setfield(L, -2, all_counted[i].name);
        lua_pop(L, 1);
    }
    lua_sethook(L, count_instructions, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}
