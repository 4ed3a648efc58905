/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that were never set: a misspelt name is an error with a suggestion, never nil, which an
 * option would take for "not given".
 */
#include <stdio.h>

#include "lib/scripts.h"

#define X "local x = Placeholder{dtype = float32, shape = {-1, 4}}\n"

static void a_misspelt_global_is_an_error(void **state)
{
    (void)state;
    scripts_refused("local lr = 0.1\noptim.sgd{rate = lrr}",
                    "m.lua:2: the global 'lrr' was never set; did you mean 'lr'?");
    scripts_refused(X "nn.dense(x, 3, {activation = Rlu})",
                    "m.lua:2: the global 'Rlu' was never set; did you mean 'Relu'?");
    scripts_refused("local clip_at = 5\nlocal function f() return {clip = clipat} end\nf()",
                    "m.lua:2: the global 'clipat' was never set; did you mean 'clip_at'?");
    scripts_refused("x = Placeholder{dtype = float23, shape = {2}}",
                    "m.lua:1: the global 'float23' was never set; did you mean 'float32'?");
    scripts_refused("hidden = Const(1)\nentry.a = hiden",
                    "m.lua:2: the global 'hiden' was never set; did you mean 'hidden'?");
    scripts_refused("entries.train = 1",
                    "m.lua:1: the global 'entries' was never set; did you mean 'entry'?");
    scripts_refused("print(qqqq)", "m.lua:1: the global 'qqqq' was never set");
    scripts_refused("load('return zzzzzzzz')()", "m.lua:1: the global 'zzzzzzzz' was never set");
    scripts_refused("y = _ENV[3]", "m.lua:1: the global '3' was never set");
}

static void a_misspelt_field_of_the_prelude_is_an_error(void **state)
{
    (void)state;
    scripts_refused("variable{shape = {3}, init = init.he_nomal}",
                    "m.lua:1: init has no field 'he_nomal'; did you mean 'he_normal'?");
    scripts_refused("local o = optim.adma", "m.lua:1: optim has no field 'adma'; did you mean "
                                            "'adam'?");
    scripts_refused("local l = nn.dnese",
                    "m.lua:1: nn has no field 'dnese'; did you mean 'dense'?");
    scripts_refused("local s = schedule.exponental",
                    "m.lua:1: schedule has no field 'exponental'; did you mean 'exponential'?");
    scripts_refused("local c = clip.by_nrom",
                    "m.lua:1: clip has no field 'by_nrom'; did you mean 'by_norm'?");
    scripts_refused("local p = math.pie", "m.lua:1: math has no field 'pie'; did you mean 'pi'?");
    scripts_refused("local p = ('x'):uper()",
                    "m.lua:1: string has no field 'uper'; did you mean 'upper'?");
    scripts_refused("entry.eval = Const(1)\nprint(entry.evl)",
                    "m.lua:2: entry has no field 'evl'; did you mean 'eval'?");
}

/* Globals that are nil on purpose, and ways to ask whether a name is set. */
static void what_was_set_to_nil_may_be_read(void **state)
{
    (void)state;
    graph_free(scripts_build("a = nil\n"
                             "assert(a == nil and (a or 3) == 3)\n"
                             "b = 1 b = nil\n"
                             "assert(not b)\n"
                             "assert(rawget(_G, 'c') == nil and rawget(_ENV, 'c') == nil)\n"
                             "assert(rawget(_G, 'Relu') == Relu and rawget(_G, 'nn') == nn)\n"
                             "c = 5\n"
                             "assert(rawget(_G, 'c') == 5)\n"
                             "rawset(_G, 'd', Const(1))\n"
                             "assert(d.name == 'd')\n"
                             "assert(rawget(nn, 'mine') == nil)\n"
                             "function nn.mine(x) return x end\n"
                             "assert(nn.mine(3) == 3 and rawget(nn, 'mine'))\n"
                             "local t = {}\n"
                             "assert(rawget(t, 'x') == nil and t.x == nil)\n"
                             "assert((D.rate or 0.5) == 0.5 and rawget(D, 'rate') == nil)\n"
                             "local f = load('return x, y', 'f', 't', {x = 1})\n"
                             "local p, q = f()\n"
                             "assert(p == 1 and q == nil)"));
}

static void a_misspelt_option_says_what_was_meant(void **state)
{
    (void)state;
    scripts_refused(X "nn.dense(x, 3, {activaton = Relu})",
                    "m.lua:2: nn.dense has no option 'activaton' (it has: name, activation, bias, "
                    "init, bias_init, trainable); did you mean 'activation'?");
    scripts_refused("optim.sgd{rat = 3}",
                    "m.lua:1: optim.sgd has no option 'rat' (it has: rate); did you mean 'rate'?");
    scripts_refused("init.he_normal{sed = 3}",
                    "m.lua:1: init.he_normal has no option 'sed' (it has: seed); did you mean "
                    "'seed'?");
    scripts_refused("init.xavier{stddev = 3}",
                    "m.lua:1: init.glorot_uniform has no option 'stddev' (it has: seed)");
    scripts_refused("variable{shape = {2}, init = init.he_normal}",
                    "m.lua:1: variable 'Variable': init.he_normal makes an "
                    "initializer when it is called: init.he_normal(...)");
    scripts_refused("x = Placeholder{dtype = 'float23'}",
                    "m.lua:1: Placeholder: attribute 'dtype' must be a type (float32, int32, ...), "
                    "not float23; did you mean 'float32'?");
}

static void a_value_of_an_option_that_means_nothing_is_an_error(void **state)
{
    (void)state;
    scripts_refused("init.variance_scaling{fan = 'averge'}",
                    "m.lua:1: init.variance_scaling: fan must be in, out or average, not averge");
    scripts_refused(X "nn.dense(x, 3, {trainable = 'no'})",
                    "m.lua:2: nn.dense: trainable must be true or false, not 'no'");
    scripts_refused(X "nn.dropout(x, 0.5, {training = 'false'})",
                    "m.lua:2: nn.dropout: training must be true or false or a tensor, not 'false'");
    scripts_refused("optim.momentum{nesterov = 1}",
                    "m.lua:1: optim.momentum: nesterov must be true or false, not 1");
    scripts_refused(X "nn.dense(x, 3, {activation = 'relu'})",
                    "m.lua:2: nn.dense: activation must be a function of a tensor, as Relu, not "
                    "'relu'");
}

static void numbers_that_make_no_sense_are_errors(void **state)
{
    (void)state;
    scripts_refused("variable{shape = {2}, init = init.uniform{min = 1}}",
                    "m.lua:1: init.uniform: min is 1, above max, which is 0.05");
    scripts_refused("clip.by_norm(Const{1.0}, -5)",
                    "m.lua:1: clip.by_norm: the bound must be above 0, not -5");
    scripts_refused("local w = variable{shape = {2}}\n"
                    "minimize(nn.l2(1, {w}), optim.sgd(), {clip = 0})",
                    "m.lua:2: clip.by_global_norm: the bound must be above 0, not 0");
    scripts_refused("schedule.exponential{step = global_step(), rate = 1, steps = 0, decay = 1}",
                    "m.lua:1: schedule.exponential: steps must be above 0, not 0");
    scripts_refused(X "nn.cross_entropy(x, Const{1}, {smoothing = 2})",
                    "m.lua:2: nn.cross_entropy: smoothing must be between 0 and 1, not 2");
    scripts_refused("ema(1.5)", "m.lua:1: ema: the decay must be between 0 and 1, not 1.5");
    scripts_refused("local w = variable{shape = {2}}\n"
                    "local o = {update = optim.sgd().update, finsh = function() end}\n"
                    "minimize(nn.l2(1, {w}), o)",
                    "m.lua:3: minimize: the optimizer has no use for 'finsh'; did you mean "
                    "'finish'?");
}

static void lists_have_no_named_fields_and_no_gaps(void **state)
{
    (void)state;
    scripts_refused("group{a = Const(1)}",
                    "m.lua:1: control: a list of values has no named fields");
    scripts_refused("entry.e = {Const(1), also = Const(2)}",
                    "m.lua:1: entry.e: a list of values has no named fields");
    scripts_refused("Reshape(Const{1, 2}, {2, y = 1})",
                    "m.lua:1: Reshape: input 'shape': a list of values has no named fields");
    scripts_refused("local t = {Const(1)} t[3] = Const(2) group(t)",
                    "m.lua:1: control: a list of values has no gaps: after item 1 there is none");
    scripts_refused("for _, w in ipairs(trainable) do end",
                    "m.lua:1: attempt to index a function value");
}

static void a_parameter_that_nobody_reads_says_what_was_meant(void **state)
{
    (void)state;
    const char *const parameters[] = {"unts=256", NULL};
    struct error err = ERROR_INIT;
    assert_null(scripts_try("local a = D.units or 128", parameters, NULL, &err));
    unit_assert_error(err.code, err, ERR_USAGE,
                      "-D unts: the script does not look at D.unts; did "
                      "you mean 'units'?");
}

static void an_argument_that_nobody_looks_at_is_an_error(void **state)
{
    static const struct {
        const char *call, *message;
    } cases[] = {
        {"nn.dense(x, 10, {activation = Relu}, 5)", "nn.dense takes 3 arguments, not 4"},
        {"nn.dense(x, 10, {}, nil)", "nn.dense takes 3 arguments, not 4"},
        {"optim.sgd({rate = 1}, 2)", "optim.sgd takes one argument, not 2"},
        {"init.glorot_uniform({}, 3)", "init.glorot_uniform takes one argument, not 2"},
        {"clip.by_value(x, 0, 1, 2)", "clip.by_value takes 3 arguments, not 4"},
        {"schedule.exponential({}, 3)", "schedule.exponential takes one argument, not 2"},
        {"group({x}, {}, 1)", "group takes 2 arguments, not 3"},
        {"variable({shape = {}}, 3)", "variable takes one argument, not 2"},
        {"gradients(x, {x}, {}, 3)", "gradients takes 3 arguments, not 4"},
        {"minimize(x, optim.sgd{}, {}, 3)", "minimize takes 3 arguments, not 4"},
        {"global_step(3)", "global_step takes no arguments, not 1"},
        {"trainable(3)", "trainable takes no arguments, not 1"},
        {"variables(3)", "variables takes no arguments, not 1"},
        {"updates(3)", "updates takes no arguments, not 1"},
        {"tensor('x', 3)", "tensor takes one argument, not 2"},
        {"x:output(0, 3)", "output takes one argument, not 2"},
        {"x:input(0, 3)", "input takes one argument, not 2"},
        {"x:attr('dtype', 3)", "attr takes one argument, not 2"},
        {"ema(0.9).apply({}, 3)", "ema: apply takes one argument, not 2"},
        {"Relu(x, {}, 3)",
         "Relu takes 1 input (features) and a table of attributes, not 3 arguments"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[256], message[256];
        snprintf(script, sizeof script, X "local y = %s", cases[i].call);
        snprintf(message, sizeof message, "m.lua:2: %s", cases[i].message);
        scripts_refused(script, message);
    }
    /* arguments are passed on unchecked, and a script's own functions follow Lua's rules */
    graph_free(scripts_build(X "scope('s', function(a, b) assert(a == 1 and b == 2) end, 1, 2)\n"
                               "local net = share(function(a, b) return a, b end)\n"
                               "local a, b = net(x, 3)\n"
                               "assert(b == 3)\n"
                               "function nn.mine(a) return a end\n"
                               "entry.y = nn.mine(x, 2)\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_argument_that_nobody_looks_at_is_an_error),
        cmocka_unit_test(a_misspelt_global_is_an_error),
        cmocka_unit_test(a_misspelt_field_of_the_prelude_is_an_error),
        cmocka_unit_test(what_was_set_to_nil_may_be_read),
        cmocka_unit_test(a_misspelt_option_says_what_was_meant),
        cmocka_unit_test(a_value_of_an_option_that_means_nothing_is_an_error),
        cmocka_unit_test(numbers_that_make_no_sense_are_errors),
        cmocka_unit_test(lists_have_no_named_fields_and_no_gaps),
        cmocka_unit_test(a_parameter_that_nobody_reads_says_what_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
