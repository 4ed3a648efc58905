/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fetches are about the variables before a step, and which about those after it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
                                 "pushed = Identity(w, ^push)\n";

struct sight_case {
    const char *run, *fetch;
    bool before;
};

static void a_fetch_is_about_the_variables_that_it_reads(void **state)
{
    static const struct sight_case cases[] = {
        {"add", "loss", true},     {"add", "after", false}, {"add", "mixed", true},
        {"add", "late", true},     {"add", "still", false}, {"add", "constant", false},
        {"add", "add", false},     {"loss", "loss", false}, {"chain", "after", true},
        {"chain", "end", false},   {"chain", "add", true},  {"after", "loss", true},
        {"chain", "still", false}, {"push", "loss", true},  {"push", "pushed", false},
        {"push", "copied", true},
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
        struct request_view view = request_view(&request, (int)request.fetches.n - 1);
        if (view.before != cases[i].before || view.of_own != !strcmp(cases[i].fetch, "copied"))
            fail_msg("run %s: %s", cases[i].run, cases[i].fetch);
        request_release(&request);
    }
    graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fetch_is_about_the_variables_that_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
