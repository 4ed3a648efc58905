/* SPDX-License-Identifier: Apache-2.0
 *
 * Conclusions from measured times about nodes that were not measured, worked out by hand.
 */
#include <math.h>
#include <string.h>

#include "lib/unit.h"

#include "graph/text.h"
#include "ops/ops.h"
#include "pass/place/cost.h"

struct world {
    struct graph *graph;
    struct costs costs;
    struct cluster cluster;
};

/* Neg and Abs read and write 32 MB: 8000.5 us on a CPU of 8 GB/s. */
static void open_world(struct world *w, const char *costs, const char *cluster)
{
    static const char text[] = "a = Placeholder() {dtype=float32, shape=[8000000]}\n"
                               "m = Neg(a)\nn = Neg(a)\no = Abs(a)\n";
    struct error err = ERROR_INIT;
    *w = (struct world){.cluster = {.arena = ARENA_INIT}};
    if (graph_parse_text(text, strlen(text), "m", ops_registry(), &w->graph, &err) ||
        costs_parse(&w->costs, costs, "costs", &err) ||
        cluster_parse(&w->cluster, cluster, "c", &err))
        fail_msg("%s", err.text);
}

static void close_world(struct world *w)
{
    cluster_release(&w->cluster);
    costs_release(&w->costs);
    graph_free(w->graph);
}

#define CPUS "task worker:0 a:1\ntask worker:1 b:2\nhost a cores=1\nhost b cores=1\n"
#define GPUS "task worker:0 a:1 device=GPU:0\ntask worker:1 b:2\nhost a cores=1\n"

/* Only nodes count: the mean of an op does not tell the time of a given node. */
static void test_cores(void **state)
{
    (void)state;
    static const struct {
        const char *costs, *cluster;
        double scale;
    } cases[] = {
        {"node m 4000250\n", CPUS, 0.5},
        {"node m 4000250\nnode n 8000500\n", CPUS, 0.75},
        {"node m 4000250\nop Neg 10\nop Abs 10\n", CPUS, 0.5},
        {"op Neg 10\nop Abs 10\n", CPUS, 1},
        {"node other 10\n", CPUS, 1},
        {"", CPUS, 1},
        {"node m 80005\n", GPUS, 1}, /* may be of the GPU */
        {"node m 80005\nnode m 4000250 CPU\n", GPUS, 0.5},
        {"node m 80005 GPU\nnode m 4000250 CPU\n", GPUS, 0.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w;
        open_world(&w, cases[i].costs, cases[i].cluster);
        const struct cost_way before = cost_exchange("worker", 2, &w.cluster);
        cost_scale_cores(&w.cluster, w.graph, &w.costs, 32);
        const struct cost_way after = cost_exchange("worker", 2, &w.cluster);
        /* A message has two ends, each 60 us of a core, and takes 50 us on the way. */
        if (fabs(w.cluster.core_time - cases[i].scale) > 1e-9 ||
            fabs(before.latency - 170e3) > 1e-6 ||
            fabs(after.latency - (50e3 + 120e3 * cases[i].scale)) > 1e-6)
            fail_msg("case %zu: %g, %g ns", i, w.cluster.core_time, after.latency);
        close_world(&w);
    }
}

/* Stated rates of a device stay. */
static void test_rates(void **state)
{
    (void)state;
    static const struct {
        struct device_facts facts;
        struct cost_rates rates;
    } cases[] = {
        {{0}, {80e9, 16e9, 250}},
        {{.operations = 7e9}, {7e9, 16e9, 500}},
        {{.bandwidth = 8e9}, {80e9, 8e9, 500}},
        {{.operations = 7e9, .bandwidth = 8e9}, {7e9, 8e9, 500}},
    };
    struct world w;
    struct error err = ERROR_INIT;
    double weights[4];
    open_world(&w, "node m 4000250\n", CPUS);
    assert_int_equal(cost_weights(w.graph, weights, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cost_sample sample = {w.graph, &w.costs, weights, 32, true};
        const struct cost_rates rates = cost_scaled_rates(&sample, "CPU", &cases[i].facts);
        if (fabs(rates.operations / cases[i].rates.operations - 1) > 1e-9 ||
            fabs(rates.bandwidth / cases[i].rates.bandwidth - 1) > 1e-9 ||
            fabs(rates.overhead - cases[i].rates.overhead) > 1e-9)
            fail_msg("case %zu: %g, %g, %g", i, rates.operations, rates.bandwidth, rates.overhead);
    }
    const struct cost_sample typed = {w.graph, &w.costs, weights, 32, false};
    assert_true(cost_scaled_rates(&typed, "CPU", NULL).bandwidth == 8e9);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
