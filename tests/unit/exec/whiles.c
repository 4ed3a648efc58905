/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that run as one item of a plan: which ones do, that their bits equal those of loops whose
 * iterations may overlap, and how they end. WHILES is how many random programs (default 150),
 * WHILES_SEED the first one's seed.
 */
#include "lib/session.h"

#include <math.h>
#include <stdlib.h>

#include "lib/cut.h"
#include "lib/nest_script.h"
#include "lib/plan_items.h"
#include "lib/scripts.h"

/* ---- which loops are items ---- */

static struct plan *plan_of(const struct graph *graph, const char *fetch,
                            const struct tensor *feeds, int n_feeds,
                            struct variable_store *variables)
{
    static const char *const names[] = {"x", "w"};
    struct error err = ERROR_INIT;
    struct plan_options options = {
        .kernels = ops_kernels(), .device = cut_devices()[0], .variables = variables};
    struct edge edge, edges[2];
    struct plan_request request = {
        .feeds = edges, .feed_values = feeds, .n_feeds = n_feeds, .fetches = &edge, .n_fetches = 1};
    struct plan *plan = NULL;
    for (int i = 0; i < n_feeds; i++)
        edges[i] = (struct edge){graph_find(graph, names[i])->id, 0};
    if (graph_parse_edge(graph, fetch, &edge, &err) ||
        plan_new(graph, &options, &request, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

#define X "x = Placeholder{dtype = float32, shape = {-1, 2}, name = 'x'}\n"
#define LOOP(body)                                                                                 \
    "local _, r = while_loop(function(i) return Less(i, 3) end, function(i, a)\n" body             \
    " end, {0, x})\n"

static const struct which {
    const char *script;
    int rows;      /* of x; -1: unknown */
    int n_loops;   /* that are items */
    bool is_whole; /* the plan has no async ops */
} which[] = {
    {X LOOP("return i + 1, Tanh(a) * 2") "y = r + 1", 5, 1, true},
    {X LOOP("return i + 1, Tanh(a) * 2") "y = r + 1", -1, 0, false},
    /* stacks know their elements' shapes */
    {X LOOP("return i + 1, Tanh(a) * 2") "y = gradients(Sum(r, {0, 1}), x) + 0", 4, 2, true},
    /* a loop in a loop is in its body */
    {X LOOP("local _, b = while_loop(function(k) return Less(k, i) end,\n"
            "  function(k, b) return k + 1, b * 1.5 end, {0, a})\n"
            "return i + 1, Tanh(b)") "y = r + 1",
     3, 2, true},
    /* both branches bring the same shape */
    {X LOOP("return i + 1, cond(Less(i, 2), function() return Neg(a) end,\n"
            "  function() return a * 2 end)") "y = r + 1",
     3, 1, true},
    {X LOOP("return i + 1, cond(Less(i, 2), function() return Neg(a) end,\n"
            "  function() return a * 2 end)") "y = gradients(Sum(r, {0, 1}), x) + 0",
     3, 2, true},
    {X LOOP("local _, b = while_loop(function(k) return Less(k, i) end, function(k, b)\n"
            "  return k + 1, cond(Less(k, 1), function() return Tanh(b) end,\n"
            "    function() return b end) end, {0, a})\n"
            "return i + 1, b") "y = r + 1",
     3, 2, true},
    /* a loop in a branch, outside of loops and in one */
    {X "y = cond(Less(Sum(x, {0, 1}), 1), function()\n" LOOP(
         "return i + 1, a * 2") "return r end, function() return x end) + 1",
     3, 1, true},
    {X LOOP("return i + 1, cond(Less(i, 2), function() local _, b = while_loop(\n"
            "    function(k) return Less(k, 2) end, function(k, b) return k + 1, b * 2 end,\n"
            "    {0, a}) return b end, function() return a * 2 end)") "y = r + 1",
     3, 2, true},
    /* branches that bring different shapes */
    {X "y = Sum(cond(Less(Sum(x, {0, 1}), 1), function() return Concat(0, {x, x}) end,\n"
       "  function() return x end), {0})",
     3, 0, false},
    {X LOOP("local b = cond(Less(i, 2), function() return Concat(0, {a, a}) end,\n"
            "  function() return a end)\n"
            "return i + 1, a * Sum(b, {0, 1})") "y = r + 1",
     3, 0, false},
    /* a variable that the loop reads is read before it */
    {X "local v = variable{name = 'v', init = 0.0}\n" LOOP("return i + 1, a * v") "y = r + 1", 3, 1,
     true},
    /* rows grow with each iteration */
    {X "local _, r = while_loop(function(i) return Less(i, 3) end,\n"
       "  function(i, a) return i + 1, Concat(0, {a, a}) end, {0, x},\n"
       "  {shapes = {{}, {-1, 2}}})\n"
       "y = r + 1",
     3, 0, false},
    /* a loop without async ops beside one with some: a shape is not known, or turns out to be
     * unknown when the loop is planned */
    {X LOOP("return i + 1, Tanh(a)") "local s = r\n" LOOP(
         "return i + 1, a + Cast(Sum(Where(Less(a, 2)), {0, 1}), {DstT = float32})") "y = r + s",
     3, 1, false},
    {X LOOP("return i + 1, Tanh(a)") "local s = r\n" LOOP(
         "local b = cond(Less(i, 2), function() return Concat(0, {a, a}) end,\n"
         "  function() return a end)\n"
         "return i + 1, a * Sum(b, {0, 1})") "y = r + s",
     3, 1, false},
};

static void what_does_not_wait_is_an_item(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        struct graph *graph = scripts_build(which[i].script);
        struct variable_store *variables = variable_store_new();
        struct tensor x = {.type = FLOAT32, .shape = {.rank = 2, .dims = {which[i].rows, 2}}};
        struct plan *plan = plan_of(graph, "y", &x, 1, variables);
        if (plan_count_kernels(plan, "while") != which[i].n_loops ||
            plan_is_whole(plan) != which[i].is_whole)
            fail_msg("%zu: %d loops, %s", i, plan_count_kernels(plan, "while"),
                     plan_is_whole(plan) ? "no points" : "points");
        plan_free(plan);
        variable_store_free(variables);
        graph_free(graph);
    }
}

/* ---- bits ---- */

/* A graph and how it is run. */
struct program {
    const struct graph *graph;
    struct session *session;
};

static struct program program_of(const struct graph *graph, bool dynamic)
{
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = cut_devices()[0],
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE}};
    return (struct program){graph, session_new(graph, &options)};
}

static int run(const struct program *program, const char *fetch, const struct tensor *feeds,
               int64_t number, struct tensor *result, struct error *err)
{
    const struct graph *graph = program->graph;
    struct edge edge, fed[2];
    struct step step = {.number = number, .seed = 5};
    int n = 0;
    if (graph_find(graph, "x"))
        fed[n++] = (struct edge){graph_find(graph, "x")->id, 0};
    if (graph_find(graph, "w"))
        fed[n++] = (struct edge){graph_find(graph, "w")->id, 0};
    if (graph_parse_edge(graph, fetch, &edge, err))
        return err->code;
    struct plan_request call = {
        .feeds = fed, .feed_values = feeds, .n_feeds = n, .fetches = &edge, .n_fetches = 1};
    return session_run(program->session, &call, &step, result, err);
}

static void expect_same(const struct graph *graph, const char *fetch, const struct tensor *feeds,
                        uint64_t seed)
{
    struct program programs[] = {program_of(graph, false), program_of(graph, true)};
    for (int64_t step = 1; step <= 3; step++) {
        struct tensor values[2];
        for (int i = 0; i < 2; i++) {
            struct error err = ERROR_INIT;
            if (run(&programs[i], fetch, feeds, step, &values[i], &err))
                fail_msg("WHILES_SEED=%llu: %s: %s", (unsigned long long)seed, fetch, err.text);
        }
        if (!tensor_equal(&values[0], &values[1]))
            fail_msg("WHILES_SEED=%llu: %s: other bits", (unsigned long long)seed, fetch);
        tensor_release(&values[0]);
        tensor_release(&values[1]);
    }
    session_free(programs[0].session);
    session_free(programs[1].session);
}

/* Counts them in the plan of the program's gradient by x. */
static int loops_of(const struct graph *graph, bool *is_whole)
{
    struct tensor feeds[] = {{.type = FLOAT64, .shape = SHAPE_SCALAR},
                             {.type = FLOAT64, .shape = shape_vector(N_W)}};
    struct variable_store *variables = variable_store_new();
    struct plan *plan = plan_of(graph, "gx", feeds, 2, variables);
    int n = plan_count_kernels(plan, "while");
    *is_whole = plan_is_whole(plan);
    plan_free(plan);
    variable_store_free(variables);
    return n;
}

/* In the gradient of this program a node of one loop waits until another loop inside it is over. */
static void one_waits_for_another(void **state)
{
    struct script_options options = {.seed = 93};
    struct error err = ERROR_INIT;
    bool is_whole;
    (void)state;
    struct graph *graph =
        scripts_try(nest_script, (const char *[]){"seed=1", NULL}, &options, &err);
    int n = loops_of(graph, &is_whole);
    assert_true(is_whole);
    assert_true(n > 0);
    graph_free(graph);
}

static void they_change_no_bit(void **state)
{
    struct seed_range seeds = seeds_of("WHILES", 150);
    bool is_whole;
    int n_loops = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        struct error err = ERROR_INIT;
        struct script_options options = {.seed = (int64_t)seed};
        double x = (double)(seed % 7) / 3 - 1, w[N_W] = {0.5, -1.25, 0.75};
        struct shape shape = shape_vector(N_W);
        struct tensor feeds[] = {tensor_borrow(FLOAT64, &SHAPE_SCALAR, &x),
                                 tensor_borrow(FLOAT64, &shape, w)};
        struct graph *graph =
            scripts_try(nest_script, (const char *[]){"seed=1", NULL}, &options, &err);
        if (!graph)
            fail_msg("WHILES_SEED=%llu: %s", (unsigned long long)seed, err.text);
        expect_same(graph, "y", feeds, seed);
        expect_same(graph, "gx", feeds, seed);
        expect_same(graph, "gw", feeds, seed);
        n_loops += loops_of(graph, &is_whole);
        graph_free(graph);
    }
    assert_true(seeds.given || n_loops > 50);
}

/* Each iteration draws its own numbers, also in a loop in a loop, and the same in each form. */
static void randomness_is_of_the_iteration(void **state)
{
    (void)state;
    struct graph *graph = scripts_build(
        "local _, y1 = while_loop(function(i) return Less(i, 4) end, function(i, a)\n"
        "  local _, b = while_loop(function(k) return Less(k, i) end, function(k, b)\n"
        "    return k + 1, b * 2 + RandomUniform({3}, {dtype = float32, seed = 7}) end, {0, a})\n"
        "  return i + 1, b + RandomStandardNormal({3}, {dtype = float32, seed = 8})\n"
        "end, {0, Const({1.0, 2, 3})})\n"
        "y = y1 + 0\n");
    expect_same(graph, "y", NULL, 0);
    graph_free(graph);
}

/* ---- ends ---- */

static double value_of(const char *script, float x)
{
    struct error err = ERROR_INIT;
    struct graph *graph = scripts_build(script);
    struct program program = program_of(graph, false);
    struct shape shape = {.rank = 2, .dims = {1, 2}};
    float elements[2] = {x, -x};
    struct tensor feed = tensor_borrow(FLOAT32, &shape, elements), result;
    if (run(&program, "y", &feed, 1, &result, &err))
        fail_msg("%s", err.text);
    double value = tensor_get_float64(&result, 0);
    tensor_release(&result);
    session_free(program.session);
    graph_free(graph);
    return value;
}

#define TIMES(n, body)                                                                             \
    X "local _, r = while_loop(function(i) return Less(i, " #n ") end, function(i, a) " body       \
      " end, {0, x})\n"

static void values_come_out_as_they_went_in(void **state)
{
    (void)state;
    assert_float_equal(value_of(TIMES(0, "return i + 1, a * 2") "y = r + 1", 3), 4, 0);
    assert_float_equal(value_of(TIMES(0, "return i + 1, a * 2") "y = r", 3), 3, 0);
    assert_float_equal(value_of(TIMES(5, "return i + 1, a") "y = r", 3), 3, 0);
    assert_float_equal(value_of(TIMES(5, "return i + 1, Identity(a)") "y = Identity(r)", 3), 3, 0);
    assert_float_equal(value_of(TIMES(5, "return i + 1, a * 2") "y = r * x", 3), 288, 0);
}

/* The gradient of a loop in a loop, with as many rows as are fed, against central differences: a
 * stack popped from a stack has elements of unknown shape. */
static void a_gradient_of_nests_is_a_slope(void **state)
{
    static const char script[] =
        "x = Placeholder{dtype = float64, shape = {-1, 3}, name = 'x'}\n" LOOP(
            "local _, b = while_loop(function(k) return Less(k, i + 1) end,\n"
            "  function(k, b) return k + 1, Tanh(b) * 1.5 end, {0, a})\n"
            "return i + 1, b * Sum(a, {1}, {keep_dims = true})") "y = Sum(r, {0, 1}) + 0\ngx = "
                                                                 "gradients(y, x) + 0\n";
    struct graph *graph = scripts_build(script);
    struct program program = program_of(graph, false);
    struct shape shape = {.rank = 2, .dims = {2, 3}};
    double elements[6] = {0.3, -0.7, 0.5, 0.2, 0.9, -0.4}, h = 1e-5;
    struct tensor feed = tensor_borrow(FLOAT64, &shape, elements), gradient, y[2];
    struct error err = ERROR_INIT;
    (void)state;
    if (run(&program, "gx", &feed, 1, &gradient, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 6; i++) {
        double x = elements[i];
        for (int k = 0; k < 2; k++) {
            elements[i] = k ? x + h : x - h;
            if (run(&program, "y", &feed, 1, &y[k], &err))
                fail_msg("%s", err.text);
        }
        elements[i] = x;
        double slope = (tensor_get_float64(&y[1], 0) - tensor_get_float64(&y[0], 0)) / (2 * h);
        assert_float_equal(tensor_get_float64(&gradient, i), slope, 1e-7 * (1 + fabs(slope)));
        tensor_release(&y[0]);
        tensor_release(&y[1]);
    }
    tensor_release(&gradient);
    session_free(program.session);
    graph_free(graph);
}

/* Two variables that exchange values, both of which are used. */
static void values_change_places(void **state)
{
    static const char script[] = X "local _, a, b = while_loop(function(i) return Less(i, 7) end,\n"
                                   "  function(i, a, b) return i + 1, b, a + b end, {0, x, x})\n"
                                   "y = a * 1000 + b\n";
    (void)state;
    assert_float_equal(value_of(script, 1), 21034, 0);
}

static void an_error_names_its_node_alone(void **state)
{
    struct error err = ERROR_INIT;
    struct graph *graph =
        scripts_build(TIMES(3, "return i + 1, CheckNumerics(Log(a), {message = 'a'})") "y = r");
    struct program program = program_of(graph, false);
    struct shape shape = {.rank = 2, .dims = {1, 2}};
    float elements[2] = {1, 2};
    struct tensor feed = tensor_borrow(FLOAT32, &shape, elements), result;
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(&program, "y", &feed, 1, &result, &err), ERR_DATA);
        if (strncmp(err.text, "node 'while/CheckNumerics' (m.lua:2): CheckNumerics: ", 50) != 0 ||
            strstr(err.text, "While"))
            fail_msg("%s", err.text);
    }
    session_free(program.session);
    graph_free(graph);
}

static void what_is_in_one_can_be_asked_for(void **state)
{
    struct error err = ERROR_INIT;
    struct graph *graph = scripts_build(TIMES(3, "return i + 1, Neg(a)") "y = r");
    struct program program = program_of(graph, false);
    struct shape shape = {.rank = 2, .dims = {1, 2}};
    float elements[2] = {1, 2};
    struct tensor feed = tensor_borrow(FLOAT32, &shape, elements);
    struct edge fed = {graph_find(graph, "x")->id, 0};
    int target = graph_find(graph, "while/Neg")->id;
    struct step step = {.number = 1};
    struct plan_request call = {
        .feeds = &fed, .feed_values = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};
    (void)state;
    if (session_run(program.session, &call, &step, NULL, &err))
        fail_msg("%s", err.text);
    session_free(program.session);
    graph_free(graph);
}

/* Any value can be fed: a fed value of a loop is the same in each iteration. */
static void what_is_in_one_can_be_fed(void **state)
{
    struct error err = ERROR_INIT;
    struct graph *graph = scripts_build(TIMES(3, "return i + 1, Neg(a) * 2 + a") "y = r");
    struct shape shape = {.rank = 2, .dims = {1, 2}};
    float elements[2] = {1, 2}, negative[2] = {8, 16};
    struct tensor feeds[] = {tensor_borrow(FLOAT32, &shape, elements),
                             tensor_borrow(FLOAT32, &shape, negative)};
    struct edge fed[] = {{graph_find(graph, "x")->id, 0}, {graph_find(graph, "while/Neg")->id, 0}};
    struct edge edge;
    (void)state;
    assert_int_equal(graph_parse_edge(graph, "y", &edge, &err), 0);
    for (int i = 0; i < 2; i++) {
        struct program program = program_of(graph, i);
        struct step step = {.number = 1};
        struct tensor result;
        struct plan_request call = {
            .feeds = fed, .feed_values = feeds, .n_feeds = 2, .fetches = &edge, .n_fetches = 1};
        if (session_run(program.session, &call, &step, &result, &err))
            fail_msg("%s", err.text);
        assert_float_equal(tensor_get_float64(&result, 0), 1 + 3 * 2 * 8, 0);
        assert_float_equal(tensor_get_float64(&result, 1), 2 + 3 * 2 * 16, 0);
        tensor_release(&result);
        session_free(program.session);
    }
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_wait_is_an_item),
        cmocka_unit_test(one_waits_for_another),
        cmocka_unit_test(they_change_no_bit),
        cmocka_unit_test(randomness_is_of_the_iteration),
        cmocka_unit_test(values_come_out_as_they_went_in),
        cmocka_unit_test(a_gradient_of_nests_is_a_slope),
        cmocka_unit_test(values_change_places),
        cmocka_unit_test(an_error_names_its_node_alone),
        cmocka_unit_test(what_is_in_one_can_be_asked_for),
        cmocka_unit_test(what_is_in_one_can_be_fed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
