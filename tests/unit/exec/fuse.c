/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion of ops: which ops a plan fuses, and that no bit changes. FUSED is how many random graphs
 * (default 200), FUSED_SEED the first one's seed.
 */
#include "lib/session.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "exec/plan/fuse.h"
#include "lib/plan_items.h"
#include "lib/unit.h"

/* ---- which ops are fused ---- */

#define X "x = Placeholder() {dtype=float32, shape=[3,4]}\n"
#define V "v = Variable() {dtype=float32, shape=[3,4]}\n"
#define TWO "two = Const() {dtype=float32, value=2}\n"

static const struct which {
    const char *text, *fetch, *other; /* other: a second fetch, or NULL */
    int n_items;                      /* without fetches */
    int n_fused;
} which[] = {
    {X TWO "a = Mul(x, two)\nb = Neg(a)\ny = Tanh(b)\n", "y", NULL, 1, 1},
    {X "a = Exp(x)\nb = Neg(x)\ny = Add(a, b)\n", "y", NULL, 1, 1},
    /* a value with another consumer stays */
    {X "a = Exp(x)\ny = Neg(a)\n", "y", "a", 2, 0},
    {X "a = Exp(x)\nb = Neg(a)\ny = Mul(a, b)\n", "y", NULL, 2, 1},
    {X "a = Exp(x)\nb = Neg(a)\nn = NoOp(^a)\ny = Identity(b, ^n)\n", "y", NULL, 4, 0},
    {X "n = NoOp()\na = Exp(x, ^n)\ny = Neg(a)\n", "y", NULL, 3, 0},
    /* two uses by one op are two uses */
    {X "a = Exp(x)\ny = Mul(a, a)\n", "y", NULL, 2, 0},
    /* of another shape or type */
    {X "r = Placeholder() {dtype=float32, shape=[4]}\na = Neg(r)\nb = Add(x, a)\ny = Exp(b)\n", "y",
     NULL, 3, 0},
    {X "a = Neg(x)\nb = Less(a, x)\ny = LogicalNot(b)\n", "y", NULL, 3, 0},
    {"x = Placeholder() {dtype=int32, shape=[3]}\na = Neg(x)\ny = Abs(a)\n", "y", NULL, 2, 0},
    {"x = Placeholder() {dtype=float16, shape=[3]}\na = Neg(x)\ny = Abs(a)\n", "y", NULL, 2, 0},
    {"x = Placeholder() {dtype=float64, shape=[]}\na = Neg(x)\ny = Abs(a)\n", "y", NULL, 1, 1},
    {"x = Placeholder() {dtype=float32, shape=[?]}\na = Neg(x)\ny = Abs(a)\n", "y", NULL, 2, 0},
    /* a variable is read at its own moment */
    {X V "a = Neg(v)\ny = Mul(x, a)\n", "y", NULL, 2, 0},
    {X V "a = Neg(x)\ny = Mul(v, a)\n", "y", NULL, 1, 1},
    {X V "r = Identity(v)\na = Neg(r)\ny = Mul(x, a)\n", "y", NULL, 2, 1},
    /* both operands would be kept instead of the result */
    {X "p = Softmax(x)\nq = LogSoftmax(x)\na = Mul(p, q)\ny = Neg(a)\n", "y", NULL, 4, 0},
    {X "p = Softmax(x)\na = Mul(p, x)\ny = Neg(a)\n", "y", NULL, 2, 1},
};

static struct plan *plan_of(const struct graph *graph, const struct which *of,
                            struct variable_store *variables, unsigned without)
{
    unsigned all_but_chains = DEVICE_PASSES_ALL & ~(1u << device_pass_find("chains"));
    struct error err = ERROR_INIT;
    struct edge fetches[2], feeds[2];
    struct tensor values[2];
    static const char *const fed[] = {"x", "r"};
    struct plan_request request = {
        .feeds = feeds, .feed_values = values, .fetches = fetches, .n_fetches = of->other ? 2 : 1};
    struct plan_options options = {.kernels = ops_kernels(),
                                   .device = fixture_device(),
                                   .variables = variables,
                                   .without = without & 1 ? DEVICE_PASSES_ALL : all_but_chains,
                                   .check_numerics = without & 2};
    struct plan *plan = NULL;
    for (int i = 0; i < 2; i++) {
        const struct node *node = graph_find(graph, fed[i]);
        if (!node || !node_is(node, "Placeholder"))
            continue;
        feeds[request.n_feeds] = (struct edge){node->id, 0};
        values[request.n_feeds++] =
            tensor_borrow(node->outputs[0].type, &node->outputs[0].shape, NULL);
    }
    fetches[0] = (struct edge){graph_find(graph, of->fetch)->id, 0};
    if (of->other)
        fetches[1] = (struct edge){graph_find(graph, of->other)->id, 0};
    if (plan_new(graph, &options, &request, &plan, &err))
        fail_msg("%s: %s", of->text, err.text);
    return plan;
}

static void expect_items(const struct which *of, unsigned without, int n_items, int n_fused)
{
    struct fixture f;
    fixture_open(&f, of->text, false);
    struct variable_store *variables = variable_store_new();
    struct plan *plan = plan_of(f.graph, of, variables, without);
    int moved = plan_count_kernels(plan, "fetch") + plan_count_kernels(plan, "copy_");
    int n = plan_count_kernels(plan, "") - moved, fused = plan_count_kernels(plan, "fused");
    if (n != n_items || fused != n_fused)
        fail_msg("%s%d items, %d of them fused", of->text, n, fused);
    plan_free(plan);
    variable_store_free(variables);
    fixture_close(&f);
}

static void what_nobody_else_wants_is_fused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        expect_items(&which[i], 0, which[i].n_items, which[i].n_fused);
}

static void it_can_be_switched_off(void **state)
{
    (void)state;
    expect_items(&which[0], 1, 3, 0);
    expect_items(&which[0], 2, 3, 0); /* check_numerics looks at each op */
}

/* A long chain becomes several items, as the length of each is limited. */
static void a_long_chain_is_several(void **state)
{
    struct str text = STR_INIT;
    (void)state;
    str_append(&text, X "n0 = Neg(x)\n");
    for (int i = 1; i < 40; i++)
        str_printf(&text, "n%d = %s(n%d)\n", i, i % 2 ? "Sin" : "Neg", i - 1);
    const struct which of = {str_text(&text), "n39", NULL, 3, 3};
    expect_items(&of, 0, 3, 3);
    str_release(&text);
}

/* ---- bits ---- */

static const char *const unary[] = {"Neg", "Exp", "Tanh", "Sigmoid", "Square", "Abs", "Sin"};
static const char *const binary[] = {"Add",     "Sub",     "Mul", "Div",
                                     "Maximum", "Minimum", "Pow", "SquaredDifference"};

static int below(uint64_t *state, int n)
{
    return (int)(unit_random(state) % (uint64_t)n);
}

/* Chooses recent ones most often, so that chains arise. */
static int earlier(uint64_t *state, int n)
{
    return below(state, 4) ? n - 1 - below(state, n < 3 ? n : 3) : below(state, n);
}

/* n0 to n4 are inputs: three of the full size, a scalar, a row. */
static int random_text(uint64_t seed, const char *type, struct str *text)
{
    uint64_t state = seed;
    int n = 5, last = 8 + below(&state, 30);
    str_printf(text, "n0 = Placeholder() {dtype=%s, shape=[3,5]}\n", type);
    str_printf(text, "v = Variable() {dtype=%s, shape=[3,5]}\nn1 = Identity(v)\n", type);
    str_printf(text,
               "size = Const() {dtype=int32, value=[3,5]}\nfirst = Const() {dtype=%s, "
               "value=1.5}\nfull = Fill(size, first)\ninit = Assign(v, full)\n",
               type);
    str_printf(text, "n2 = OnesLike(n0)\nn3 = Const() {dtype=%s, value=-0.75}\n", type);
    str_printf(text, "n4 = Const() {dtype=%s, value=[0.5,-1,2,0.25,3]}\n", type);
    for (; n < last; n++) {
        int kind = below(&state, 12), a = earlier(&state, n), b = earlier(&state, n);
        const char *wait = below(&state, 12) ? "" : ", ^n2";
        if (kind < 5)
            str_printf(text, "n%d = %s(n%d%s)\n", n, unary[below(&state, 7)], a, wait);
        else if (kind < 11)
            str_printf(text, "n%d = %s(n%d, n%d%s)\n", n, binary[below(&state, 8)], a, b, wait);
        else
            str_printf(text, "u%d = Add(n%d, n0)\nw%d = Assign(v, u%d)\nn%d = Neg(n%d, ^w%d)\n", n,
                       a, n, n, n, b, n);
    }
    return n;
}

static struct session *session_of(const struct graph *graph, bool dynamic, bool no_fusion)
{
    struct error err = ERROR_INIT;
    int init = graph_find(graph, "init")->id;
    struct plan_request call = {.targets = &init, .n_targets = 1};
    struct step step = {.number = 0};
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE,
                                               .without = no_fusion ? DEVICE_PASSES_ALL : 0}};
    struct session *session = session_new(graph, &options);
    if (session_run(session, &call, &step, NULL, &err))
        fail_msg("%s", err.text);
    return session;
}

static int run(struct session *session, const struct graph *graph, int last, int64_t number,
               struct tensor *result, struct error *err)
{
    static const struct shape shape = {.rank = 2, .dims = {3, 5}};
    struct tensor x;
    char name[16];
    enum dtype type = graph_find(graph, "n0")->outputs[0].type;
    assert_int_equal(tensor_alloc(&x, type, &shape, err), 0);
    for (int i = 0; i < 15; i++)
        tensor_set_float64(&x, i, sin(i * 1.7) * 2);
    snprintf(name, sizeof name, "n%d", last);
    struct edge fed = {graph_find(graph, "n0")->id, 0}, fetch = {graph_find(graph, name)->id, 0};
    struct step step = {.number = number};
    struct plan_request call = {
        .feeds = &fed, .feed_values = &x, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    int code = session_run(session, &call, &step, result, err);
    tensor_release(&x);
    return code;
}

/* Returns whether there was a value: a graph may ask for an impossible order. */
static bool expect_same(const struct graph *graph, int last, bool dynamic, uint64_t seed)
{
    struct session *sessions[] = {session_of(graph, dynamic, false),
                                  session_of(graph, dynamic, true)};
    struct error err[2] = {ERROR_INIT, ERROR_INIT};
    int codes[2] = {0, 0};
    struct tensor values[2];
    for (int64_t step = 1; step <= 2 && !codes[0]; step++) {
        for (int i = 0; i < 2; i++)
            codes[i] = run(sessions[i], graph, last, step, &values[i], &err[i]);
        if (codes[0] != codes[1] || (codes[0] && strcmp(err[0].text, err[1].text) != 0))
            fail_msg("FUSED_SEED=%llu: %s / %s", (unsigned long long)seed, err[0].text,
                     err[1].text);
        if (!codes[0] && !equal_but_nan(&values[0], &values[1]))
            fail_msg("FUSED_SEED=%llu: other bits", (unsigned long long)seed);
        for (int i = 0; i < 2 && !codes[0]; i++)
            tensor_release(&values[i]);
    }
    session_free(sessions[0]);
    session_free(sessions[1]);
    return !codes[0];
}

static void they_change_no_bit(void **state)
{
    struct seed_range seeds = seeds_of("FUSED", 200);
    int n_values = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        bool is_double = seed % 3 == 0;
        struct str text = STR_INIT;
        struct graph *graph;
        struct error err = ERROR_INIT;
        int last = random_text(seed, is_double ? "float64" : "float32", &text) - 1;
        if (graph_parse_text(text.data, text.n, "test", ops_registry(), &graph, &err))
            fail_msg("FUSED_SEED=%llu: %s", (unsigned long long)seed, err.text);
        n_values += expect_same(graph, last, seed % 2, seed);
        graph_free(graph);
        str_release(&text);
    }
    assert_true(seeds.given || n_values > 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_else_wants_is_fused),
        cmocka_unit_test(it_can_be_switched_off),
        cmocka_unit_test(a_long_chain_is_several),
        cmocka_unit_test(they_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
