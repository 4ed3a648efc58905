/* SPDX-License-Identifier: Apache-2.0
 *
 * Actions that the sandbox prevents, and the limits that end a script.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/scripts.h"

static void dangerous_libraries_are_absent(void **state)
{
    (void)state;
    static const struct {
        const char *table, *name;
    } absent[] = {{"_G", "os"},       {"_G", "io"},        {"_G", "debug"},
                  {"_G", "package"},  {"_G", "dofile"},    {"_G", "loadfile"},
                  {"_G", "loadlib"},  {"_G", "coroutine"}, {"_G", "collectgarbage"},
                  {"string", "dump"}, {"_G", "_ENV"},      {"math", "randomseed"}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        char text[128];
        snprintf(text, sizeof text, "if rawget(%s, '%s') ~= nil then error('%s is there', 0) end",
                 absent[i].table, absent[i].name, absent[i].name);
        graph_free(scripts_build(text));
    }
}

/* Visits every table that a script can reach, by globals, metatables and functions' results. */
static void no_function_of_the_debug_or_io_library_can_be_reached(void **state)
{
    (void)state;
    graph_free(
        scripts_build("local seen, bad = {}, {popen = 1, getregistry = 1, execute = 1, loadlib = "
                      "1, tmpfile = 1,\n"
                      "                       sethook = 1, upvaluejoin = 1, setupvalue = 1}\n"
                      "local function walk(t)\n"
                      "  if type(t) ~= 'table' or seen[t] then return end\n"
                      "  seen[t] = true\n"
                      "  for k, v in next, t do\n"
                      "    if bad[k] then error('found ' .. k, 0) end\n"
                      "    walk(k) walk(v)\n"
                      "  end\n"
                      "  walk(getmetatable(t))\n"
                      "end\n"
                      "walk(_ENV) walk(getmetatable('')) walk(getmetatable(Const(1)))\n"
                      "for _, name in ipairs{'string', 'table', 'math', 'nn', 'init', 'optim'} do "
                      "walk(_ENV[name]) end"));
}

static void bytecode_is_not_loaded(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_null(scripts_try("\x1bLua", NULL, NULL, &err));
    assert_string_equal(err.text, "m.lua: attempt to load a binary chunk (mode is 't')");
    graph_free(scripts_build("local f, why = load('\\27Lua', 'x', 'b')\n"
                             "assert(f == nil and why:find('binary'))\n"
                             "assert(load('return 1 + 1')() == 2)\n"
                             "assert(load('return rawget(_G, \"os\")')() == nil)\n"
                             "assert(load('return x', 'x', 't', {x = 5})() == 5)"));
}

static void finalizers_are_refused(void **state)
{
    (void)state;
    scripts_refused("setmetatable({}, {__gc = function() end})",
                    "m.lua:1: setmetatable: finalizers (__gc) are not available to scripts");
    scripts_refused("setmetatable({}, {__gc = true})",
                    "m.lua:1: setmetatable: finalizers (__gc) are not available to scripts");
}

static void require_does_not_leave_the_folder(void **state)
{
    (void)state;
    const char *const names[] = {"../x", "/etc/passwd", "a/b", "..",   ".x",
                                 "x.",   "a..b",        "",    "x\\0y"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[64];
        struct error err = ERROR_INIT;
        snprintf(text, sizeof text, "require '%s'", names[i]);
        assert_null(scripts_try(text, NULL, NULL, &err));
        assert_non_null(strstr(err.text, "a module is named by letters, digits and _"));
    }
    scripts_refused("require 'no_such_module'", "m.lua:1: require 'no_such_module': "
                                                "no_such_module.lua: No such file or directory");
}

static void endless_loops_end(void **state)
{
    (void)state;
    const struct script_options options = {.instructions = 1000000};
    const char *const texts[] = {
        "while true do end",
        "local function f() return f() end f()",
        "while true do pcall(error) end",
        "while true do pcall(function() while true do end end) end",
        "table.move({}, 1, 1 << 60, 2)",
        "('').rep('', 1 << 60)",
        "table.concat(setmetatable({}, {__index = rawlen}), '', 1, 1 << 60)",
        "for i = 1, 100 do pcall(table.move, {}, 1, 1 << 60, 2) end"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = ERROR_INIT;
        assert_null(scripts_try(texts[i], NULL, &options, &err));
        assert_non_null(strstr(err.text, "the script runs for more than 1000000 instructions"));
    }
}

static void memory_is_limited(void **state)
{
    (void)state;
    const struct script_options options = {.memory_bytes = (size_t)16 << 20};
    const char *const texts[] = {"x = ('x'):rep(1 << 40)", "x = ('x'):rep(1 << 30)",
                                 "local t = {} while true do t[#t + 1] = {} end",
                                 "local s = 'x' while true do s = s .. s end"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = ERROR_INIT;
        assert_null(scripts_try(texts[i], NULL, &options, &err));
        if (!strstr(err.text, "resulting string too large"))
            assert_string_equal(err.text, "m.lua: the script needs more than 16 MiB of memory");
    }
}

static void memory_of_the_graph_is_limited(void **state)
{
    (void)state;
    const struct script_options options = {.memory_bytes = (size_t)32 << 20};
    const char *const texts[] = {
        "local t = {} for i = 1, 1e5 do t[i] = i end while true do Const(t) end",
        "local s = ('x'):rep(1e6) while true do NoOp{_text = s} end",
        "local function f() scope(('x'):rep(200), function() end) return f() end f()"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = ERROR_INIT;
        assert_null(scripts_try(texts[i], NULL, &options, &err));
        assert_string_equal(err.text, "m.lua:1: the graph needs more than 32 MiB of memory");
    }
}

static void lengths_that_change_are_refused(void **state)
{
    (void)state;
    const char *const functions[] = {"insert", "remove", "sort"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char text[128];
        struct error err = ERROR_INIT;
        snprintf(text, sizeof text,
                 "table.%s(setmetatable({}, {__len = function() return 1 << 60 end}), 1)",
                 functions[i]);
        assert_null(scripts_try(text, NULL, NULL, &err));
        assert_string_equal(err.text, "m.lua:1: functions of 'table' take no list that has a "
                                      "metamethod __len");
    }
    graph_free(scripts_build("local t = {3, 1, 2} table.sort(t) table.insert(t, 1, 0)\n"
                             "assert(table.concat(t, ',') == '0,1,2,3')\n"
                             "assert(table.remove(t) == 3 and ('ab'):rep(2, '-') == 'ab-ab')\n"
                             "assert(#table.move(t, 1, 3, 2) == 4 and t[2] == 0)"));
}

/* A loop whose function fails leaves nodes that wait for an input. */
static void loops_that_failed_are_not_taken_for_whole(void **state)
{
    (void)state;
#define BROKEN                                                                                     \
    "pcall(while_loop, function(i) return Less(i, 3) end, function(i) error('no') end, {0})\n"
    scripts_refused(BROKEN "y = Const(1)",
                    "the loop of node 'while/Merge' (m.lua:1) failed and was not completed");
    scripts_refused(BROKEN "x = Placeholder{dtype = float32} y = gradients(x * x, x)",
                    "m.lua:2: gradients: the loop of node 'while/Merge' (m.lua:1) failed and was "
                    "not completed");
    scripts_refused("while_loop(function(i) return Less(i, 3) end, function(i)\n"
                    "return i:input(0):input(0):input(1) end, {0})",
                    "m.lua:2: input 1 of node 'while/Merge' (m.lua:1) comes when the loop is "
                    "complete");
}

/* A script's globals do not change the prelude. */
static void globals_of_the_script_do_not_reach_the_prelude(void **state)
{
    (void)state;
    graph_free(scripts_build("clip = 2 pairs = nil slot = 3 tf = 4 scope = nil\n"
                             "init = Const(1.0)\n"
                             "x = Placeholder{dtype = float32, shape = {-1, 3}}\n"
                             "loss = nn.mse(nn.dense(x, 4), 0)\n"
                             "entry.train = minimize(loss, optim.adam{}, {clip = clip})\n"
                             "assert(_G.init == init and init.name == 'init' and clip == 2)"));
    scripts_refused("string.format = nil nn.dense(3)",
                    "m.lua:1: nn.dense: the input is a number, not a tensor");
}

static void nodes_are_limited(void **state)
{
    (void)state;
    const struct script_options options = {.nodes = 1000};
    struct error err = ERROR_INIT;
    assert_null(scripts_try("while true do NoOp() end", NULL, &options, &err));
    assert_string_equal(err.text,
                        "m.lua:1: the graph has more than 1000 nodes: is this an endless loop?");
}

static void deep_recursion_is_an_error(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    assert_null(scripts_try("local function f() return 1 + f() end f()", NULL, NULL, &err));
    assert_non_null(strstr(err.text, "stack overflow"));
    assert_null(strchr(err.text, '\n'));
    assert_null(scripts_try("local t = {} for i = 1, 1e5 do t = {t} end Neg(t)", NULL, NULL, &err));
    assert_non_null(strstr(err.text, "nested more than 8 deep"));
    assert_null(
        scripts_try("local t = {} for i = 1, 4e5 do t = {t} end group(t)", NULL, NULL, &err));
    assert_non_null(strstr(err.text, "nested more than 100 deep"));
    assert_null(scripts_try("local function f() scope('a', f) end f()", NULL, NULL, &err));
    assert_non_null(strstr(err.text, "m.lua:1: functions that scope, cond, pcall"));
    assert_non_null(strstr(err.text, "nested too deeply"));
}

static void random_numbers_and_pairs_repeat(void **state)
{
    (void)state;
    const char *text = "local t = {} for i = 1, 50 do t['k' .. i] = math.random() end\n"
                       "for k, v in pairs(t) do Const(v, {name = k}) end";
    struct graph *a = scripts_build(text), *b = scripts_build(text);
    assert_int_equal(a->nodes.n, 50);
    for (int i = 0; i < 50; i++) {
        const struct node *x = graph_node(a, i), *y = graph_node(b, i);
        assert_string_equal(x->name, y->name);
        assert_true(tensor_equal(node_attr(x, "value")->tensor, node_attr(y, "value")->tensor));
    }
    graph_free(a);
    graph_free(b);
}

static void modules_beside_the_script_are_found(void **state)
{
    (void)state;
    char folder[] = "/tmp/tf-script-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/twice.lua", folder);
    FILE *module = fopen(path, "w");
    fputs("return function(x) return x + x end", module);
    fclose(module);
    struct graph *graph = graph_new(ops_registry());
    struct error err = ERROR_INIT;
    struct script *script = script_new(graph, NULL, &err);
    const char text[] =
        "y = require 'twice'(Const(2.0))\nassert(require 'twice' == require 'twice')";
    assert_int_equal(script_run(script, text, sizeof text - 1, "m.lua", folder, &err), 0);
    assert_string_equal(graph_find(graph, "y")->op->def->name, "Add");
    assert_int_equal(graph_find(graph, "y")->line, 1);
    assert_string_equal(graph_find(graph, "y")->file, path);
    script_free(script);
    graph_free(graph);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dangerous_libraries_are_absent),
        cmocka_unit_test(no_function_of_the_debug_or_io_library_can_be_reached),
        cmocka_unit_test(bytecode_is_not_loaded),
        cmocka_unit_test(finalizers_are_refused),
        cmocka_unit_test(require_does_not_leave_the_folder),
        cmocka_unit_test(endless_loops_end),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(nodes_are_limited),
        cmocka_unit_test(memory_of_the_graph_is_limited),
        cmocka_unit_test(lengths_that_change_are_refused),
        cmocka_unit_test(loops_that_failed_are_not_taken_for_whole),
        cmocka_unit_test(globals_of_the_script_do_not_reach_the_prelude),
        cmocka_unit_test(deep_recursion_is_an_error),
        cmocka_unit_test(random_numbers_and_pairs_repeat),
        cmocka_unit_test(modules_beside_the_script_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
