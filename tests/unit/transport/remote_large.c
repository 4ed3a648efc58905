/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that stay in memory that the tasks share: such values never change while they are in use,
 * whatever uses them. More urgent values overtake others that are being sent.
 */
#include "lib/cluster.h"

#include "lib/cut.h"

#define LARGE 500000 /* elements */

/* There and back, and then added; `read` is the variable's earlier value. */
/* clang-format off */
static const char give_back[] =
    "n = Const() {dtype=int32, value=[500000]}" ON("ps/task:0")
    "one = Const() {dtype=float32, value=1}" ON("ps/task:0")
    "ones = Fill(n, one)" ON("ps/task:0")
    "v = Variable() {dtype=float32, shape=[500000]}" ON("ps/task:0")
    "set = Assign(v, ones)" ON("ps/task:0")
    "pulled = Identity(v)" ON("ps/task:0")
    "read = Identity(pulled)" ON("worker/task:0")
    "minus = Neg(pulled)" ON("worker/task:0")
    "other = Add(minus, pulled)" ON("worker/task:0")
    "add = AssignAdd(v, read)" ON("ps/task:0");
/* clang-format on */

static void run(struct driver_session *session, struct plan_request *call, int number,
                struct tensor *values)
{
    struct error err = ERROR_INIT;
    struct step step = {.number = number};
    if (driver_session_run(session, call, &step, values, &err))
        fail_msg("%s", err.text);
}

static void all_are(const struct tensor *t, float value)
{
    assert_int_equal(tensor_count(t), LARGE);
    for (int i = 0; i < LARGE; i++)
        if (((const float *)t->data)[i] != value)
            fail_msg("element %d is %g, not %g", i, (double)((const float *)t->data)[i],
                     (double)value);
}

static void count_shared(void *context, struct link *link)
{
    struct link_stats stats = link_stats(link);
    *(uint64_t *)context += stats.shared_in + stats.shared_out;
}

/* A received value stays the same while the variable changes and other kernels compute. */
static void give_large_values_back(const size_t limits[2], bool shares)
{
    enum { STEPS = 8 };
    struct test_cluster own = {.segment_bytes = {limits[0], limits[1]}};
    struct tensor values[STEPS][2], ignored;
    uint64_t shared = 0;
    struct cut_graph cut;
    struct graph *whole;
    test_cluster_start(&own, 1, 0);
    const struct graph *graph = cut_parse(&cut, &whole, give_back);
    struct driver_session *session = test_session(&own, graph);
    int set = graph_find(graph, "set")->id, add = graph_find(graph, "add")->id;
    struct edge fetches[] = {{graph_find(graph, "read")->id, 0},
                             {graph_find(graph, "other")->id, 0}};
    struct plan_request init = {.targets = &set, .n_targets = 1};
    struct plan_request call = {
        .targets = &add, .n_targets = 1, .fetches = fetches, .n_fetches = 2};
    run(session, &init, 1, &ignored);
    for (int i = 0; i < STEPS; i++)
        run(session, &call, 2 + i, values[i]);
    peers_each(conns_peers(own.conns), count_shared, &shared);
    assert_int_equal(shared, shares ? 2 * STEPS * LARGE * sizeof(float) : 0);
    for (int i = 0; i < STEPS; i++) {
        all_are(&values[i][0], (float)(1 << i));
        all_are(&values[i][1], 0);
        tensor_release(&values[i][0]);
        tensor_release(&values[i][1]);
    }
    driver_session_close(session);
    cut_close(&cut);
    graph_free(whole);
    test_cluster_stop(&own);
}

static void large_values_stay_where_they_are(void **state)
{
    (void)state;
    give_large_values_back((const size_t[2]){0, 0}, true);
}

/* The worker has no room for any, or the shard can make none: they are sent. */
static void without_room_large_values_are_sent(void **state)
{
    (void)state;
    give_large_values_back((const size_t[2]){1, 0}, false);
    give_large_values_back((const size_t[2]){0, 1}, false);
}

/* Each is more urgent than those before it, and made in a quarter of the time, so that at any speed
 * of the two ends one is ready while an earlier one is under way. */
/* clang-format off */
static const char in_a_hurry[] =
    "n = Const() {dtype=int32, value=[4096000]}" ON("ps/task:0")
    "one = Const() {dtype=float32, value=1}" ON("ps/task:0")
    "zero = Const() {dtype=int32, value=[0]}" ON("ps/task:0")
    "nb = Const() {dtype=int32, value=[1024000]}" ON("ps/task:0")
    "nc = Const() {dtype=int32, value=[256000]}" ON("ps/task:0")
    "nd = Const() {dtype=int32, value=[64000]}" ON("ps/task:0")
    "ne = Const() {dtype=int32, value=[16000]}" ON("ps/task:0")
    "a = Fill(n, one) {_priority=5}" ON("ps/task:0")
    "b = Slice(a, zero, nb) {_priority=4}" ON("ps/task:0")
    "c = Slice(b, zero, nc) {_priority=3}" ON("ps/task:0")
    "d = Slice(c, zero, nd) {_priority=2}" ON("ps/task:0")
    "e = Slice(d, zero, ne) {_priority=1}" ON("ps/task:0")
    "axis = Const() {dtype=int32, value=0}" ON("worker/task:0")
    "all = Concat(axis, a, b, c, d, e)" ON("worker/task:0");
/* clang-format on */

#define IN_A_HURRY (4096000 + 1024000 + 256000 + 64000 + 16000) /* elements of `all` */

static void count_nested(void *context, struct link *link)
{
    *(uint64_t *)context += link_stats(link).nested_in;
}

static void what_is_urgent_overtakes(void **state)
{
    (void)state;
    struct test_cluster own = {.segment_bytes = {1, 0}};
    struct cut_graph cut;
    struct graph *whole;
    uint64_t nested = 0;
    test_cluster_start(&own, 1, 0);
    const struct graph *graph = cut_parse(&cut, &whole, in_a_hurry);
    struct driver_session *session = test_session(&own, graph);
    struct edge fetch = {graph_find(graph, "all")->id, 0};
    struct plan_request call = {.fetches = &fetch, .n_fetches = 1};
    for (int i = 0; i < 50 && !nested; i++) { /* a busy machine may need several attempts */
        struct tensor all;
        run(session, &call, i + 1, &all);
        assert_int_equal(tensor_count(&all), IN_A_HURRY);
        for (int k = 0; k < IN_A_HURRY; k++)
            assert_true(((const float *)all.data)[k] == 1);
        tensor_release(&all);
        peers_each(conns_peers(own.conns), count_nested, &nested);
    }
    assert_true(nested > 0);
    driver_session_close(session);
    cut_close(&cut);
    graph_free(whole);
    test_cluster_stop(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_values_stay_where_they_are),
        cmocka_unit_test(without_room_large_values_are_sent),
        cmocka_unit_test(what_is_urgent_overtakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
