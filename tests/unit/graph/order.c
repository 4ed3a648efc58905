/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of reads and writes of variables within a step, on random graphs that are compared with
 * what tests/lib/order_model.h allows, however they are declared, whatever runs them. ORDERS is how
 * many graphs (default 300), ORDERS_SEED the first one's seed.
 */
#include "lib/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "exec/session/evaluate.h"
#include "lib/cut.h"
#include "lib/order_model.h"
#include "pass/pass.h"

#define CALLS_MAX 8

enum how { STATIC, DYNAMIC, PASSES, PARTS, N_HOW };
static const char *const hows[] = {"static", "dynamic", "after passes", "in parts"};

/* The names in another graph. */
static void find_edges(const struct graph *graph, const struct model *m, bool fetched,
                       struct edge *edges, int *n)
{
    struct error err = ERROR_INIT;
    *n = 0;
    for (int i = 0; i < m->n; i++) {
        bool is_fetch = m->nodes[i].op == M_FETCH;
        if (fetched ? !is_fetch : !m->nodes[i].is_target)
            continue;
        const char *name = m->nodes[is_fetch ? m->nodes[i].in[0] : i].name;
        if (graph_parse_edge(graph, name, &edges[(*n)++], &err))
            fail_msg("%s", err.text);
    }
}

static int run_init(struct session *session, const struct graph *graph, struct error *err)
{
    int targets[MODEL_VARIABLES];
    struct step step = {.number = 1};
    struct tensor none;
    for (int i = 0; i < MODEL_VARIABLES; i++) {
        char name[16];
        snprintf(name, sizeof name, "init%d", i);
        targets[i] = graph_find(graph, name)->id;
    }
    struct session_call call = {.targets = targets, .n_targets = MODEL_VARIABLES};
    return session_run(session, &call, &step, &none, err);
}

struct wanted {
    struct edge fetches[CALLS_MAX], targets[CALLS_MAX];
    int n_fetches, n_targets;
};

static int call(struct session *session, const struct graph *graph, const struct wanted *wanted,
                double *values, struct error *err)
{
    double x = MODEL_FED;
    int ids[CALLS_MAX];
    struct tensor results[CALLS_MAX], fed = tensor_borrow(FLOAT64, &SHAPE_SCALAR, &x);
    struct step step = {.number = 2};
    struct edge feed = EDGE_NONE;
    for (int i = 0; i < wanted->n_targets; i++)
        ids[i] = wanted->targets[i].node;
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (node_is(graph_node(graph, (int)i), "Placeholder"))
            feed = (struct edge){(int)i, 0};
    struct session_call call = {.feeds = &feed,
                                .feed_values = &fed,
                                .n_feeds = edge_exists(feed),
                                .fetches = wanted->fetches,
                                .n_fetches = wanted->n_fetches,
                                .targets = ids,
                                .n_targets = wanted->n_targets};
    int code = session_run(session, &call, &step, results, err);
    for (int i = 0; !code && i < wanted->n_fetches; i++) {
        values[i] = tensor_get_float64(&results[i], 0);
        tensor_release(&results[i]);
    }
    return code;
}

/* A step of the graph, and what the variables are then. */
static int run_graph(const struct graph *graph, const struct model *m, enum how how,
                     struct model_result *result, struct error *err)
{
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .threads = 1,
                                               .dynamic = how == DYNAMIC},
                                      .devices = how == PARTS ? cut_devices() : NULL,
                                      .n_devices = how == PARTS ? CUT_DEVICES : 0};
    struct session *session = session_new(graph, &options);
    struct wanted wanted, after = {.n_fetches = MODEL_VARIABLES};
    find_edges(graph, m, true, wanted.fetches, &wanted.n_fetches);
    find_edges(graph, m, false, wanted.targets, &wanted.n_targets);
    for (int i = 0; i < MODEL_VARIABLES; i++)
        if (graph_parse_edge(graph, m->nodes[i].name, &after.fetches[i], err))
            fail_msg("%s", err->text);
    result->n = m->n_fetches + MODEL_VARIABLES;
    int code = run_init(session, graph, err);
    assert_int_equal(code, 0);
    code = call(session, graph, &wanted, result->values, err);
    if (!code)
        code = call(session, graph, &after, result->values + m->n_fetches, err);
    session_free(session);
    return code;
}

static int run_after_passes(struct graph *graph, const struct model *m, struct model_result *result,
                            struct error *err)
{
    struct evaluator evaluator = {.kernels = ops_kernels(), .device = fixture_device()};
    struct fold_evaluator fold = {evaluator_run, &evaluator};
    struct pass_options options = {.evaluator = &fold};
    const struct pass *passes[16];
    struct optimized optimized;
    struct edge kept[3 * CALLS_MAX];
    int n_fetches, n_targets, n = 0;
    find_edges(graph, m, true, kept, &n_fetches);
    find_edges(graph, m, false, kept + n_fetches, &n_targets);
    for (n = n_fetches; n < n_fetches + n_targets; n++)
        kept[n].slot = CONTROL_SLOT;
    for (int i = 0; i < MODEL_VARIABLES; i++) {
        char name[16];
        snprintf(name, sizeof name, "init%d", i);
        kept[n++] = (struct edge){graph_find(graph, name)->id, CONTROL_SLOT};
        if (graph_parse_edge(graph, m->nodes[i].name, &kept[n++], err))
            fail_msg("%s", err->text);
    }
    graph_add_entry(graph, "e", kept, n);
    for (int i = 0; i < pass_count; i++)
        passes[i] = &pass_list[i];
    if (pass_optimize(graph, passes, pass_count, &options, &optimized, err))
        fail_msg("%s", err->text);
    int code = run_graph(optimized.graph, m, PASSES, result, err);
    optimized_release(&optimized);
    return code;
}

/* By name, so that the order of nodes does not matter. What writes a variable is on its device. */
static void place(struct graph *graph, uint64_t seed)
{
    uint64_t n_devices = 2 + seed % (CUT_DEVICES - 1);
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        cut_assign(graph, node,
                   (int)(hash_bytes(node->name, strlen(node->name), seed) % n_devices));
        if (node_is(node, "Assign") || node_is(node, "AssignAdd"))
            graph_set_assigned(graph, node, graph_node(graph, node->inputs[0].node)->assigned);
    }
}

static int run(struct graph *graph, const struct model *m, enum how how, uint64_t seed,
               struct model_result *result, struct error *err)
{
    struct cut_graph cut;
    if (how == PASSES)
        return run_after_passes(graph, m, result, err);
    if (how != PARTS)
        return run_graph(graph, m, how, result, err);
    place(graph, seed);
    cut_open(&cut, graph);
    int code = run_graph(cut.joined, m, how, result, err);
    cut_close(&cut);
    return code;
}

/* Returns whether the step could be run. */
static bool check(const struct model *m, uint64_t seed, uint64_t declared, enum how how,
                  struct model_result *result)
{
    struct str text = STR_INIT;
    struct graph *graph;
    struct error err = ERROR_INIT;
    model_print(m, declared, &text);
    if (graph_parse_text(str_text(&text), text.n, "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    int code = run(graph, m, how, seed, result, &err);
    if (code && model_is_possible(m))
        fail_msg("seed %llu, %s: %s\n%s", (unsigned long long)seed, hows[how], err.text,
                 str_text(&text));
    if (code && !strstr(err.text, "reads and writes of variables contradict each other: "))
        fail_msg("seed %llu, %s: %s", (unsigned long long)seed, hows[how], err.text);
    if (!code && !model_allows(m, result))
        fail_msg("seed %llu, %s: wrong values\n%s", (unsigned long long)seed, hows[how],
                 str_text(&text));
    graph_free(graph);
    str_release(&text);
    return !code;
}

static void random_graphs_follow_the_rule(void **state)
{
    const char *count = getenv("ORDERS"), *first = getenv("ORDERS_SEED");
    uint64_t start = first ? strtoull(first, NULL, 10) : 1,
             n = count ? strtoull(count, NULL, 10) : 300;
    uint64_t n_refused = 0;
    (void)state;
    for (uint64_t seed = start; seed < start + n; seed++) {
        struct model m;
        struct model_result result, other;
        model_make(&m, seed);
        for (int how = 0; how < N_HOW; how++) {
            bool ran = check(&m, seed, 1, (enum how)how, &result);
            n_refused += !ran;
            for (uint64_t declared = 2; declared < 4; declared++) {
                assert_int_equal(check(&m, seed, declared, (enum how)how, &other), ran);
                size_t bytes = (size_t)result.n * sizeof *result.values;
                if (ran && memcmp(other.values, result.values, bytes))
                    fail_msg("seed %llu, %s: what is declared first matters",
                             (unsigned long long)seed, hows[how]);
            }
        }
    }
    print_message("%llu graphs, %llu steps refused\n", (unsigned long long)n,
                  (unsigned long long)n_refused);
    assert_true(n < 100 || (n_refused > 0 && n_refused < n));
}

/* ---- what went wrong before ---- */

#define V(name) name " = Variable() {dtype=float64, shape=[]}\n"
#define X "x = Placeholder() {dtype=float64, shape=[]}\n"
#define INIT(name, value)                                                                          \
    "k" name " = Const() {dtype=float64, value=" value "}\ninit" name " = Assign(" name ", k" name \
    ")\n"

struct small {
    struct graph *graph;
    struct session *session;
    struct error err;
};

static void small_open(struct small *s, const char *text, bool dynamic)
{
    *s = (struct small){.err = ERROR_INIT};
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &s->graph, &s->err))
        fail_msg("%s", s->err.text);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device(), .dynamic = dynamic}};
    s->session = session_new(s->graph, &options);
}

static void small_close(struct small *s)
{
    session_free(s->session);
    graph_free(s->graph);
}

/* Fetches up to three, and runs up to three, by names that a blank parts. */
static int small_run(struct small *s, const char *fetches, const char *targets, double *values)
{
    char names[2][100], *rest;
    struct wanted wanted = {.n_fetches = 0};
    snprintf(names[0], sizeof names[0], "%s", fetches);
    snprintf(names[1], sizeof names[1], "%s", targets);
    for (int i = 0; i < 2; i++)
        for (char *name = strtok_r(names[i], " ", &rest); name; name = strtok_r(NULL, " ", &rest))
            if (graph_parse_edge(s->graph, name,
                                 i ? &wanted.targets[wanted.n_targets++]
                                   : &wanted.fetches[wanted.n_fetches++],
                                 &s->err))
                fail_msg("%s", s->err.text);
    error_clear(&s->err);
    return call(s->session, s->graph, &wanted, values, &s->err);
}

static void check_values(const char *text, const char *fetches, const char *targets,
                         const double *expected)
{
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct small s;
        double values[CALLS_MAX];
        small_open(&s, text, dynamic);
        for (size_t i = 0; i < s.graph->nodes.n; i++) {
            const char *name = graph_node(s.graph, (int)i)->name;
            if (!strncmp(name, "init", 4) && small_run(&s, "", name, values))
                fail_msg("%s", s.err.text);
        }
        if (small_run(&s, fetches, targets, values))
            fail_msg("%s", s.err.text);
        for (int i = 0; i < 3 && expected[i] >= 0; i++)
            if (values[i] != expected[i])
                fail_msg("%d of %s is %g, not %g", i, fetches, values[i], expected[i]);
        small_close(&s);
    }
}

#define CROSSED                                                                                    \
    X "n1 = Identity(v2)\nn6 = Assign(v0, n1)\nn2 = Assign(v2, x)\nn10 = Identity(v0, ^n2)\n"

/* That one variable's read comes before another's write is no path. Variables are made in the order
 * in which they are initialized. */
static void an_order_that_was_chosen_is_no_path(void **state)
{
    static const double expected[] = {3, -1};
    (void)state;
    check_values(V("v0") V("v2") CROSSED INIT("v0", "3") INIT("v2", "13"), "n10", "n6 n2",
                 expected);
    check_values(V("v2") V("v0") CROSSED INIT("v0", "3") INIT("v2", "13"), "n10", "n6 n2",
                 expected);
    check_values(V("v0") V("v2") CROSSED INIT("v2", "13") INIT("v0", "3"), "n10", "n6 n2",
                 expected);
    check_values(V("v2") V("v0") CROSSED INIT("v2", "13") INIT("v0", "3"), "n10", "n6 n2",
                 expected);
}

static void a_copy_is_made_where_a_user_comes_later(void **state)
{
    static const double first[] = {11 - 11, 11, -1}, second[] = {5 + 10, 5 + 2, -1};
    (void)state;
    check_values(V("v0") X "n0 = AssignAdd(v0, x)\nn1 = Identity(v0, ^n0)\nn3 = Assign(v0, n1)\n"
                           "n5 = Identity(v0, ^n3)\nn6 = Identity(n1, ^n5)\nn7 = Sub(v0, n1)\n"
                           "n8 = Identity(n6)\n" INIT("v0", "1"),
                 "n7 n8", "", first);
    for (int swapped = 0; swapped < 2; swapped++) {
        struct str text = STR_INIT;
        str_append(&text, swapped ? V("v1") V("v2") : V("v2") V("v1"));
        str_append(&text,
                   X "w2 = Assign(v2, x)\na = Identity(v1, ^w2)\nw1 = Assign(v1, x)\n"
                     "r2 = Identity(v2)\nc = Add(a, x, ^w1)\nd = Add(a, r2)\n" INIT("v1", "5")
                         INIT("v2", "2"));
        check_values(str_text(&text), "c d", "", second);
        str_release(&text);
    }
}

static void a_step_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct small s;
        double values[CALLS_MAX];
        small_open(&s,
                   V("v") X "a = AssignAdd(v, x)\nb = AssignAdd(v, x)\nra = Identity(v, ^a)\n"
                            "rb = Identity(v, ^b)\n",
                   dynamic);
        unit_assert_error(small_run(&s, "ra rb", "", values), s.err, ERR_DATA,
                          "reads and writes of variables contradict each other: 'a' before 'ra' "
                          "reads before 'b' before 'rb' reads before 'a'");
        small_close(&s);
    }
}

/* A push keeps what the variable was. */
static void what_is_kept_is_not_the_variables_memory(void **state)
{
    static const double expected[] = {7, -1};
    (void)state;
    check_values(
        V("v") X
        "h = Stack() {elem_type=float64}\np = StackPush(h, v)\n"
        "a = Assign(v, x, ^p)\nq = StackPop(h, ^a) {elem_type=float64, shape=[]}\n" INIT("v", "7"),
        "q", "a", expected);
}

static void a_feed_satisfies_control_edges(void **state)
{
    static const double expected[] = {3, 4, -1};
    (void)state;
    check_values(V("v") X
                 "k = Const() {dtype=float64, value=3}\ny = Identity(k, ^x)\n"
                 "one = Const() {dtype=float64, value=1}\nz = Add(y, one, ^x)\n" INIT("v", "7"),
                 "y z", "", expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_that_was_chosen_is_no_path),
        cmocka_unit_test(a_copy_is_made_where_a_user_comes_later),
        cmocka_unit_test(a_step_that_contradicts_itself_is_refused),
        cmocka_unit_test(what_is_kept_is_not_the_variables_memory),
        cmocka_unit_test(a_feed_satisfies_control_edges),
        cmocka_unit_test(random_graphs_follow_the_rule),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
