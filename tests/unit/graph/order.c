/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of reads and writes of variables within a step: random graphs, declared in any order
 * and run in any way, give the values that tests/lib/order_run.h computes. ORDERS is how many
 * graphs (default 1000), ORDERS_SEED the first one's seed.
 */
#include "lib/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "exec/session/evaluate.h"
#include "lib/cut.h"
#include "lib/order_call.h"
#include "lib/order_run.h"
#include "lib/order_text.h"
#include "pass/simplify/simplify.h"

enum how { STATIC, DYNAMIC, PASSES, PARTS, N_HOW };
static const char *const hows[] = {"static", "dynamic", "after passes", "in parts"};

/* Finds the edges of these names in another graph. */
static void find_edges(const struct graph *graph, const struct model *m, bool fetched,
                       struct edge *edges, int *n)
{
    struct error err = ERROR_INIT;
    *n = 0;
    for (int i = 0; i < m->n; i++) {
        bool is_fetch = m->nodes[i].op == M_FETCH;
        if (fetched ? !is_fetch : !m->nodes[i].is_target)
            continue;
        char name[16];
        snprintf(name, sizeof name, "%s%s", is_fetch ? "" : "^",
                 m->nodes[is_fetch ? m->nodes[i].in[0] : i].name);
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
    struct plan_request call = {.targets = targets, .n_targets = MODEL_VARIABLES};
    return session_run(session, &call, &step, &none, err);
}

/* Runs a step of the graph, and reads the variables after it. */
static int run_graph(const struct graph *graph, const struct model *m, enum how how,
                     struct model_result *result, struct error *err)
{
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .threads = 1,
                                               .cut = how == DYNAMIC ? CUT_REGIONS : CUT_WHOLE},
                                      .devices = how == PARTS ? cut_devices() : NULL,
                                      .n_devices = how == PARTS ? CUT_DEVICES : 0};
    struct session *session = session_new(graph, &options);
    struct order_wanted wanted, after = {.n_fetches = MODEL_VARIABLES};
    find_edges(graph, m, true, wanted.fetches, &wanted.n_fetches);
    find_edges(graph, m, false, wanted.targets, &wanted.n_targets);
    for (int i = 0; i < MODEL_VARIABLES; i++)
        if (graph_parse_edge(graph, m->nodes[i].name, &after.fetches[i], err))
            fail_msg("%s", err->text);
    result->n = m->n_fetches + MODEL_VARIABLES;
    int code = run_init(session, graph, err);
    assert_int_equal(code, 0);
    code = order_call(session, graph, m, &wanted, result->values, err);
    if (!code)
        code = order_call(session, graph, m, &after, result->values + m->n_fetches, err);
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
    struct pass_result optimized;
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
    pass_result_release(&optimized);
    return code;
}

static int run(struct graph *graph, const struct model *m, enum how how, uint64_t seed,
               struct model_result *result, struct error *err)
{
    struct cut_graph cut;
    if (how == PASSES)
        return run_after_passes(graph, m, result, err);
    if (how != PARTS)
        return run_graph(graph, m, how, result, err);
    order_place(graph, seed);
    cut_open(&cut, graph);
    int code = run_graph(cut.joined, m, how, result, err);
    cut_close(&cut);
    return code;
}

static bool same_result(const struct model_result *a, const struct model_result *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = a->values[i] == b->values[i];
    return same;
}

static void say(const struct model *m, const struct model_result *result, const char *what)
{
    fprintf(stderr, "%s:", what);
    for (int i = 0; i < result->n; i++)
        fprintf(stderr, " %s=%g",
                i < m->n_fetches ? m->nodes[m->nodes[m->n - m->n_fetches + i].in[0]].name
                                 : m->nodes[i - m->n_fetches].name,
                result->values[i]);
    fprintf(stderr, "\npredicates %d %d; targets:", m->predicates[0], m->predicates[1]);
    for (int i = 0; i < m->n; i++)
        if (m->nodes[i].is_target)
            fprintf(stderr, " %s", m->nodes[i].name);
    fprintf(stderr, "\n");
}

/* `expected` is NULL if the step cannot be run. */
static void check(const struct model *m, uint64_t seed, uint64_t declared, enum how how,
                  const struct model_result *expected)
{
    struct str text = STR_INIT;
    struct graph *graph;
    struct error err = ERROR_INIT;
    struct model_result result;
    model_print(m, declared, &text);
    if (graph_parse_text(str_text(&text), text.n, "test", ops_registry(), &graph, &err))
        fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, err.text, str_text(&text));
    int code = run(graph, m, how, seed, &result, &err);
    if (!code && expected && !same_result(&result, expected)) {
        say(m, expected, "expected");
        say(m, &result, "result");
        fprintf(stderr, "%s", str_text(&text));
        fail_msg("seed %llu, %s: wrong values", (unsigned long long)seed, hows[how]);
    }
    if (!code != !!expected ||
        (code && !strstr(err.text, "reads and writes of variables contradict each other: "))) {
        fprintf(stderr, "%s", str_text(&text));
        fail_msg("seed %llu, %s: '%s' is not expected", (unsigned long long)seed, hows[how],
                 err.text);
    }
    graph_free(graph);
    str_release(&text);
}

static void random_graphs_follow_the_rule(void **state)
{
    const char *count = getenv("ORDERS"), *first = getenv("ORDERS_SEED");
    uint64_t start = first ? strtoull(first, NULL, 10) : 1,
             n = count ? strtoull(count, NULL, 10) : 1000;
    uint64_t n_refused = 0;
    (void)state;
    for (uint64_t seed = start; seed < start + n; seed++) {
        struct model m;
        struct model_result expected;
        model_make(&m, seed);
        bool can = model_execute(&m, &expected);
        n_refused += !can;
        for (int how = 0; how < N_HOW; how++)
            for (uint64_t declared = 1; declared < 3; declared++)
                check(&m, seed, declared, (enum how)how, can ? &expected : NULL);
    }
    print_message("%llu graphs, %llu steps refused\n", (unsigned long long)n,
                  (unsigned long long)n_refused);
    assert_true(n < 100 || (n_refused > 0 && n_refused < n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs_follow_the_rule)};
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
