/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fetches refer to the variables before a step, and which to those after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "exec/session/request.h"
#include "graph/text.h"
#include "ops/ops.h"

static const char graph_text[] = "w = Variable() {dtype=float32, shape=[]}\n"
                                 "other = Variable() {dtype=float32, shape=[]}\n"
                                 "one = Const() {dtype=float32, value=1.0}\n"
                                 "before = Neg(w)\n"
                                 "loss = Abs(before)\n"
                                 "add = AssignAdd(w, loss)\n"
                                 "reads = Identity(w, ^add)\n"
                                 "after = Neg(reads)\n"
                                 "mixed = Add(reads, before)\n"
                                 "late = Identity(loss, ^add)\n"
                                 "still = Neg(other)\n"
                                 "chain = AssignSub(add, one)\n"
                                 "end = Identity(w, ^chain)\n"
                                 "constant = Neg(one)\n"
                                 "own = Variable() {_local=true, dtype=float32, shape=[]}\n"
                                 "copied = Add(own, still)\n"
                                 "told = Variable() {_local=true, dtype=int64, shape=[]}\n"
                                 "push = ClockPush(told) {N=0, clock=\"c\", workers=1}\n"
                                 "pushed = Identity(w, ^push)\n"
                                 "enter = Enter(one) {frame_name=\"f\"}\n"
                                 "merge = Merge(enter, next)\n"
                                 "most = Const(^merge) {dtype=float32, value=0.0}\n"
                                 "more = Less(merge, most)\n"
                                 "cond = LoopCond(more)\n"
                                 "switch = Switch(merge, cond)\n"
                                 "body = Identity(switch:1)\n"
                                 "unit = Const(^body) {dtype=float32, value=1.0}\n"
                                 "each = AssignAdd(other, unit)\n"
                                 "within = Add(carried:1, other, ^each)\n"
                                 "first = Mul(carried:1, other)\n"
                                 "next = NextIteration(body, ^each, ^within, ^first)\n"
                                 "enter_sum = Enter(one) {frame_name=\"f\"}\n"
                                 "sum = Merge(enter_sum, next_sum)\n"
                                 "carried = Switch(sum, cond)\n"
                                 "both = Add(within, first)\n"
                                 "next_sum = NextIteration(both)\n"
                                 "exit_sum = Exit(carried:0)\n"
                                 "exit = Exit(switch:0)\n"
                                 "looped = Identity(other, ^exit)\n";

struct sight_case {
    const char *run, *fetch;
    bool before;
};

static void a_fetch_is_about_the_variables_that_it_reads(void **state)
{
    static const struct sight_case cases[] = {
        {"add", "loss", true},       {"add", "after", false},     {"add", "mixed", true},
        {"add", "late", true},       {"add", "still", false},     {"add", "constant", false},
        {"add", "add", false},       {"loss", "loss", false},     {"chain", "after", true},
        {"chain", "end", false},     {"chain", "add", true},      {"after", "loss", true},
        {"chain", "still", false},   {"push", "loss", true},      {"push", "pushed", false},
        {"push", "copied", true},    {"exit", "looped", false},   {"exit", "still", true},
        {"exit", "exit_sum", false}, {"loss", "exit_sum", false},
    };
    struct graph *graph;
    struct error err = ERROR_INIT;
    (void)state;
    if (graph_parse_text(graph_text, strlen(graph_text), "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request request = {.graph = graph};
        if (request_run(&request, cases[i].run, &err) ||
            request_fetch(&request, cases[i].fetch, &err))
            fail_msg("%s", err.text);
        struct request_view *views = request_views(&request), view = views[request.fetches.n - 1];
        if (view.before != cases[i].before || view.of_own != !strcmp(cases[i].fetch, "copied"))
            fail_msg("run %s: %s", cases[i].run, cases[i].fetch);
        mem_free(views);
        request_release(&request);
    }
    graph_free(graph);
}

/* ---- random graphs, against the definition ---- */

#define NODES 150
#define VARIABLES                                                                                  \
    5 /* of which two are a worker's own; behind them is the step that it was told                 \
       */

static uint64_t draws;

static int draw(int n)
{
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (int)((draws >> 33) % (uint64_t)n);
}

static struct random_node {
    enum { VARIABLE, NEG, ADD, WRITE, PUSH } kind;
    int inputs[2];          /* -1: none */
    int variable;           /* that its output is or refers to; -1 */
    bool led_from[NODES];   /* by node: a path leads from it to here */
    bool is_made_of[NODES]; /* not counting inputs only written on the way */
} nodes[NODES];

static int draw_of(int below, int kinds) /* a node of any of these kinds, a bit each */
{
    int at;
    do
        at = draw(below);
    while (at == VARIABLES || !(kinds >> nodes[at].kind & 1));
    return at;
}

/* Takes earlier nodes as inputs. A push has no value, so others wait for it. */
static void add_random(struct str *text, int i)
{
    static const char *const ops[] = {"", "Neg", "Add", "AssignAdd", "ClockPush"};
    static const int some[] = {NEG, NEG, ADD, WRITE, WRITE, WRITE};
    struct random_node *node = &nodes[i];
    *node = (struct random_node){.inputs = {-1, -1}, .variable = -1};
    node->led_from[i] = node->is_made_of[i] = true;
    if (i <= VARIABLES) {
        node->kind = VARIABLE;
        node->variable = i;
        str_printf(text, "n%d = Variable() {%sdtype=%s, shape=[]}\n", i,
                   i < 2 || i == VARIABLES ? "_local=true, " : "",
                   i == VARIABLES ? "int64" : "float32");
        return;
    }
    node->kind = draw(40) ? some[draw(6)] : PUSH;
    int values = 1 << VARIABLE | 1 << NEG | 1 << ADD | 1 << WRITE;
    node->inputs[0] = node->kind == PUSH    ? VARIABLES
                      : node->kind == WRITE ? draw_of(i, 1 << VARIABLE | 1 << WRITE)
                                            : draw_of(i, values);
    node->inputs[1] = node->kind == ADD || node->kind == WRITE ? draw_of(i, values) : -1;
    node->variable = node->kind == WRITE ? nodes[node->inputs[0]].variable : -1;
    str_printf(text, node->inputs[1] < 0 ? "n%d = %s(n%d" : "n%d = %s(n%d, n%d", i, ops[node->kind],
               node->inputs[0], node->inputs[1]);
    for (int k = 1 + draw(3); k >= 0; k--) {
        int on = k < 2 ? node->inputs[k] : VARIABLES + 1 + draw(i - VARIABLES);
        for (int j = 0; on >= 0 && on != i && j < NODES; j++) {
            node->led_from[j] |= nodes[on].led_from[j];
            node->is_made_of[j] |= k < 2 && node->kind != WRITE && nodes[on].is_made_of[j];
        }
        if (k >= 2 && on != i)
            str_printf(text, ", ^n%d", on);
    }
    str_printf(text, ")%s\n", node->kind == PUSH ? " {N=0, clock=\"c\", workers=1}" : "");
}

/* A node that the fetch is made of reads a variable, and a write without a path to the node changes
 * it. */
static struct request_view expected_view(int run, int fetch)
{
    struct request_view view = {false, false};
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < 2 && nodes[fetch].is_made_of[i] && nodes[i].inputs[k] >= 0; k++) {
            int variable = nodes[nodes[i].inputs[k]].variable;
            bool own = variable < 2 || variable == VARIABLES;
            view.of_own |= variable >= 0 && own;
            for (int w = 0; variable >= 0 && w < NODES; w++)
                view.before |= (nodes[run].led_from[w] || nodes[fetch].led_from[w]) &&
                               !nodes[i].led_from[w] &&
                               ((nodes[w].kind == WRITE && nodes[w].variable == variable) ||
                                (nodes[w].kind == PUSH && !own));
        }
    return view;
}

static void random_graphs_are_seen_as_they_are_defined(void **state)
{
    (void)state;
    int n_before = 0, n_after = 0;
    for (int round = 0; round < 1000; round++) {
        struct str text = STR_INIT;
        struct graph *graph;
        struct error err = ERROR_INIT;
        draws = (uint64_t)round;
        for (int i = 0; i < NODES; i++)
            add_random(&text, i);
        if (graph_parse_text(str_text(&text), text.n, "test", ops_registry(), &graph, &err))
            fail_msg("%s\n%s", err.text, str_text(&text));
        int run = NODES - 1 - draw(20);
        struct request request = {.graph = graph};
        char name[16];
        snprintf(name, sizeof name, "n%d", run);
        assert_int_equal(request_run(&request, name, &err), 0);
        int fetch = draw_of(NODES, 1 << NEG | 1 << ADD | 1 << WRITE);
        snprintf(name, sizeof name, "n%d", fetch);
        assert_int_equal(request_fetch(&request, name, &err), 0);
        struct request_view *views = request_views(&request), view = expected_view(run, fetch);
        if (views[0].before != view.before || views[0].of_own != view.of_own)
            fail_msg("run n%d, fetch n%d: before %d, of_own %d\n%s", run, fetch, view.before,
                     view.of_own, str_text(&text));
        n_before += view.before;
        n_after += !view.before;
        mem_free(views);
        request_release(&request);
        graph_free(graph);
        str_release(&text);
    }
    assert_true(n_before > 50 && n_after > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetch_is_about_the_variables_that_it_reads),
        cmocka_unit_test(random_graphs_are_seen_as_they_are_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
