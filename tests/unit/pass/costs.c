/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of a node: operations and bytes worked out by hand, and files of measured times; and the
 * cost of an exchange.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/unit.h"

#include "graph/text.h"
#include "ops/ops.h"
#include "pass/place/cost.h"
#include "pass/place/place.h"

static struct graph *parse(const char *text)
{
    struct graph *graph;
    struct error err = ERROR_INIT;
    if (graph_parse_text(text, strlen(text), "m", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    return graph;
}

static struct cost_query query(const struct graph *graph, const char *name)
{
    return (struct cost_query){graph_find(graph, name), graph, 8};
}

static double bytes_of(const struct graph *graph, const char *name)
{
    struct cost_query of = query(graph, name);
    return cost_of(&of).bytes;
}

static double operations_of(const struct graph *graph, const char *name)
{
    struct cost_query of = query(graph, name);
    return cost_of(&of).operations;
}

static void test_estimates(void **state)
{
    (void)state;
    struct cost_rates rates = {.operations = 1e9, .bandwidth = 1e9, .overhead = 100};
    struct graph *graph = parse("a = Placeholder() {dtype=float32, shape=[?,64]}\n"
                                "b = Placeholder() {dtype=float32, shape=[64,10]}\n"
                                "m = MatMul(a, b)\nn = Neg(a)\n"
                                "t = MatMul(a, a) {transpose_a=true}\n");
    const struct cost_query of_n = query(graph, "n"), of_a = query(graph, "a");
    assert_true(operations_of(graph, "m") == 2.0 * 8 * 64 * 10);
    assert_true(operations_of(graph, "t") == 2.0 * 64 * 64 * 8);
    assert_true(cost_bytes(&of_n.node->outputs[0], 8) == 4.0 * 8 * 64);
    /* More bytes than operations: 2048 in, 2048 out. */
    assert_true(fabs(cost_estimate_ns(&of_n, &rates) - (100 + 4096)) < 1e-6);
    assert_true(cost_estimate_ns(&of_a, &rates) == 0);
    graph_free(graph);
}

/* Taking or changing rows of a table does not touch its other rows; an output shaped like an input
 * is still written; a view moves nothing. */
static void test_costs_are_of_what_is_touched(void **state)
{
    (void)state;
    struct graph *graph = parse("t = Variable() {dtype=float32, shape=[1000000,4]}\n"
                                "i = Placeholder() {dtype=int32, shape=[10]}\n"
                                "rows = Gather(t, i)\n"
                                "add = ScatterAdd(t, i, rows)\n"
                                "zeros = ZerosLike(rows)\n"
                                "same = Reshape(rows, shape)\n"
                                "shape = Const() {dtype=int32, value=[40]}\n");
    const struct cost_query of_same = query(graph, "same"), of_t = query(graph, "t");
    assert_true(bytes_of(graph, "rows") == 2 * 4.0 * 40);
    assert_true(bytes_of(graph, "add") == 3 * 4.0 * 40 + 4.0 * 10);
    assert_true(bytes_of(graph, "zeros") == 4.0 * 40);
    assert_true(bytes_of(graph, "same") == 0);
    assert_true(cost_is_view(&of_same));
    assert_true(cost_of(&of_t).is_free);
    graph_free(graph);
}

/* A node's own time precedes that of its op. */
static void test_measured_costs(void **state)
{
    (void)state;
    struct costs costs = {0};
    struct error err = ERROR_INIT;
    struct graph *graph = parse("a = Placeholder() {dtype=float32, shape=[?,64]}\n"
                                "m = Neg(a)\nn = Neg(a)\no = Abs(a)\n");
    if (costs_parse(&costs, "node m 5\nop Neg 7\n", "costs", &err))
        fail_msg("%s", err.text);
    double ns;
    assert_true(costs_find(&costs, graph_find(graph, "m"), "CPU", &ns) && ns == 5);
    assert_true(costs_find(&costs, graph_find(graph, "n"), "CPU", &ns) && ns == 7);
    assert_false(costs_find(&costs, graph_find(graph, "o"), "CPU", &ns));
    costs_release(&costs);
    graph_free(graph);
}

/* A time measured on a device type precedes one for any type; nodes precede ops. */
static void test_costs_of_types(void **state)
{
    (void)state;
    static const char text[] = "node m 5\nnode m 2 GPU\nop Neg 7\nop Neg 3 GPU\nop Abs 4 GPU\n"
                               "device GPU memory=80G operations=6e13 bus=24G\n";
    static const struct {
        const char *node, *type;
        double ns; /* below 0: not measured */
    } cases[] = {{"m", "CPU", 5}, {"m", "GPU", 2}, {"n", "CPU", 7},
                 {"n", "GPU", 3}, {"o", "GPU", 4}, {"o", "CPU", -1}};
    struct costs costs = {0};
    struct error err = ERROR_INIT;
    struct graph *graph = parse("a = Placeholder() {dtype=float32, shape=[?,64]}\n"
                                "m = Neg(a)\nn = Neg(a)\no = Abs(a)\n");
    struct device_name gpu;
    if (costs_parse(&costs, text, "costs", &err) ||
        device_name_parse(&gpu, "/job:w/task:0/device:GPU:1", &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *type = strcmp(cases[i].type, "GPU") ? "CPU" : gpu.type;
        double ns = -1;
        costs_find(&costs, graph_find(graph, cases[i].node), type, &ns);
        assert_true(ns == cases[i].ns);
    }
    struct device_facts facts = cost_facts(&gpu, NULL, &costs);
    assert_true(facts.memory_bytes == (int64_t)80 << 30 && facts.operations == 6e13);
    assert_true(facts.bus == (double)((int64_t)24 << 30) && facts.bandwidth == 0);
    costs_release(&costs);
    graph_free(graph);
}

/* From each task to each other, 4 bytes are sent when each has 12: at once over separate links, or
 * all that a host sends through its adapter, 1.3 times as long if flows meet. */
static void test_exchanges(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        int n;
        double latency, per_byte; /* ns */
    } cases[] = {
        {"", 4, 50e3, 1.0 / 3},
        {"", 1, 0, 0},
        {"link * * bandwidth=100000000 latency=1us\n", 2, 1e3, 10},
        {"link * * bandwidth=100000000 latency=1us\n", 4, 1e3, 10.0 / 3},
        {"link w:0 w:3 bandwidth=10000000 latency=2ms\n", 4, 2e6, 100.0 / 3},
        {"link w:0 w:3 bandwidth=10000000 latency=2ms\n", 3, 50e3, 1.0 / 2},
        /* host a has two of them: each sends two thirds away, both through one adapter */
        {"host a bandwidth=100000000\n", 4, 50e3, 1.3 * 10 * 4.0 / 3},
        {"host b bandwidth=100000000\n", 4, 50e3, 1.3 * 10},
        {"host c bandwidth=100000000\n", 4, 50e3, 1.3 * 10},
        {"host b bandwidth=100000000\n", 3, 50e3, 1.3 * 10},
        {"host a bandwidth=100000000\n", 2, 50e3, 1},
        /* two that the file does not list are elsewhere */
        {"host b bandwidth=100000000\n", 6, 50e3, 1.3 * 10},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster = {.arena = ARENA_INIT};
        struct error err = ERROR_INIT;
        char text[256];
        snprintf(text, sizeof text, "task w:0 a:1\ntask w:1 a:2\ntask w:2 b:3\ntask w:3 c:4\n%s",
                 cases[i].cluster);
        if (cluster_parse(&cluster, text, "c", &err))
            fail_msg("%s", err.text);
        struct cost_way way = cost_exchange("w", cases[i].n, &cluster);
        if (fabs(way.latency - cases[i].latency) > 1e-6 ||
            fabs(way.per_byte - cases[i].per_byte) > 1e-9)
            fail_msg("case %zu: %g ns and %g ns a byte", i, way.latency, way.per_byte);
        cluster_release(&cluster);
    }
    assert_true(fabs(cost_exchange("w", 4, NULL).per_byte - 1.0 / 3) < 1e-9);
}

/* Each of three workers sends a byte, half of it to each shard; a host's adapter carries the
 * traffic of all its tasks. */
static void test_pushes(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        double latency, pushes, reads; /* ns */
    } cases[] = {
        {"", 50e3, 1.0 / 2, 1.0 / 2},
        {"link worker:0 ps:1 bandwidth=10000000 latency=2ms\n", 2e6, 100.0 / 2, 100.0 / 2},
        /* two workers send all of theirs; their reads come from two hosts */
        {"host a bandwidth=100000000\n", 50e3, 10 * 2, 1.3 * 10 * 2},
        /* a shard receives two halves, and sends them; a half leaves the host, and comes in */
        {"host b bandwidth=100000000\n", 50e3, 1.3 * 10, 10},
        {"host c bandwidth=100000000\n", 50e3, 10 * 3.0 / 2, 10 * 3.0 / 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster = {.arena = ARENA_INIT};
        struct error err = ERROR_INIT;
        char text[256];
        snprintf(text, sizeof text,
                 "task worker:0 a:1\ntask worker:1 a:2\ntask worker:2 b:3\n"
                 "task ps:0 b:4\ntask ps:1 c:5\n%s",
                 cases[i].cluster);
        if (cluster_parse(&cluster, text, "c", &err))
            fail_msg("%s", err.text);
        struct cost_way pushes = cost_shards(3, 2, &cluster).pushes;
        struct cost_way reads = cost_shards(3, 2, &cluster).reads;
        if (fabs(pushes.latency - cases[i].latency) > 1e-6 ||
            fabs(reads.latency - cases[i].latency) > 1e-6 ||
            fabs(pushes.per_byte - cases[i].pushes) > 1e-9 ||
            fabs(reads.per_byte - cases[i].reads) > 1e-9)
            fail_msg("case %zu: %g ns, %g and %g ns a byte", i, pushes.latency, pushes.per_byte,
                     reads.per_byte);
        cluster_release(&cluster);
    }
    assert_true(fabs(cost_shards(3, 4, NULL).pushes.per_byte - 1.0 / 4) < 1e-9);
}

#define CORE_BYTE 1.5     /* ns of a core, for a byte at each end */
#define CORE_MESSAGE 60e3 /* and for a message */

static struct cluster cluster_of(const char *tasks, const char *hosts)
{
    struct cluster cluster = {.arena = ARENA_INIT};
    struct error err = ERROR_INIT;
    char text[512];
    snprintf(text, sizeof text, "%s%s", tasks, hosts);
    if (cluster_parse(&cluster, text, "c", &err))
        fail_msg("%s", err.text);
    return cluster;
}

/* Expects the cost of `ends` message ends per core, where links take `links` ns a byte. */
static void expect_cores(const char *what, struct cost_way way, double ends, double links,
                         double parts)
{
    double latency = 50e3 + CORE_MESSAGE * ends;
    double per_byte = sqrt(links * links + CORE_BYTE * ends * CORE_BYTE * ends) / parts;
    if (fabs(way.latency - latency) > 1e-6 || fabs(way.per_byte - per_byte) > 1e-9)
        fail_msg("%s: %g ns and %g ns a byte, not %g and %g", what, way.latency, way.per_byte,
                 latency, per_byte);
}

/* Tasks on one machine share its cores, and each byte has two ends; a task uses at most one core.
 */
static void test_cores_of_exchanges(void **state)
{
    (void)state;
    static const struct {
        const char *hosts;
        double exchange, pushes, served; /* ends for a core */
    } cases[] = {
        /* four workers with 3 + 3 ends each; two that send to a shard, which receives from two */
        {"host m cores=2\nhost a within=m\nhost b within=m\nhost s within=m\n", 12, 4, 8},
        {"host m cores=8\nhost a within=m\nhost b within=m\nhost s within=m\n", 6, 4, 8},
        {"host a cores=1\n", 12, 2, 4},
        {"host a cores=2\n", 6, 1, 2},
        {"host s cores=1\n", 0, 4, 8},
        {"host b cores=1\n", 12, 2, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster = cluster_of("task worker:0 a:1\ntask worker:1 a:2\n"
                                            "task worker:2 b:3\ntask worker:3 b:4\n"
                                            "task ps:0 s:5\n",
                                            cases[i].hosts);
        expect_cores("exchange", cost_exchange("worker", 4, &cluster), cases[i].exchange, 1, 3);
        expect_cores("pushes", cost_shards(4, 1, &cluster).pushes, cases[i].pushes, 1, 1);
        expect_cores("reads", cost_shards(4, 1, &cluster).reads, cases[i].pushes, 1, 1);
        expect_cores("served", cost_served(4, 1, 1, &cluster), cases[i].served, 1, 1);
        cluster_release(&cluster);
    }
}

/* Shards and workers share a machine's cores. */
static void test_shares_of_cores(void **state)
{
    (void)state;
    struct cluster cluster = cluster_of("task worker:0 a:1\ntask worker:1 b:2\n"
                                        "task worker:2 c:3 device=CPU:0,CPU:1,GPU:0\n"
                                        "task ps:0 a:4\ntask ps:1 m:5\ntask ps:2 m:6\n",
                                        "host m cores=2\nhost a within=m\nhost b within=m\n"
                                        "host c cores=1\n");
    assert_true(cost_least_share("worker", 2, &cluster) == 1);
    assert_true(cost_least_share("worker", 3, &cluster) == 0.5);
    assert_true(cost_least_share("ps", 3, &cluster) == 2.0 / 3);
    assert_true(cost_least_share("worker", 3, NULL) == 1);
    cluster_release(&cluster);
}

/* Four workers of one shard, whose reads take 8: the first is done when 6 are left, or with the
 * others; the mean is 3. All pushes but the last worker's may be over by then. */
static void test_pushes_beside_reads(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        double few, many;
    } cases[] = {
        {"task ps:0 s:1\n", 0, 0}, /* all links are separate */
        {"task ps:0 s:1\nhost s bandwidth=1000000\n", 2.0 * 3 / 4, 8.0 / 2 * 3 / 4},
        {"task ps:0 s:1\nhost s bandwidth=1000000\nhost w0 bandwidth=1000\n", 0, 0},
        {"task ps:0 w0:2\nhost w0 bandwidth=1000000\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster = {.arena = ARENA_INIT};
        struct error err = ERROR_INIT;
        char text[256];
        snprintf(text, sizeof text,
                 "task worker:0 w0:1\ntask worker:1 w1:1\ntask worker:2 w2:1\n"
                 "task worker:3 w3:1\n%s",
                 cases[i].cluster);
        if (cluster_parse(&cluster, text, "c", &err))
            fail_msg("%s", err.text);
        double few = cost_beside_reads(cost_shards(4, 1, &cluster).pushers_beside, 2, 8);
        double many = cost_beside_reads(cost_shards(4, 1, &cluster).pushers_beside, 6, 8);
        if (fabs(few - cases[i].few) > 1e-9 || fabs(many - cases[i].many) > 1e-9)
            fail_msg("case %zu: %g and %g", i, few, many);
        cluster_release(&cluster);
    }
    assert_true(cost_shards(4, 1, NULL).pushers_beside == 0);
}

static void costs_fail(const char *text, const char *message)
{
    struct costs costs = {0};
    struct error err = ERROR_INIT;
    int code = costs_parse(&costs, text, "f", &err);
    unit_assert_error(code, err, ERR_DATA, message);
    costs_release(&costs);
}

static void test_wrong_costs(void **state)
{
    (void)state;
    costs_fail("x a 1\n", "f:1: 'x' is none of op, node and device");
    costs_fail("op Neg 1 a/b\n", "f:1: 'a/b' is not a type of device, as CPU is");
    costs_fail("device GPU\n", "f:1: 2 words: device TYPE KEY=VALUE...");
    costs_fail("device GPU:0 memory=1G\n", "f:1: 'GPU:0' is not a type of device, as CPU is");
    costs_fail("device GPU memory\n", "f:1: 'memory' is not key=value");
    costs_fail("device GPU memory=lots\n", "f:1: memory=lots: not a size, as 80G is");
    costs_fail("device GPU speed=2\n", "f:1: costs are those of devices of speed 1");
    costs_fail("device GPU bus=1G\ndevice GPU bus=2G\n", "f:2: device GPU is there twice");
    costs_fail("# c\nop Neg\n", "f:2: 2 words instead of 3 or 4: op NAME NANOSECONDS [TYPE]");
    costs_fail("op Neg -1\n", "f:1: '-1' is not a time in nanoseconds");
    costs_fail("op Neg inf\n", "f:1: 'inf' is not a time in nanoseconds");
    costs_fail("op Neg 1\nop Neg 2\n", "f:2: op Neg is there twice");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pushes),          cmocka_unit_test(test_cores_of_exchanges),
        cmocka_unit_test(test_shares_of_cores), cmocka_unit_test(test_pushes_beside_reads),
        cmocka_unit_test(test_estimates),       cmocka_unit_test(test_costs_are_of_what_is_touched),
        cmocka_unit_test(test_measured_costs),  cmocka_unit_test(test_costs_of_types),
        cmocka_unit_test(test_exchanges),       cmocka_unit_test(test_wrong_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
