/* SPDX-License-Identifier: Apache-2.0
 *
 * A stable table.sort. Lua's own uses the clock to choose the pivot of a long list, so that the
 * order of equal items differs from run to run. This is a merge sort of the items' indices.
 */
#include "ops/script/internal.h"

enum { LIST = 1, ORDER, ITEMS }; /* on the stack */

/* Returns whether item a must come before item b. */
static bool is_before(lua_State *L, lua_Unsigned a, lua_Unsigned b)
{
    bool has_order = !lua_isnil(L, ORDER), before;
    if (has_order)
        lua_pushvalue(L, ORDER);
    lua_rawgeti(L, ITEMS, (lua_Integer)a);
    lua_rawgeti(L, ITEMS, (lua_Integer)b);
    if (has_order) {
        lua_call(L, 2, 1);
        before = lua_toboolean(L, -1);
        lua_pop(L, 1);
    } else {
        before = lua_compare(L, -2, -1, LUA_OPLT);
        lua_pop(L, 2);
    }
    return before;
}

/* table.sort(list [, order]) */
static int sort(lua_State *L)
{
    luaL_checktype(L, LIST, LUA_TTABLE);
    if (!lua_isnoneornil(L, ORDER))
        luaL_checktype(L, ORDER, LUA_TFUNCTION);
    lua_settop(L, ORDER);
    size_t n = lua_rawlen(L, LIST);
    if (n > INT32_MAX)
        return luaL_argerror(L, LIST, "array too big");
    lua_createtable(L, (int)n, 0);
    for (size_t i = 1; i <= n; i++) {
        lua_geti(L, LIST, (lua_Integer)i);
        lua_rawseti(L, ITEMS, (lua_Integer)i);
    }
    lua_Unsigned *places = lua_newuserdatauv(L, (2 * n + 1) * sizeof *places, 0);
    /* Indices of the items in sorted order, in one of two arrays of n. */
    lua_Unsigned *sorted = places, *to = places + n;
    for (size_t i = 0; i < n; i++)
        sorted[i] = i + 1;
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t first = 0; first < n; first += 2 * run) {
            size_t middle = first + run < n ? first + run : n;
            size_t end = middle + run < n ? middle + run : n;
            /* Merges the runs [first, middle) and [middle, end) of `sorted` into `to`. */
            size_t left = first, right = middle;
            for (size_t i = first; i < end; i++) {
                bool takes_right =
                    left == middle || (right < end && is_before(L, sorted[right], sorted[left]));
                to[i] = takes_right ? sorted[right++] : sorted[left++];
            }
        }
        lua_Unsigned *other = sorted;
        sorted = to;
        to = other;
    }
    for (size_t i = 1; i <= n; i++) {
        lua_rawgeti(L, ITEMS, (lua_Integer)sorted[i - 1]);
        lua_seti(L, LIST, (lua_Integer)i);
    }
    return 0;
}

void sort_open(lua_State *L)
{
    lua_getfield(L, -1, LUA_TABLIBNAME);
    set_function(L, "sort", sort);
    lua_pop(L, 1);
}
