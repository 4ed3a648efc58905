/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement by simulation: times that can be worked out by hand, memory, variables over shards, and
 * random graphs for which no trivial placement is better.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/placed.h"
#include "lib/random_graph.h"

#define N_GRAPHS 300

#define A "/job:a/task:0/device:CPU:0"
#define B "/job:b/task:0/device:CPU:0"
#define TWO "task a:0 h:1\ntask b:0 h:2\n"
#define X "x = Placeholder() {dtype=float32, shape=[250]}\n" /* 1000 bytes */
#define FORK X "l = Neg(x)\nr = Abs(x)\nj = Add(l, r)\n"

/* Two branches of 1 ms, a join of 1 ms; a tensor takes 10 + 10 us. */
static void test_a_fork_uses_both(void **state)
{
    (void)state;
    struct placed_graph p;
    open_graph(&p, TWO "link * * bandwidth=100000000 latency=10us\n",
               "node l 1e6\nnode r 1e6\nnode j 1e6\n", FORK);
    place(&p);
    assert_string_not_equal(where(&p, "l"), where(&p, "r"));
    /* x crosses first; the branch that need not wait has sent its result when the other ends. */
    assert_true(fabs(p.result.makespan - 2.02e6) < 1);
    assert_true(fabs(p.result.one_device - 3e6) < 1);
    assert_int_equal(p.result.n_transfers, 2);
    assert_true(p.result.transfer_bytes == 2000);
    finish(&p);
}

/* The same graph if a crossing costs more than computing. */
static void test_slow_links_keep_it_together(void **state)
{
    (void)state;
    struct placed_graph p;
    open_graph(&p, TWO "link * * bandwidth=1M latency=2ms\n",
               "node l 1e6\nnode r 1e6\nnode j 1e6\n", FORK);
    place(&p);
    assert_true(fabs(p.result.makespan - 3e6) < 1);
    assert_int_equal(p.result.n_transfers, 0);
    for (size_t i = 1; i < p.graph->nodes.n; i++)
        assert_string_equal(graph_node(p.graph, (int)i)->assigned,
                            graph_node(p.graph, 0)->assigned);
    finish(&p);
}

#define HALVES "x = Placeholder() {dtype=float32, shape=[250]} @?%s\ny = Neg(x) @?%s\n"

static double time_of(const char *cluster, const char *text)
{
    struct placed_graph p;
    open_graph(&p, cluster, "op Neg 0\nop Add 0\n", text);
    place(&p);
    double ns = p.result.makespan;
    finish(&p);
    return ns;
}

/* Two tensors of 1000 bytes go from two tasks to a third, 10 us each on a link of their own: at
 * once, or one after the other through the adapter of the senders or of the receiver. */
static void test_adapters_are_shared(void **state)
{
    (void)state;
    static const char text[] = "x = Placeholder() {dtype=float32, shape=[250]} @?/job:a\n"
                               "y = Placeholder() {dtype=float32, shape=[250]} @?/job:b\n"
                               "z = Add(x, y) @?/job:c\n";
    static const char *const tasks = "task a:0 h:1\ntask b:0 %s:2\ntask c:0 i:3\n"
                                     "link * * bandwidth=100000000 latency=1us\n%s";
    static const struct {
        const char *b, *hosts;
        double ns;
    } cases[] = {
        {"g", "", 11e3},
        {"h", "", 11e3},
        {"h", "host h bandwidth=100000000\n", 21e3},
        {"g", "host i bandwidth=100000000\n", 21e3},
        {"g", "host h bandwidth=100000000\n", 11e3},
        {"h", "host i bandwidth=50000000\n", 41e3}, /* slower than the links */
        {"i", "host i bandwidth=50000000\n", 21e3}, /* y does not go through it */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char cluster[256];
        snprintf(cluster, sizeof cluster, tasks, cases[i].b, cases[i].hosts);
        double ns = time_of(cluster, text);
        if (fabs(ns - cases[i].ns) > 1)
            fail_msg("case %zu: %g ns, not %g", i, ns, cases[i].ns);
    }
}

/* A graph of one of many workers stands for all: a shard's adapter receives the gradients of all
 * workers on other hosts, and sends them all its variables. */
static void test_all_workers_meet_at_the_shard(void **state)
{
    (void)state;
    static const char cluster[] = "task c:0 s:1\nhost s bandwidth=100000000\n"
                                  "task w:0 h0:1\ntask w:1 h1:1\ntask w:2 h2:1\ntask w:3 s:2\n"
                                  "link * * bandwidth=1000000000 latency=1us\n";
    char text[256];
    snprintf(text, sizeof text, HALVES, "/job:w/task:*", "/job:c");
    assert_true(fabs(time_of(cluster, text) - (3 * 10e3 + 1e3)) < 1);
    snprintf(text, sizeof text, HALVES, "/job:c", "/job:w/task:*");
    assert_true(fabs(time_of(cluster, text) - (3 * 10e3 + 1e3)) < 1);
}

/* Four tasks that compute on two cores have half of one each; a shard there takes none. One of the
 * tasks is on a host of its own within the machine. */
static void test_cores_are_shared(void **state)
{
    (void)state;
    struct placed_graph p;
    open_cluster(&p,
                 "task ps:0 h:9\ntask w:0 h:1 device=CPU:0,CPU:1\ntask w:1 i:2 speed=3\n"
                 "task w:2 h:3 device=CPU:0,CUDA:0\ntask w:3 g:1\nhost h cores=2\n"
                 "host i within=h\n",
                 "");
    for (size_t i = 0; i < p.placement.devices.n; i++) {
        const struct place_device *d = &p.placement.devices.items[i];
        bool whole =
            !strcmp(d->name.job, "ps") || strcmp(d->name.type, "CPU") != 0 || d->name.task == 3;
        double speed = d->name.task == 1 ? 3 : 1;
        assert_true(d->speed == (whole ? speed : speed / 2));
    }
    finish(&p);
}

/* A chain stays with its source, unless a faster device makes up for the transfer. */
static void test_a_chain_and_a_faster_device(void **state)
{
    (void)state;
    static const char chain[] =
        "x = Placeholder() {dtype=float32, shape=[250]} @?/job:a\ny = Neg(x)\nz = Neg(y)\n";
    struct placed_graph p;
    open_graph(&p, "task a:0 h:1\ntask b:0 h:2 speed=4\nlink * * bandwidth=1G latency=2ms\n",
               "op Neg 1e6\n", chain);
    place(&p);
    assert_string_equal(where(&p, "y"), A);
    assert_string_equal(where(&p, "z"), A);
    finish(&p);
    open_graph(&p, "task a:0 h:1\ntask b:0 h:2 speed=4\nlink * * bandwidth=1G latency=1ms\n",
               "op Neg 1e6\n", chain);
    place(&p);
    assert_string_equal(where(&p, "y"), B); /* 1 + 0.25 + 0.25 ms against 2 */
    assert_string_equal(where(&p, "z"), B);
    finish(&p);
}

/* Three variables of 400 bytes, on two devices of 1000. */
static void test_memory_forces_a_split(void **state)
{
    (void)state;
    static const char text[] = "u = Variable() {dtype=float32, shape=[100]}\n"
                               "v = Variable() {dtype=float32, shape=[100]}\n"
                               "w = Variable() {dtype=float32, shape=[100]}\n";
    struct placed_graph p;
    open_graph(&p, "task a:0 h:1 memory=1000\ntask b:0 h:2 memory=1000\n", "", text);
    place(&p);
    int on_a = !strcmp(where(&p, "u"), A) + !strcmp(where(&p, "v"), A) + !strcmp(where(&p, "w"), A);
    assert_in_range(on_a, 1, 2);
    assert_true(isinf(p.result.one_device));
    finish(&p);
    open_graph(&p, "task a:0 h:1 memory=500\ntask b:0 h:2 memory=500\n", "", text);
    assert_int_equal(place_graph(p.graph, &p.options, &p.err), ERR_DATA);
    assert_true(str_starts(p.err.text, "the graph does not fit: it needs 1200 bytes on "));
    finish(&p);
}

#define CLUSTER                                                                                    \
    "task ps:0 h:1 memory=1000\ntask ps:1 h:2 memory=1000\n"                                       \
    "task worker:0 h:3\ntask worker:1 h:4\n"
#define PS0 "/job:ps/task:0/device:CPU:0"
#define PS1 "/job:ps/task:1/device:CPU:0"

static void test_variables_over_shards(void **state)
{
    (void)state;
    struct placed_graph p;
    open_graph(&p, CLUSTER, "",
               "a = Variable() {dtype=float32, shape=[50]}\n"
               "b = Variable() {dtype=float32, shape=[100]}\n"
               "c = Variable() {dtype=float32, shape=[40]}\n"
               "slot = Variable() {dtype=float32, shape=[50], _class=[\"loc:@a\"]}\n"
               "own = Variable() {dtype=float32, shape=[10]} @?/job:worker\n"
               "x = Placeholder() {dtype=float32, shape=[100]}\n"
               "u = AssignAdd(b, x)\ny = Neg(x)\n"
               "e = Neg(x) @?/job:worker/task:*\n");
    place(&p);
    /* a with its slot and b have 400 bytes each; of equals, c goes to the first. */
    assert_string_equal(where(&p, "a"), PS0);
    assert_string_equal(where(&p, "slot"), PS0);
    assert_string_equal(where(&p, "b"), PS1);
    assert_string_equal(where(&p, "u"), PS1);
    assert_string_equal(where(&p, "c"), PS0);
    assert_true(str_starts(where(&p, "own"), "/job:worker/task:"));
    assert_true(str_starts(where(&p, "y"), "/job:worker/task:"));
    assert_string_equal(where(&p, "e"), "/job:worker/task:*/device:CPU:0");
    finish(&p);
}

static void test_a_table_too_large(void **state)
{
    (void)state;
    struct placed_graph p;
    open_graph(&p, CLUSTER, "",
               "v = Variable() {dtype=float32, shape=[300]} at m.lua:3\n"
               "x = Placeholder() {dtype=float32, shape=[300]}\n");
    int code = place_graph(p.graph, &p.options, &p.err);
    unit_assert_error(code, p.err, ERR_DATA,
                      "node 'v' (m.lua:3): 1200 bytes of variables share a device, and no task of "
                      "job ps has more than 1000 left");
    assert_string_equal(where(&p, "v"), "");
    finish(&p);
}

/* In whatever order the graph's lines come, each name is placed the same. */
static void test_order_of_nodes_is_of_no_account(void **state)
{
    (void)state;
    static const char costs[] = "op Neg 1e6\nop Abs 7e5\nop Add 3e5\n";
    static const char cluster[] = TWO "link * * bandwidth=100M latency=10us\n";
    struct placed_graph p, q;
    open_graph(&p, cluster, costs, X "l = Neg(x)\nr = Abs(x)\ns = Abs(r)\nj = Add(l, s)\n");
    open_graph(&q, cluster, costs, "j = Add(l, s)\ns = Abs(r)\nr = Abs(x)\nl = Neg(x)\n" X);
    place(&p);
    place(&q);
    for (size_t i = 0; i < p.graph->nodes.n; i++) {
        const struct node *node = graph_node(p.graph, (int)i);
        assert_string_equal(node->assigned, where(&q, node->name));
    }
    finish(&p);
    finish(&q);
}

/* ---- random graphs ---- */

/* Rows for every op on the CPU, of all types. */
static struct kernel_table all_kernels(void)
{
    size_t n = registry_count(ops_registry());
    struct kernel_row *rows = test_calloc(n, sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] =
            (struct kernel_row){.op = registry_at(ops_registry(), i)->def->name, .device = "CPU"};
    return (struct kernel_table){rows, n};
}

/* Of a graph whose nodes have devices, which they keep. */
static double estimate(struct placed_graph *p)
{
    struct place_result result;
    struct place_options options = p->options;
    options.result = &result;
    if (place_graph(p->graph, &options, &p->err))
        fail_msg("%s", p->err.text);
    return result.makespan;
}

static void assign(struct placed_graph *p, int node, int device)
{
    graph_set_assigned(p->graph, graph_node(p->graph, node),
                       p->placement.devices.items[device].text);
}

static void test_never_worse_than_the_trivial(void **state)
{
    (void)state;
    int shorter = 0;
    struct kernel_table kernels = all_kernels();
    for (uint64_t seed = 0; seed < N_GRAPHS; seed++) {
        struct placed_graph p;
        open_cluster(&p,
                     "task a:0 h:1 device=CPU:0,CPU:1\ntask b:0 h:2 speed=2\n"
                     "link * * bandwidth=1G latency=1us\n",
                     "");
        p.graph = random_graph(ops_registry(), seed, 5 + (int)(seed % 60), OP_STATEFUL, true);
        p.options.kernels = &kernels;
        place(&p);
        double ours = p.result.makespan;
        assert_true(fabs(estimate(&p) - ours) <= 1e-9 * ours); /* the same simulation */
        for (int device = 0; device < 3; device++) {
            for (size_t i = 0; i < p.graph->nodes.n; i++)
                assign(&p, (int)i, device);
            assert_true(ours <= estimate(&p));
        }
        for (size_t i = 0; i < p.graph->nodes.n; i++)
            assign(&p, (int)i, (int)i % 3);
        assert_true(ours <= estimate(&p));
        shorter += ours < fmin(p.result.one_device, p.result.round_robin);
        finish(&p);
    }
    assert_true(shorter > N_GRAPHS / 10);
    test_free((void *)kernels.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fork_uses_both),
        cmocka_unit_test(test_slow_links_keep_it_together),
        cmocka_unit_test(test_adapters_are_shared),
        cmocka_unit_test(test_all_workers_meet_at_the_shard),
        cmocka_unit_test(test_cores_are_shared),
        cmocka_unit_test(test_a_chain_and_a_faster_device),
        cmocka_unit_test(test_memory_forces_a_split),
        cmocka_unit_test(test_variables_over_shards),
        cmocka_unit_test(test_a_table_too_large),
        cmocka_unit_test(test_order_of_nodes_is_of_no_account),
        cmocka_unit_test(test_never_worse_than_the_trivial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
