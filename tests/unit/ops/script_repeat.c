/* SPDX-License-Identifier: Apache-2.0
 *
 * A script makes the same graph in every run: it never sees an address, nor the order in which
 * Lua's tables happen to hold their keys, and cannot change values that all scripts share.
 */
#include "lib/scripts.h"

static void texts_of_objects_are_no_addresses(void **state)
{
    (void)state;
    graph_free(scripts_build(
        "local a, b = {}, {}\n"
        "assert(tostring(a) == 'table: 1' and tostring(b) == 'table: 2')\n"
        "assert(tostring(a) == 'table: 1')\n"
        "assert(tostring(print) == 'function: 3')\n"
        "assert(('%s %5.7s|%d%%'):format(a, b, 7) == 'table: 1 table: |7%')\n"
        "assert(tostring(setmetatable({}, {__name = 'point'})) == 'point: 4')\n"
        "assert(tostring(setmetatable({}, {__tostring = function() return 'x' end})) == 'x')\n"
        "assert(('%s %s %s'):format(nil, true, 1.5) == 'nil true 1.5')\n"
        "assert(tostring(1e15) == '1e+15' and tostring(nil) == 'nil')\n"
        "assert(tostring(Const(1)) == \"tensor 'Const' int32[]\")\n"
        "local _, why = pcall(Const, {1}, {name = a})\n"
        "assert(not why:find('0x'), why)\n"
        "local _, why = pcall(Placeholder, {dtype = a})\n"
        "assert(not why:find('0x'), why)\n"
        "local _, why = pcall(string.format, '%d', a)\n"
        "assert(why:find('number expected'), why)"));
    scripts_refused("local s = ('%-9p'):format({})",
                    "m.lua:1: string.format: %p is an address, which differs from run to run");
    scripts_refused("setmetatable({}, {__tostring = function() return {} end})\n"
                    "tostring(setmetatable({}, {__tostring = function() return {} end}))",
                    "m.lua:2: '__tostring' must return a string");
}

static void keys_come_in_order(void **state)
{
    (void)state;
    graph_free(
        scripts_build("local t = {b = 1, a = 2, [10] = 3, [9.5] = 4, [true] = 5, [false] = 6}\n"
                      "local seen = {}\n"
                      "for k in pairs(t) do seen[#seen + 1] = tostring(k) end\n"
                      "assert(table.concat(seen, ' ') == 'false true 9.5 10 a b')\n"
                      "seen = {}\n"
                      "for k, v in next, t do seen[#seen + 1] = tostring(k) assert(v == t[k]) end\n"
                      "assert(table.concat(seen, ' ') == 'false true 9.5 10 a b')\n"
                      "for k in next, t do t[k] = nil end\n"
                      "assert(next(t) == nil and next({}) == nil)\n"
                      "local k, v = next{7}\n"
                      "assert(k == 1 and v == 7)\n"
                      "local u = {p = 1, q = 2}\n"
                      "for k in next, u do for l in next, u do seen[#seen + 1] = k .. l end end\n"
                      "assert(table.concat(seen, ' ', 7) == 'pp pq qp qq')\n"
                      "local x, y = Const(1), Const(2)\n"
                      "local m, order = {[y] = 2, [x] = 1}, {}\n"
                      "for k, v in pairs(m) do order[#order + 1] = v end\n"
                      "assert(order[1] == 1 and order[2] == 2)\n"
                      "for k in pairs{[{}] = 1, 2} do end"));
    scripts_refused("for k in pairs{[{}] = 1, [print] = 2} do end",
                    "m.lua:1: keys that are tables or functions have no order: go through a list "
                    "of them instead");
    scripts_refused("local k = next{[{}] = 1, [{}] = 2}",
                    "m.lua:1: keys that are tables or functions have no order: go through a list "
                    "of them instead");
    scripts_refused("next({a = 1}, 'b')", "m.lua:1: next: the table has no key 'b'");
}

/* Lua's own sort chooses pivots of long lists by the clock. */
static void sorting_is_stable(void **state)
{
    (void)state;
    graph_free(scripts_build(
        "local t = {}\n"
        "for i = 1, 5000 do t[i] = {key = i * 7919 % 13, at = i} end\n"
        "table.sort(t, function(a, b) return a.key < b.key end)\n"
        "for i = 2, #t do\n"
        "  local a, b = t[i - 1], t[i]\n"
        "  assert(a.key < b.key or a.key == b.key and a.at < b.at)\n"
        "end\n"
        "local w = {3, 1, 2.5, -1}\n"
        "table.sort(w)\n"
        "assert(table.concat(w, ' ') == '-1 1 2.5 3')\n"
        "local s = {'b', 'a', ''}\n"
        "table.sort(s, function(a, b) return a > b end)\n"
        "assert(table.concat(s, ' ') == 'b a ')\n"
        "table.sort{} table.sort{1}\n"
        "assert(not pcall(table.sort, {1, 'a'}) and not pcall(table.sort, {1, 2}, 3))"));
    scripts_refused("table.sort({1, 2}, function() error('no') end)", "m.lua:1: no");
}

static void what_all_values_share_cannot_be_changed(void **state)
{
    (void)state;
    graph_free(scripts_build("assert(getmetatable('') == false)\n"
                             "assert(type(getmetatable(Const(1))) ~= 'table')\n"
                             "for _, t in ipairs{_G, D, entry, nn, init, optim, clip, schedule,\n"
                             "                   string, table, math, utf8} do\n"
                             "  assert(type(getmetatable(t)) ~= 'table')\n"
                             "  assert(not pcall(setmetatable, t, {}))\n"
                             "end\n"
                             "local own = setmetatable({}, {__index = {a = 1}})\n"
                             "assert(getmetatable(own).__index.a == 1)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_objects_are_no_addresses),
        cmocka_unit_test(keys_come_in_order),
        cmocka_unit_test(sorting_is_stable),
        cmocka_unit_test(what_all_values_share_cannot_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
