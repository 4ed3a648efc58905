/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs over several tasks compute the same as in one, bit for bit: random graphs, and values
 * beyond a link's credit. REMOTE is how many random graphs (default 150), REMOTE_SEED the first
 * one's seed.
 */
#include "base/memory.h"
#include "lib/cluster.h"

#include "exec/run/divide.h"
#include "graph/join.h"
#include "graph/task.h"
#include "lib/cut.h"
#include "lib/random_graph.h"

#define NODES_MAX 40

static struct test_cluster cluster;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_cluster_stop(&cluster);
    return 0;
}

/* Like cut_place, on tasks. */
static void place(struct graph *graph, uint64_t seed)
{
    static const char *const tasks[] = {"worker/task:0", "ps/task:0", "ps/task:1", "ps/task:2"};
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        char name[64];
        const char *task = tasks[unit_random(&seed) % 4];
        if (cut_has_resource(graph, node))
            task = tasks[0];
        snprintf(name, sizeof name, "/job:%s/device:CPU:0", task);
        graph_set_assigned(graph, node, name);
        for (int k = 0; k < node->n_inputs && cut_is_joined(node); k++) {
            const struct node *from = graph_node(graph, node->inputs[k].node);
            if (from->outputs[node->inputs[k].slot].is_ref)
                graph_set_assigned(graph, node, from->assigned);
        }
    }
}

static int run_whole(const struct graph *graph, struct edge fetch, struct tensor *value,
                     struct error *err)
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = cut_devices()[0], .threads = 1}};
    struct session *session = session_new(graph, &options);
    struct step step = {.number = 1};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    int code = session_run(session, &call, &step, value, err);
    session_free(session);
    return code;
}

/* A handle is valid in one process only; and a variable without a value may serve for its shape, if
 * that is known at plan time. */
static bool may_differ(const struct error *err)
{
    return strstr(err->text, "'resource' is not carried") || strstr(err->text, "not initialized");
}

static bool check_fetch(struct driver_session *session, const struct graph *graph,
                        const struct cut_graph *cut, struct edge edge, uint64_t seed)
{
    struct error err = ERROR_INIT, cut_err = ERROR_INIT;
    struct tensor whole = TENSOR_INIT, parts = TENSOR_INIT;
    struct step step = {.number = 1};
    struct edge fetch = cut_edge(cut, graph, edge);
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    int code = run_whole(graph, edge, &whole, &err);
    int cut_code = driver_session_run(session, &call, &step, &parts, &cut_err);
    const char *name = graph_node(graph, edge.node)->name;
    if (may_differ(&err) || may_differ(&cut_err))
        code = cut_code = err.code ? err.code : cut_err.code;
    if (code != cut_code)
        fail_msg("REMOTE_SEED=%llu: %s: %s / %s", (unsigned long long)seed, name, err.text,
                 cut_err.text);
    if (!code && !same_bits(&whole, &parts))
        fail_msg("REMOTE_SEED=%llu: %s: other values", (unsigned long long)seed, name);
    tensor_release(&whole);
    tensor_release(&parts);
    return !code;
}

static int check_random(uint64_t seed)
{
    struct graph *graph =
        random_graph(ops_registry(), seed, 2 + (int)(seed % NODES_MAX), OP_SOURCE, true);
    struct cut_graph cut;
    int n = 0, n_values = 0;
    place(graph, seed);
    cut_open(&cut, graph);
    struct driver_session *session = test_session(&cluster, cut.joined);
    for (size_t i = 0; i < graph->nodes.n && n < 3; i++) {
        const struct node *node = graph_node(graph, (int)(graph->nodes.n - 1 - i));
        if (node->n_outputs && !node->outputs[0].is_ref && node->n_inputs) {
            n_values += check_fetch(session, graph, &cut, (struct edge){node->id, 0}, seed);
            n++;
        }
    }
    driver_session_close(session);
    for (int i = 0; i < cluster.n; i++)
        test_shard_forget(&cluster.shards[i]);
    cut_close(&cut);
    graph_free(graph);
    return n_values;
}

static void random_graphs_compute_the_same(void **state)
{
    const char *count = getenv("REMOTE"), *first = getenv("REMOTE_SEED");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
    int n = 0;
    (void)state;
    for (int i = 0; i < (count ? atoi(count) : 150); i++)
        n += check_random(seed + (uint64_t)i);
    assert_true(first || count || n > 75);
}

/* ---- dividing ---- */

static void a_task_gets_its_nodes_alone(void **state)
{
    struct cut_graph cut;
    struct graph *whole, *own, *closure;
    struct task_table table = {0};
    struct error err = ERROR_INIT;
    (void)state;
    const struct graph *graph =
        cut_parse(&cut, &whole,
                  "x = Placeholder() {dtype=float32, shape=[]}" ON("ps/task:0") "y = Neg(x)" ON(
                      "worker/task:*") "z = Abs(y)" ON("ps/task:1") "w = Neg(z)" ON("ps/task:1"));
    assert_int_equal(task_instance(cut.joined, "worker", 4, &err), 0);
    assert_int_equal(task_table_fill(&table, graph, &err), 0);
    assert_int_equal(table.names.n, 3);
    assert_string_equal(table.names.items[1], "worker:4");
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        if (node_is(node, "Send") || node_is(node, "Recv")) {
            assert_null(strchr(node_string(node, "send_device"), '*'));
            assert_null(strchr(node_string(node, "recv_device"), '*'));
        }
    }
    assert_int_equal(task_graph(graph, &table, 2, &own, &err), 0);
    assert_int_equal(own->nodes.n, 3); /* Recv, z, w */
    assert_non_null(graph_find(own, "w"));
    graph_free(own);
    struct edge fetch = {graph_find(graph, "z")->id, 0};
    closure = task_closure(graph, &fetch, 1);
    assert_int_equal(closure->nodes.n, 7); /* all but w */
    graph_free(closure);
    struct share shares[3] = {0};
    struct plan_request request = {.fetches = &fetch, .n_fetches = 1};
    request_divide(graph, &request, table.of_node, shares);
    assert_int_equal(shares[0].targets.n, 1); /* the Send of x */
    assert_int_equal(shares[1].targets.n, 1);
    assert_int_equal(shares[2].targets.n, 0);
    assert_int_equal(shares[2].fetches.n, 1);
    int send = shares[0].targets.items[0];
    for (int i = 0; i < 3; i++)
        share_release(&shares[i]);
    request.targets = &send;
    request.n_targets = 1;
    request_divide(graph, &request, table.of_node, shares);
    assert_int_equal(shares[0].targets.n, 1); /* not twice */
    for (int i = 0; i < 3; i++)
        share_release(&shares[i]);
    task_table_release(&table);
    cut_close(&cut);
    graph_free(whole);
}

static void task_names_are_read(void **state)
{
    static const char *const good[] = {"ps:0", "/job:ps/task:0"};
    static const char *const bad[] = {"",      "ps",      "ps:",     "ps:x",
                                      ":0",    "ps:0:0/", "/job:ps", "/job:ps/task:0/device:CPU:0",
                                      "ps:-1", "ps:*"};
    struct error err = ERROR_INIT;
    char job[DEVICE_WORD_BYTES];
    int index;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(task_parse(good[i], job, &index, &err), 0);
        assert_string_equal(job, "ps");
        assert_int_equal(index, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(task_parse(bad[i], job, &index, &err), ERR_USAGE);
}

/* ---- credit ---- */

/* Each way 40 tensors of 64 KiB cross a link whose window is 256 KiB, all at once. */
static void values_beyond_the_credit_are_announced(void **state)
{
    struct test_cluster small = {0};
    struct str text = STR_INIT;
    struct cut_graph cut;
    struct graph *whole;
    struct error err = ERROR_INIT;
    (void)state;
    test_cluster_start(&small, 1, 256 << 10);
    str_printf(&text, "n = Const() {dtype=int32, value=[16384]}" ON("worker/task:0"));
    for (int i = 0; i < 40; i++)
        str_printf(&text,
                   "c%d = Const() {dtype=float32, value=%d}" ON(
                       "worker/task:0") "x%d = Fill(n, "
                                        "c%d)" ON("worker/task:0") "y%d = Neg(x%d)" ON(
                                            "ps/task:0") "z%d = Abs(y%d)" ON("worker/task:0"),
                   i, i, i, i, i, i, i, i);
    str_printf(&text, "all = AddN(z0");
    for (int i = 1; i < 40; i++)
        str_printf(&text, ", z%d", i);
    str_printf(&text, ")" ON("worker/task:0"));
    const struct graph *graph = cut_parse(&cut, &whole, str_text(&text));
    struct driver_session *session = test_session(&small, graph);
    struct edge fetch = {graph_find(graph, "all")->id, 0};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    for (int i = 1; i <= 50; i++) {
        struct step step = {.number = i};
        struct tensor value = TENSOR_INIT;
        if (driver_session_run(session, &call, &step, &value, &err))
            fail_msg("%s", err.text);
        assert_true(tensor_get_float64(&value, 16383) == 39 * 40 / 2);
        tensor_release(&value);
    }
    driver_session_close(session);
    cut_close(&cut);
    graph_free(whole);
    str_release(&text);
    test_cluster_stop(&small);
}

/* ---- many ---- */

#define MANY 100

static void a_hundred_sessions_at_once(void **state)
{
    static const char text[] =
        "x = Placeholder() {dtype=float32, shape=[]}" ON("worker/task:0") "a = Neg(x)" ON(
            "ps/task:0") "b = Square(a)" ON("ps/task:1") "y = Add(a, b)" ON("worker/task:0");
    struct driver_session *sessions[MANY];
    struct graph *whole;
    struct cut_graph cut;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(graph_parse_text(text, strlen(text), "test", ops_registry(), &whole, &err), 0);
    cut_open(&cut, whole);
    for (int i = 0; i < MANY; i++)
        sessions[i] = test_session(&cluster, cut.joined);
    struct edge feed = {graph_find(cut.joined, "x")->id, 0};
    struct edge fetch = {graph_find(cut.joined, "y")->id, 0};
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < MANY; i++) {
            float x = (float)i;
            struct shape scalar = {.rank = 0};
            struct tensor value = tensor_borrow(FLOAT32, &scalar, &x), result = TENSOR_INIT;
            struct step step = {.number = round};
            struct plan_request call = {.feeds = &feed,
                                        .feed_values = &value,
                                        .n_feeds = 1,
                                        .fetches = &fetch,
                                        .n_fetches = 1};
            if (driver_session_run(sessions[i], &call, &step, &result, &err))
                fail_msg("%s", err.text);
            assert_true(tensor_get_float64(&result, 0) == (double)(i * i - i));
            tensor_release(&result);
        }
    }
    for (int i = 0; i < MANY; i++)
        driver_session_close(sessions[i]);
    cut_close(&cut);
    graph_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_names_are_read),
        cmocka_unit_test(a_task_gets_its_nodes_alone),
        cmocka_unit_test_setup_teardown(random_graphs_compute_the_same, start, stop),
        cmocka_unit_test_setup_teardown(a_hundred_sessions_at_once, start, stop),
        cmocka_unit_test(values_beyond_the_credit_are_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
