/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement by facts about accelerators from files: their memory, rates and bus. Steps that can be
 * worked out by hand, and random graphs, in which no device gets more than it has.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/placed.h"
#include "lib/random.h"

#define N_GRAPHS 400 /* PLACINGS in the environment overrides it */

#define CARD "task w:0 h:1 device=CPU:0,GPU:0\n"
#define CARDS "task w:0 h:1 device=CPU:0,GPU:0,GPU:1\n"

static bool is_on(const struct placed_graph *p, const char *node, const char *device)
{
    struct device_name name;
    struct error err = ERROR_INIT;
    char text[64];
    snprintf(text, sizeof text, "/job:w/task:0/device:%s", device);
    assert_int_equal(device_name_parse(&name, where(p, node), &err), 0);
    struct device_name wanted;
    assert_int_equal(device_name_parse(&wanted, text, &err), 0);
    return device_name_equal(&name, &wanted);
}

static void expect_ns(const struct placed_graph *p, double ns)
{
    if (fabs(p->result.makespan - ns) > 1e-6 * ns)
        fail_msg("%g ns, not %g", p->result.makespan, ns);
}

/* x and y are on the CPU, 1000 bytes each; n, between them, is free. It goes where the step is
 * shortest: a GPU costs its own time, and twice 10 us and 1000 bytes over the bus. */
static void a_card_is_worth_its_bus(void **state)
{
    (void)state;
    static const struct {
        const char *bus;
        double bytes, cpu, gpu;
    } cases[] = {{"1e8", 1e8, 1e6, 1e5},
                 {"1e6", 1e6, 1e6, 1e5},
                 {"1e8", 1e8, 1e5, 9e4},
                 {"1e8", 1e8, 1.5e5, 1e5},
                 {"1e10", 1e10, 1.3e5, 1e5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int in_costs = 0; in_costs < 2; in_costs++) {
            struct placed_graph p;
            char cluster[128] = CARD, costs[256];
            if (!in_costs)
                snprintf(cluster, sizeof cluster, CARD "device * GPU bus=%s\n", cases[i].bus);
            snprintf(costs, sizeof costs,
                     "op Abs 0\nnode n %g CPU\nnode n %g GPU\ndevice GPU bus=%s\n", cases[i].cpu,
                     cases[i].gpu, in_costs ? cases[i].bus : "3e9"); /* the cluster overrides it */
            open_graph(&p, cluster, costs,
                       "x = Placeholder() {dtype=float32, shape=[250]} @?/device:CPU:0\n"
                       "n = Neg(x)\ny = Abs(n) @?/device:CPU:0\n");
            place(&p);
            double on_card = cases[i].gpu + 2 * (10e3 + 1000 * 1e9 / cases[i].bytes);
            expect_ns(&p, fmin(cases[i].cpu, on_card));
            assert_true(is_on(&p, "n", on_card < cases[i].cpu ? "GPU:0" : "CPU:0"));
            finish(&p);
        }
}

/* Both come back over one bus, one after the other; from two cards, each over its own. */
static void a_bus_carries_one_tensor_at_a_time(void **state)
{
    (void)state;
    for (int cards = 1; cards <= 2; cards++) {
        struct placed_graph p;
        char text[512];
        snprintf(text, sizeof text,
                 "a = Placeholder() {dtype=float32, shape=[250]} @?/device:GPU:0\n"
                 "b = Placeholder() {dtype=float32, shape=[250]} @?/device:GPU:%d\n"
                 "y = Add(a, b) @?/device:CPU:0\n",
                 cards - 1);
        open_graph(&p, CARDS "device * GPU bus=1e8\n", "op Add 0\n", text);
        place(&p);
        expect_ns(&p, cards == 1 ? 10e3 + 2 * 10e3 : 10e3 + 10e3);
        finish(&p);
    }
}

#define PRODUCT(name) name " = MatMul(a, b) @?/device:GPU:0\n"
#define MATRICES                                                                                   \
    "a = Placeholder() {dtype=float32, shape=[100,100]} @?/device:GPU:0\n"                         \
    "b = Placeholder() {dtype=float32, shape=[100,100]} @?/device:GPU:0\n"

/* 2,000,000 operations, 120,000 bytes, 5 us a call. */
static void rates_are_as_they_are_said(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *costs;
        double ns;
    } cases[] = {
        {"", "", 5e3 + 240},
        {"device * GPU operations=1e12\n", "", 5e3 + 2e3},
        {"device w:0 GPU:0 operations=1e12 bandwidth=1e10\n", "", 5e3 + 12e3},
        {"", "device GPU operations=1e12\n", 5e3 + 2e3},
        {"device * GPU operations=1e12\n", "device GPU operations=1e9 bandwidth=1e11\n", 5e3 + 2e3},
        {"device w:0 GPU:0 operations=1e12 speed=2\n", "", (5e3 + 2e3) / 2},
        {"device w:0 GPU:1 operations=1e9\n", "", 5e3 + 240}, /* another GPU */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct placed_graph p;
        char cluster[256];
        snprintf(cluster, sizeof cluster, "%s%s", CARDS, cases[i].cluster);
        open_graph(&p, cluster, cases[i].costs, MATRICES PRODUCT("m"));
        place(&p);
        expect_ns(&p, cases[i].ns);
        finish(&p);
    }
}

/* One product was measured on the type; the other one, of the same size, was not. */
static void what_was_measured_tells_of_the_rest(void **state)
{
    (void)state;
    static const struct {
        const char *costs;
        double ns;
    } cases[] = {
        {"node m 14000 GPU\n", 28000},
        {"node m 1000 GPU\n", 2000},
        {"node m 14000 CPU\n", 2 * 5240}, /* measured on another type */
        {"node m 14000\n", 14000 + 5240}, /* measured on any type */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct placed_graph p;
        open_graph(&p, CARD, cases[i].costs, MATRICES PRODUCT("m") PRODUCT("k"));
        place(&p);
        expect_ns(&p, cases[i].ns);
        finish(&p);
    }
}

/* ---- memory ---- */

/* 4 MB each. */
#define TABLES                                                                                     \
    "v = Variable() {dtype=float32, shape=[1000000]}\n"                                            \
    "w = Variable() {dtype=float32, shape=[1000000]}\n"                                            \
    "a = Const() {dtype=int32, value=0}\n"                                                         \
    "x = Sum(v, a)\ny = Sum(w, a)\n"
#define FAST "op Sum 1e6 CPU\nop Sum 1e3 GPU\n"

static void what_is_too_much_goes_elsewhere(void **state)
{
    (void)state;
    struct placed_graph p;
    open_graph(&p, CARDS, FAST "device GPU memory=9M\n", TABLES); /* one GPU has room for both */
    place(&p);
    assert_true(!is_on(&p, "v", "CPU:0") && !is_on(&p, "w", "CPU:0"));
    finish(&p);
    open_graph(&p, CARDS, FAST "device GPU memory=5M\n", TABLES); /* each has room for one */
    place(&p);
    assert_true(!is_on(&p, "v", "CPU:0") && !is_on(&p, "w", "CPU:0"));
    assert_string_not_equal(where(&p, "v"), where(&p, "w"));
    finish(&p);
    open_graph(&p, CARDS "device * GPU:1 memory=3M\n", FAST "device GPU memory=5M\n", TABLES);
    place(&p); /* one there, none here */
    assert_true(is_on(&p, "v", "CPU:0") != is_on(&p, "w", "CPU:0"));
    assert_true(is_on(&p, "v", "GPU:0") != is_on(&p, "w", "GPU:0"));
    finish(&p);
    open_graph(&p, CARDS, FAST "device GPU memory=3M\n", TABLES);
    place(&p);
    assert_true(is_on(&p, "v", "CPU:0") && is_on(&p, "w", "CPU:0"));
    finish(&p);
}

static void what_fits_nowhere_is_refused(void **state)
{
    (void)state;
    struct placed_graph p;
    open_graph(&p, CARD, FAST "device GPU memory=3M\n",
               "v = Variable() {dtype=float32, shape=[1000000]} @?/device:GPU:0\n"
               "a = Const() {dtype=int32, value=0}\nx = Sum(v, a)\n");
    int code = place_graph(p.graph, &p.options, &p.err);
    assert_int_equal(code, ERR_DATA);
    assert_non_null(strstr(p.err.text, "the graph does not fit: it needs 40000"));
    assert_non_null(strstr(p.err.text, ", which has 3145728"));
    finish(&p);
}

/* ---- random graphs ---- */

static int below(uint64_t *r, uint64_t n)
{
    return (int)(unit_random(r) % n);
}

static void draw_graph(uint64_t *r, char *text, size_t bytes, int *n)
{
    size_t at = 0;
    *n = 2 + below(r, 5);
    for (int i = 0; i < *n; i++)
        at += (size_t)snprintf(text + at, bytes - at,
                               "v%d = Variable() {dtype=float32, shape=[%d]}\n"
                               "a%d = Neg(v%d)\nb%d = Abs(a%d)\n",
                               i, 250 * (1 + below(r, 8)), i, i, i, i);
}

/* The bytes that a device holds permanently, plus the node that needs most: no order needs less. */
static double least_need(const struct placed_graph *p, const char *device)
{
    double held = 0, most = 0;
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const struct node *node = graph_node(p->graph, (int)i);
        double bytes = cost_bytes(&node->outputs[0], 1), needs = bytes;
        if (strcmp(node->assigned, device) != 0)
            continue;
        if (node_is(node, "Variable")) {
            held += bytes;
            continue;
        }
        const struct node *from = graph_node(p->graph, node->inputs[0].node);
        needs += node_is(from, "Variable") ? 0 : cost_bytes(&from->outputs[0], 1);
        most = fmax(most, needs);
    }
    return held + most;
}

static void no_device_gets_more_than_it_has(void **state)
{
    int placed = 0, refused = 0, split = 0;
    (void)state;
    struct seed_range seeds = seeds_of("PLACINGS", N_GRAPHS);
    for (int k = 0; k < seeds.n; k++) {
        uint64_t r = seeds.first + (uint64_t)k;
        struct placed_graph p;
        char text[2048], cluster[256];
        int n, memory[3];
        draw_graph(&r, text, sizeof text, &n);
        for (int i = 0; i < 3; i++)
            memory[i] = 2000 + below(&r, 30000);
        snprintf(cluster, sizeof cluster,
                 "%sdevice w:0 CPU memory=%d\ndevice w:0 GPU:0 memory=%d\n"
                 "device w:0 GPU:1 memory=%d\n",
                 CARDS, memory[0], memory[1], memory[2]);
        open_graph(&p, cluster, "op Neg 1e4 CPU\nop Abs 1e4 CPU\n", text);
        if (place_graph(p.graph, &p.options, &p.err)) {
            assert_non_null(strstr(p.err.text, "the graph does not fit"));
            refused++;
            finish(&p);
            continue;
        }
        placed++;
        for (int i = 0; i < 3; i++) {
            const struct place_device *device = &p.placement.devices.items[i];
            assert_int_equal(device->memory_bytes, memory[i]);
            assert_true(least_need(&p, device->text) <= memory[i]);
        }
        split += p.result.one_device > p.result.makespan;
        finish(&p);
    }
    assert_true(seeds.given || (placed > seeds.n / 4 && refused > 0 && split > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_is_worth_its_bus),
        cmocka_unit_test(a_bus_carries_one_tensor_at_a_time),
        cmocka_unit_test(rates_are_as_they_are_said),
        cmocka_unit_test(what_was_measured_tells_of_the_rest),
        cmocka_unit_test(what_is_too_much_goes_elsewhere),
        cmocka_unit_test(what_fits_nowhere_is_refused),
        cmocka_unit_test(no_device_gets_more_than_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
