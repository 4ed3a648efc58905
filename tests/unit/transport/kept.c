/* SPDX-License-Identifier: Apache-2.0
 *
 * A value that a step sends to another process, or reduces with others, is the variable's from
 * before a later write: small and large, in shared memory and outside it, sent at once and after a
 * wait at the sender.
 */
#include "lib/cluster.h"

#include "lib/members.h"

#define STEPS 6

static const int sizes[] = {3, 300000};

static void all_are(const struct tensor *t, double value)
{
    for (int64_t i = 0; i < tensor_count(t); i++)
        if (tensor_get_float64(t, i) != value)
            fail_msg("element %d of %d is %g, not %g", (int)i, (int)tensor_count(t),
                     tensor_get_float64(t, i), value);
}

/* ---- Send ---- */

#define PS "/job:ps/task:0/device:CPU:0"
#define WORKER "/job:worker/task:0/device:CPU:0"
#define ENDS(name) "tensor_name=\"" name "\", send_device=\"" PS "\", recv_device=\"" WORKER "\"} @"

/* clang-format off */
/* The worker uses the value once it has heard that the write is over. */
static const char sending[] =
    "n = Const() {dtype=int32, value=[%d]}" ON("ps/task:0")
    "one = Const() {dtype=float32, value=1}" ON("ps/task:0")
    "ones = Fill(n, one)" ON("ps/task:0")
    "v = Variable() {dtype=float32, shape=[%d]}" ON("ps/task:0")
    "set = Assign(v, ones)" ON("ps/task:0")
    "send = Send(v) {" ENDS("v") PS "\n"
    "add = AssignAdd(v, ones, ^send)" ON("ps/task:0")
    "over = Send(one, ^add) {" ENDS("over") PS "\n"
    "heard = Recv() {tensor_type=float32, shape=[], " ENDS("over") WORKER "\n"
    "received = Recv(^heard) {tensor_type=float32, " ENDS("v") WORKER "\n";
/* clang-format on */

static struct graph *parse(const char *format, int n)
{
    struct error err = ERROR_INIT;
    struct str text = STR_INIT;
    struct graph *graph;
    str_printf(&text, format, n, n);
    if (graph_parse_text(str_text(&text), text.n, "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    str_release(&text);
    return graph;
}

static void send_and_write(int n, size_t segment_bytes, uint64_t window)
{
    struct test_cluster c = {.segment_bytes = {segment_bytes, segment_bytes}};
    struct graph *graph = parse(sending, n);
    struct error err = ERROR_INIT;
    test_cluster_start(&c, 1, window);
    struct driver_session *session = test_session(&c, graph);
    int set = graph_find(graph, "set")->id;
    struct edge fetch = {graph_find(graph, "received")->id, 0};
    for (int i = 0; i <= STEPS; i++) {
        struct plan_request call = {
            .targets = &set, .n_targets = i ? 0 : 1, .fetches = &fetch, .n_fetches = i ? 1 : 0};
        struct step step = {.number = i + 1};
        struct tensor value = TENSOR_INIT;
        if (driver_session_run(session, &call, &step, &value, &err))
            fail_msg("%s", err.text);
        all_are(&value, i);
        tensor_release(&value);
    }
    driver_session_close(session);
    graph_free(graph);
    test_cluster_stop(&c);
}

static void what_was_sent_stays(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (size_t limit = 0; limit < 2; limit++) {
            send_and_write(sizes[i], limit, 0);
            send_and_write(sizes[i], limit,
                           256); /* less than any value, so the value waits for a grant */
        }
}

/* ---- AllReduce ---- */

static const char reducing[] = "n = Const() {dtype=int32, value=[%d]}\n"
                               "one = Const() {dtype=float32, value=1}\n"
                               "ones = Fill(n, one)\n"
                               "v = Variable() {dtype=float32, shape=[%d]}\n"
                               "set = Assign(v, ones)\n"
                               "read = Identity(v)\n"
                               "sums = AllReduce(v, read) {reductions=[\"first\", \"sum\"]}\n"
                               "add = AssignAdd(v, ones, ^sums)\n"
                               "first = Identity(sums:0, ^add)\n"
                               "sum = Identity(sums:1, ^add)\n";

struct reducer {
    struct member_end *end;
    struct graph *graph;
    bool dynamic;
    pthread_t thread;
};

static struct device *device(void)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    if (!device)
        device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    return device;
}

/* In each step each member adds one to its variable, which is one in all at first. */
static void *reduce_and_write(void *argument)
{
    struct reducer *r = argument;
    struct error err = ERROR_INIT;
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = device(),
                                               .outgoing = conns_outgoing(r->end->conns),
                                               .cut = r->dynamic ? CUT_REGIONS : CUT_WHOLE,
                                               .threads = 1}};
    struct session *session = session_new(r->graph, &options);
    int set = graph_find(r->graph, "set")->id;
    struct edge fetches[] = {{graph_find(r->graph, "first")->id, 0},
                             {graph_find(r->graph, "sum")->id, 0}};
    for (int i = 0; i <= STEPS; i++) {
        struct plan_request call = {
            .targets = &set, .n_targets = i ? 0 : 1, .fetches = fetches, .n_fetches = i ? 2 : 0};
        struct step step = {.number = i, .collective = r->end->collective};
        struct tensor values[2] = {TENSOR_INIT, TENSOR_INIT};
        if (session_run(session, &call, &step, values, &err))
            fail_msg("%s", err.text);
        all_are(&values[0], i);
        all_are(&values[1], i * r->end->all->n);
        tensor_release(&values[0]);
        tensor_release(&values[1]);
    }
    session_free(session);
    return NULL;
}

static void reduce_among(int n_members, int n_shared, int n, bool dynamic)
{
    struct members all;
    struct reducer reducers[MEMBERS_MAX];
    struct graph *graph = parse(reducing, n);
    device();
    members_start_some_shared(&all, n_members, n_shared);
    for (int k = 0; k < n_members; k++) {
        reducers[k] = (struct reducer){&all.ends[k], graph, dynamic, 0};
        assert_int_equal(pthread_create(&reducers[k].thread, NULL, reduce_and_write, &reducers[k]),
                         0);
    }
    for (int k = 0; k < n_members; k++)
        pthread_join(reducers[k].thread, NULL);
    members_stop(&all);
    graph_free(graph);
}

static void what_was_reduced_stays(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int n_shared = 0; n_shared <= 3; n_shared += 3)
            for (int dynamic = 0; dynamic < 2; dynamic++)
                reduce_among(3, n_shared, sizes[i], dynamic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_stays),
        cmocka_unit_test(what_was_reduced_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
