/* SPDX-License-Identifier: Apache-2.0
 *
 * The serving side of sessions: requests that are wrong in every way that a peer with the key could
 * send, steps that never end, drivers that vanish.
 */
#include "lib/cluster.h"

#include "graph/graph_io.h"

static struct test_cluster cluster;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 2, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test_cluster_stop(&cluster);
    return 0;
}

/* ---- raw requests ---- */

struct ask {
    struct call call; /* must be first */
    bool done;
    struct error err;
    int64_t number; /* of the reply's field "handle", "sessions" or "steps" */
};

static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct ask *ask = (struct ask *)call;
    ask->done = true;
    if (failure)
        ask->err = *failure;
    else if (!record_get_int(&reply->header, "handle", &ask->number))
        record_get_int(&reply->header, "sessions", &ask->number);
}

static bool is_done(void *context)
{
    return ((struct ask *)context)->done;
}

static bool is_linked(void *context)
{
    struct peer *peer = conns_peer(context, "ps:0");
    peer_release(peer);
    return peer != NULL;
}

static struct peer *shard(struct conns *conns)
{
    struct error err = ERROR_INIT;
    assert_int_equal(peers_connect(conns_peers(conns), "ps:0", "unix:p0", 10, &err), 0);
    assert_true(loop_run_until(conns_loop(conns), is_linked, conns, 10));
    return conns_peer(conns, "ps:0");
}

/* A field of a request: its name, and a number or a text, or names in a list separated by blanks.
 */
struct field {
    const char *name, *text, *list;
    uint64_t number;
};

static void pack(msgpack_packer *packer, const struct field *field)
{
    struct str words = STR_INIT;
    pack_key(packer, field->name);
    if (field->text) {
        pack_text(packer, field->text);
    } else if (field->list) {
        int n = *field->list ? 1 : 0;
        for (const char *c = field->list; *c; c++)
            n += *c == ' ';
        msgpack_pack_array(packer, (size_t)n);
        str_append(&words, field->list);
        char *rest = words.data, *word;
        while (n-- > 0 && (word = strsep(&rest, " ")))
            pack_text(packer, word);
    } else {
        msgpack_pack_uint64(packer, field->number);
    }
    str_release(&words);
}

/* Sends a request and waits; returns the code, 0 if all is well. */
static int ask(struct conns *conns, struct ask *a, const char *verb, const struct field *fields,
               const struct tensor *tensor)
{
    struct peer *peer = shard(conns);
    struct named_tensor named = {.name = ""};
    int n = 0;
    *a = (struct ask){.call = {.replied = replied}};
    while (fields[n].name)
        n++;
    msgpack_packer *packer = conns_call_begin(conns, peer, verb, n, &a->call);
    assert_non_null(packer);
    for (int i = 0; i < n; i++)
        pack(packer, &fields[i]);
    if (tensor)
        named.tensor = *tensor;
    conns_call(conns, &a->call, &named, tensor != NULL);
    assert_true(loop_run_until(conns_loop(conns), is_done, a, 20));
    peer_release(peer);
    return a->err.code;
}

#define ASK(conns, a, verb, tensor, ...)                                                           \
    ask(conns, a, verb, (const struct field[]){__VA_ARGS__, {.name = NULL}}, tensor)

static int64_t n_sessions(struct conns *conns)
{
    struct ask a;
    return ASK(conns, &a, "info", NULL, {"_", .text = ""}) ? -1 : a.number;
}

/* ---- graphs ---- */

/* A graph as the bytes that `open` takes. */
static struct stream_writer *graph_bytes(const char *text, struct tensor *bytes)
{
    struct graph *graph;
    struct error err = ERROR_INIT;
    size_t n;
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &graph, &err))
        fail_msg("%s", err.text);
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    assert_int_equal(graph_write(writer, graph, &err), 0);
    assert_int_equal(stream_finish(writer, &err), 0);
    graph_free(graph);
    const void *data = stream_writer_bytes(writer, &n);
    struct shape shape = shape_vector((int64_t)n);
    *bytes = tensor_borrow(UINT8, &shape, (void *)(uintptr_t)data);
    return writer;
}

static int open_graph(struct conns *conns, struct ask *a, uint64_t session, const char *text)
{
    struct tensor bytes;
    struct stream_writer *writer = graph_bytes(text, &bytes);
    int code = ASK(conns, a, "open", &bytes, {"session", .number = session});
    stream_writer_free(writer);
    return code;
}

#define SMALL                                                                                      \
    "x = Placeholder() {dtype=float32, shape=[2]}" ON("ps/task:0") "y = Neg(x)" ON("ps/task:0")

#define WAITS(worker)                                                                              \
    "r = Recv() {tensor_type=float32, tensor_name=\"s\", send_device=\"/job:worker/task:" worker   \
    "/device:CPU:0\", recv_device=\"/job:ps/task:0/device:CPU:0\", shape=[2]}" ON(                 \
        "ps/task:0") "y = Neg(r)" ON("ps/task:0")

/* ---- tests ---- */

static void sessions_that_cannot_be_opened(void **state)
{
    struct conns *conns = cluster.conns;
    struct ask a;
    uint8_t junk[4096];
    uint64_t seed = 1;
    (void)state;
    struct shape shape = shape_vector(sizeof junk);
    struct tensor bytes = tensor_borrow(UINT8, &shape, junk);
    for (int i = 0; i < 50; i++) {
        for (size_t k = 0; k < sizeof junk; k++)
            junk[k] = (uint8_t)unit_random(&seed);
        assert_int_not_equal(ASK(conns, &a, "open", &bytes, {"session", .number = 7}), 0);
    }
    assert_int_equal(ASK(conns, &a, "open", NULL, {"session", .number = 7}), ERR_PROTOCOL);
    assert_int_equal(open_graph(conns, &a, 0, SMALL), ERR_PROTOCOL);
    assert_int_equal(
        open_graph(conns, &a, 7, "x = Const() {dtype=float32, value=1}" ON("ps/task:1")),
        ERR_CONFIG);
    assert_string_equal(a.err.text, "ps:0: the graph is not that of ps:0 alone");
    assert_int_equal(open_graph(conns, &a, 7, "x = Const() {dtype=float32, value=1}\n"),
                     ERR_CONFIG);
    assert_int_equal(open_graph(conns, &a, 7, SMALL), 0);
    assert_int_equal(open_graph(conns, &a, 7, SMALL), ERR_PROTOCOL); /* twice */
    assert_int_equal(n_sessions(conns), 1);
    struct field session = {"session", .number = 7};
    assert_int_equal(ASK(conns, &a, "close", NULL, session), 0);
    assert_int_equal(ASK(conns, &a, "close", NULL, session), ERR_PROTOCOL);
    assert_int_equal(ASK(conns, &a, "no such verb", NULL, {"session", .number = 7}), ERR_PROTOCOL);
    assert_int_equal(n_sessions(conns), 0);
}

static void requests_that_cannot_be_registered(void **state)
{
    struct conns *conns = cluster.conns;
    struct ask a;
    (void)state;
    assert_int_equal(open_graph(conns, &a, 8, SMALL), 0);
    struct field session = {"session", .number = 8};
    assert_int_equal(ASK(conns, &a, "register", NULL, session), ERR_PROTOCOL);
    assert_int_equal(ASK(conns, &a, "register", NULL, session, {"feeds", .text = "x"}),
                     ERR_PROTOCOL);
#define REGISTER(f, g, t)                                                                          \
    ASK(conns, &a, "register", NULL, session, {"feeds", .list = f}, {"fetches", .list = g},        \
        {"targets", .list = t})
    assert_int_equal(REGISTER("nobody", "y", ""), ERR_DATA);
    assert_int_equal(REGISTER("x", "y:7", ""), ERR_DATA);
    assert_int_equal(REGISTER("x", "^y", ""), ERR_PROTOCOL);
    assert_int_equal(REGISTER("^x", "y", ""), ERR_PROTOCOL);
    assert_int_equal(REGISTER("x", "y", "^nobody"), ERR_DATA);
    for (int i = 0; i < SERVER_HANDLES_MAX; i++)
        assert_int_equal(REGISTER("x", "y", "^y"), 0);
    assert_int_equal(REGISTER("x", "y", ""), ERR_PROTOCOL);
    assert_int_equal(ASK(conns, &a, "close", NULL, session), 0);
}

#define STEP(conns, a, tensor, session_, handle_, step_)                                           \
    ASK(conns, a, "step", tensor, {"session", .number = session_}, {"handle", .number = handle_},  \
        {"step", .number = step_}, {"number", .number = 1}, {"seed", .number = 0},                 \
        {"replica", .number = 0}, {"incarnation", .number = 1})

static void steps_that_cannot_be_run(void **state)
{
    struct conns *conns = cluster.conns;
    struct ask a;
    float data[3] = {1, 2, 3};
    (void)state;
    struct shape two = shape_vector(2), three = shape_vector(3);
    struct tensor good = tensor_borrow(FLOAT32, &two, data);
    struct tensor long_one = tensor_borrow(FLOAT32, &three, data);
    struct tensor wrong = tensor_borrow(INT32, &two, data);
    assert_int_equal(open_graph(conns, &a, 9, SMALL), 0);
    assert_int_equal(ASK(conns, &a, "register", NULL, {"session", .number = 9},
                         {"feeds", .list = "x"}, {"fetches", .list = "y"}, {"targets", .list = ""}),
                     0);
    assert_int_equal(a.number, 0);
    assert_int_equal(STEP(conns, &a, &good, 9, 0, 5), 0);
    assert_int_equal(STEP(conns, &a, &good, 9, 0, 5), ERR_PROTOCOL);          /* again */
    assert_int_equal(STEP(conns, &a, &good, 9, 0, 4), ERR_PROTOCOL);          /* before it */
    assert_int_equal(STEP(conns, &a, &good, 9, UINT64_MAX, 6), ERR_PROTOCOL); /* no such handle */
    assert_int_equal(STEP(conns, &a, &good, 10, 0, 6), ERR_PROTOCOL);         /* no such session */
    assert_int_equal(STEP(conns, &a, NULL, 9, 0, 6), ERR_PROTOCOL);           /* no feed */
    assert_int_equal(STEP(conns, &a, &long_one, 9, 0, 6), ERR_DATA);
    assert_int_equal(STEP(conns, &a, &wrong, 9, 0, 6), ERR_DATA);
    assert_int_equal(ASK(conns, &a, "step", &good, {"session", .number = 9}), ERR_PROTOCOL);
    assert_int_equal(
        ASK(conns, &a, "cancel", NULL, {"session", .number = 9}, {"step", .number = 77}), 0);
    assert_int_equal(ASK(conns, &a, "read", NULL, {"session", .number = 9}, {"name", .text = "y"}),
                     ERR_PROTOCOL);
    assert_int_equal(STEP(conns, &a, &good, 9, 0, 6), 0); /* a valid step still runs */
    assert_int_equal(ASK(conns, &a, "close", NULL, {"session", .number = 9}), 0);
}

/* ---- steps that wait ---- */

static void begin_step(struct conns *conns, struct ask *a, uint64_t session, uint64_t step)
{
    struct peer *peer = shard(conns);
    *a = (struct ask){.call = {.replied = replied}};
    msgpack_packer *packer = conns_call_begin(conns, peer, "step", 7, &a->call);
    const struct field fields[] = {{"session", .number = session}, {"handle", .number = 0},
                                   {"step", .number = step},       {"number", .number = 1},
                                   {"seed", .number = 0},          {"replica", .number = 0},
                                   {"incarnation", .number = 1}};
    for (int i = 0; i < 7; i++)
        pack(packer, &fields[i]);
    conns_call(conns, &a->call, NULL, 0);
    peer_release(peer);
}

static void open_waiting(struct conns *conns, uint64_t session, const char *graph)
{
    struct ask a;
    if (open_graph(conns, &a, session, graph))
        fail_msg("%s", a.err.text);
    assert_int_equal(ASK(conns, &a, "register", NULL, {"session", .number = session},
                         {"feeds", .list = ""}, {"fetches", .list = "y"}, {"targets", .list = ""}),
                     0);
}

static void send_value(struct conns *conns, uint64_t session, uint64_t step, const char *key,
                       const struct tensor *value)
{
    struct error err = ERROR_INIT;
    struct peer *peer = shard(conns);
    assert_int_equal(flow_send(peer, &(struct value_id){session, step, key, 0, 0}, value, &err), 0);
    peer_release(peer);
}

static void values_come_before_or_after_their_step(void **state)
{
    struct conns *conns = cluster.conns;
    struct ask a;
    float data[2] = {1, 2};
    (void)state;
    struct shape two = shape_vector(2);
    struct tensor value = tensor_borrow(FLOAT32, &two, data);
    open_waiting(conns, 20, WAITS("0"));
    send_value(conns, 20, 1, "s", &value); /* early */
    begin_step(conns, &a, 20, 1);
    assert_true(loop_run_until(conns_loop(conns), is_done, &a, 10));
    assert_int_equal(a.err.code, 0);
    begin_step(conns, &a, 20, 2);
    assert_false(loop_run_until(conns_loop(conns), is_done, &a, 0.05));
    send_value(conns, 20, 2, "s", &value);
    assert_true(loop_run_until(conns_loop(conns), is_done, &a, 10));
    assert_int_equal(a.err.code, 0);
    send_value(conns, 20, 1, "s", &value); /* late: dropped */
    send_value(conns, 99, 1, "s", &value); /* of no session: dropped */
    assert_int_equal(n_sessions(conns), 1);
    assert_int_equal(ASK(conns, &a, "close", NULL, {"session", .number = 20}), 0);
}

static void a_step_that_waits_is_cancelled_with_its_reason(void **state)
{
    struct conns *conns = cluster.conns;
    struct ask a, cancel;
    (void)state;
    open_waiting(conns, 21, WAITS("0"));
    begin_step(conns, &a, 21, 1);
    assert_int_equal(ASK(conns, &cancel, "cancel", NULL, {"session", .number = 21},
                         {"step", .number = 1}, {"code", .number = 69},
                         {"text", .text = "ps:9 burns"}),
                     0);
    assert_true(loop_run_until(conns_loop(conns), is_done, &a, 10));
    unit_assert_error(a.err.code, a.err, ERR_UNAVAILABLE, "ps:0: ps:9 burns");
    begin_step(conns, &a, 21, 2);
    assert_int_equal(ASK(conns, &cancel, "close", NULL, {"session", .number = 21}), 0);
    assert_true(loop_run_until(conns_loop(conns), is_done, &a, 10));
    assert_int_equal(a.err.code, ERR_CANCELLED);
    assert_int_equal(n_sessions(conns), 0);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void assert_all_sessions_end(void)
{
    for (int i = 0; i < 100 && n_sessions(cluster.conns); i++)
        loop_run_until(conns_loop(cluster.conns), never, NULL, 0.02);
    assert_int_equal(n_sessions(cluster.conns), 0);
}

/* Each of these ends the link, and with it the session; the shard continues. */
static void a_peer_that_breaks_the_rules_is_left(void **state)
{
    float data[3] = {1, 2, 3};
    (void)state;
    struct shape two = shape_vector(2), three = shape_vector(3);
    struct tensor good = tensor_borrow(FLOAT32, &two, data);
    struct tensor wrong[] = {tensor_borrow(FLOAT32, &three, data),
                             tensor_borrow(INT32, &two, data)};
    for (int i = 0; i < 5; i++) {
        struct conns *conns = test_conns(&cluster, "worker:7", 0);
        struct ask a;
        struct error err = ERROR_INIT;
        uint64_t session = 30 + (uint64_t)i; /* a new one, as the last may still be ending */
        open_waiting(conns, session, WAITS("7"));
        begin_step(conns, &a, session, 1);
        if (i < 2)
            send_value(conns, session, 1, "s", &wrong[i]);
        if (i == 2)
            send_value(conns, session, 1, "t", &good); /* no node receives it */
        if (i == 3) {
            send_value(conns, session, 2, "s", &good);
            send_value(conns, session, 2, "s", &good); /* twice */
        }
        if (i == 4) { /* a grant of a value not announced */
            struct peer *peer = shard(conns);
            msgpack_packer *packer = peer_begin(peer, RECORD_GRANT, 1, &err);
            pack_key(packer, "bytes");
            msgpack_pack_uint64(packer, 1);
            assert_int_equal(peer_end(peer, NULL, 0, &err), 0);
            peer_release(peer);
        }
        assert_true(loop_run_until(conns_loop(conns), is_done, &a, 10));
        assert_int_equal(a.err.code, ERR_PROTOCOL);
        conns_free(conns);
    }
    assert_all_sessions_end();
}

static void a_driver_that_vanishes_takes_its_sessions_along(void **state)
{
    struct conns *conns = test_conns(&cluster, "worker:5", 0);
    struct ask a;
    (void)state;
    assert_int_equal(open_graph(conns, &a, 40, SMALL), 0);
    conns_free(conns);
    assert_all_sessions_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_that_cannot_be_opened),
        cmocka_unit_test(requests_that_cannot_be_registered),
        cmocka_unit_test(steps_that_cannot_be_run),
        cmocka_unit_test(values_come_before_or_after_their_step),
        cmocka_unit_test(a_step_that_waits_is_cancelled_with_its_reason),
        cmocka_unit_test(a_driver_that_vanishes_takes_its_sessions_along),
        cmocka_unit_test(a_peer_that_breaks_the_rules_is_left),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
