/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of random nests of conditionals and loops whose statements are pinned to two to four
 * tasks: placed, cut and run over links, they equal those on one device, bit for bit.
 * GRADIENT_TASKS is how many programs (default 200), GRADIENT_TASKS_SEED the first one's seed.
 */
#include "lib/cluster.h"

#include "lib/cut.h"
#include "lib/nest_script.h"
#include "lib/scripts.h"
#include "pass/place/place.h"

#define N_VALUES 3 /* y, and its gradients */

struct pin {
    uint64_t seed;
    int n_tasks;
    struct graph *graph;
    struct cut_graph cut;
};

static void fail_at(const struct pin *p, const char *what)
{
    fail_msg("GRADIENT_TASKS_SEED=%llu, on %d tasks: %s", (unsigned long long)p->seed, p->n_tasks,
             what);
}

static void make(struct pin *p)
{
    struct error err = ERROR_INIT;
    struct script_options options = {.seed = (int64_t)p->seed};
    char seed[32], tasks[32];
    snprintf(seed, sizeof seed, "seed=%llu", (unsigned long long)p->seed);
    snprintf(tasks, sizeof tasks, "tasks=%d", p->n_tasks);
    p->graph = scripts_try(nest_script, (const char *[]){seed, tasks, NULL}, &options, &err);
    if (!p->graph && strstr(err.text, "does not look at")) /* it has no simple statement */
        p->graph = scripts_try(nest_script, (const char *[]){seed, NULL}, &options, &err);
    if (!p->graph)
        fail_at(p, err.text);
}

/* Nodes that are not pinned are placed at random, within their constraints. */
static void place(struct pin *p)
{
    static const char *const devices[] = {
        "/job:worker/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0",
        "/job:ps/task:1/device:CPU:0", "/job:ps/task:2/device:CPU:0"};
    struct placement placement = {0};
    struct error err = ERROR_INIT;
    for (int i = 0; i < p->n_tasks; i++)
        assert_int_equal(placement_add(&placement, devices[i], &err), 0);
    uint64_t state = p->seed;
    for (size_t i = 0; i < p->graph->nodes.n; i++)
        graph_set_assigned(p->graph, graph_node(p->graph, (int)i),
                           devices[unit_random(&state) % (uint64_t)p->n_tasks]);
    struct place_options options = {.placement = &placement, .kernels = ops_kernels()};
    if (place_graph(p->graph, &options, &err))
        fail_at(p, err.text);
    placement_release(&placement);
}

/* The program's feeds, and the names of its results. */
struct wanted {
    double x, w[N_W];
    struct tensor feeds[2], values[N_VALUES];
};

static void wanted_init(struct wanted *wanted, uint64_t seed)
{
    struct shape shape = shape_vector(N_W);
    *wanted = (struct wanted){.x = (double)(unit_random(&seed) % 4000) / 1000 - 2};
    for (int i = 0; i < N_W; i++)
        wanted->w[i] = (double)(unit_random(&seed) % 3000) / 1000 - 1.5;
    wanted->feeds[0] = tensor_borrow(FLOAT64, &SHAPE_SCALAR, &wanted->x);
    wanted->feeds[1] = tensor_borrow(FLOAT64, &shape, wanted->w);
}

static void wanted_release(struct wanted *wanted)
{
    for (int i = 0; i < N_VALUES; i++)
        tensor_release(&wanted->values[i]);
}

struct named_edges {
    struct edge feeds[2], fetches[N_VALUES];
};

static struct plan_request call_of(const struct graph *graph, const struct wanted *wanted,
                                   struct named_edges *edges)
{
    static const char *const fed[] = {"x", "w"}, *const fetched[] = {"y", "gx", "gw"};
    struct error err = ERROR_INIT;
    for (int i = 0; i < 2; i++)
        assert_int_equal(graph_parse_edge(graph, fed[i], &edges->feeds[i], &err), 0);
    for (int i = 0; i < N_VALUES; i++)
        assert_int_equal(graph_parse_edge(graph, fetched[i], &edges->fetches[i], &err), 0);
    return (struct plan_request){.feeds = edges->feeds,
                                 .feed_values = wanted->feeds,
                                 .n_feeds = 2,
                                 .fetches = edges->fetches,
                                 .n_fetches = N_VALUES};
}

static void run_whole(struct pin *p, struct wanted *wanted)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    struct named_edges edges;
    struct step step = {.number = 1};
    if (!device)
        device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = device, .threads = 1}};
    struct session *session = session_new(p->graph, &options);
    struct plan_request call = call_of(p->graph, wanted, &edges);
    if (session_run(session, &call, &step, wanted->values, &err))
        fail_at(p, err.text);
    session_free(session);
}

static void run_parts(struct pin *p, struct test_cluster *cluster, struct wanted *wanted)
{
    struct error err = ERROR_INIT;
    struct named_edges edges;
    struct step step = {.number = 1};
    struct driver_session *session = test_session(cluster, p->cut.joined);
    struct plan_request call = call_of(p->cut.joined, wanted, &edges);
    if (driver_session_run(session, &call, &step, wanted->values, &err))
        fail_at(p, err.text);
    driver_session_close(session);
}

static int count_stacks(const struct graph *graph)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n += node_is(graph_node(graph, (int)i), "Stack");
    return n;
}

static int check_program(struct test_cluster *cluster, uint64_t seed)
{
    struct pin p = {.seed = seed, .n_tasks = 2 + (int)(seed % 3)};
    struct wanted whole, parts;
    make(&p);
    place(&p);
    cut_open(&p.cut, p.graph);
    wanted_init(&whole, seed);
    wanted_init(&parts, seed);
    run_whole(&p, &whole);
    run_parts(&p, cluster, &parts);
    for (int i = 0; i < N_VALUES; i++)
        if (!same_bits(&whole.values[i], &parts.values[i]))
            fail_at(&p, "other values");
    int n_stacks = count_stacks(p.graph);
    wanted_release(&whole);
    wanted_release(&parts);
    cut_close(&p.cut);
    graph_free(p.graph);
    return n_stacks > 0;
}

static void tasks_compute_what_one_device_does(void **state)
{
    const char *count = getenv("GRADIENT_TASKS"), *first = getenv("GRADIENT_TASKS_SEED");
    int n = count ? atoi(count) : 200, n_with_stacks = 0;
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
    struct test_cluster cluster = {0};
    (void)state;
    test_cluster_start(&cluster, TEST_SHARDS, 0);
    for (int i = 0; i < n; i++)
        n_with_stacks += check_program(&cluster, seed + (uint64_t)i);
    test_cluster_stop(&cluster);
    assert_true(first || n_with_stacks > n / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_compute_what_one_device_does)};
    return cmocka_run_group_tests_name("grad_tasks", tests, NULL, NULL);
}
