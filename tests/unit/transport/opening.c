/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests for a session or an update while its graph is read: each gets one reply, and a driver
 * that is gone leaves nothing behind.
 */
#include "lib/cluster.h"

#include "base/container_of.h"
#include "base/time.h"
#include "lib/chain.h"

#define PATIENCE 30.0 /* seconds */
#define NODES 20000   /* they take some 25 ms to read */

struct asking_conns {
    struct conns *conns;
    struct peer *shard;
};

struct asked_once {
    struct call call;
    int n_replies;
    int64_t sessions;
    struct error why;
};

static bool is_linked(void *context)
{
    struct asking_conns *asking = context;
    asking->shard = conns_peer(asking->conns, "ps:0");
    return asking->shard != NULL;
}

static struct asking_conns dial(const struct test_cluster *c, const char *task)
{
    struct error err = ERROR_INIT;
    struct asking_conns asking = {.conns = test_conns(c, task, 0)};
    assert_int_equal(peers_connect(conns_peers(asking.conns), "ps:0", "unix:p0", PATIENCE, &err),
                     0);
    assert_true(loop_run_until(conns_loop(asking.conns), is_linked, &asking, PATIENCE));
    return asking;
}

static void hang_up(struct asking_conns *asking)
{
    peer_release(asking->shard);
    conns_free(asking->conns);
}

static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct asked_once *asked = CONTAINER_OF(call, struct asked_once, call);
    asked->n_replies++;
    if (failure)
        asked->why = *failure;
    else
        record_get_int(&reply->header, "sessions", &asked->sessions);
}

static void ask(struct asking_conns *asking, struct asked_once *asked, const char *verb,
                int n_fields, const struct named_tensor *bytes)
{
    *asked = (struct asked_once){.call = {.replied = replied}};
    msgpack_packer *packer =
        conns_call_begin(asking->conns, asking->shard, verb, n_fields, &asked->call);
    assert_non_null(packer);
    if (n_fields) {
        pack_key(packer, "session");
        msgpack_pack_uint64(packer, 7);
    }
    conns_call(asking->conns, &asked->call, bytes, bytes != NULL);
}

static bool is_answered(void *context)
{
    return ((struct asked_once *)context)->n_replies > 0;
}

static void wait_for(struct asking_conns *asking, struct asked_once *asked)
{
    assert_true(loop_run_until(conns_loop(asking->conns), is_answered, asked, PATIENCE));
    assert_int_equal(asked->n_replies, 1);
}

static void expect(struct asking_conns *asking, struct asked_once *asked, const char *why)
{
    wait_for(asking, asked);
    if (!*why ? asked->why.code : !strstr(asked->why.text, why))
        fail_msg("expected '%s' in: %s", why, asked->why.text);
}

static int64_t sessions(struct asking_conns *asking)
{
    struct asked_once info;
    ask(asking, &info, "info", 0, NULL);
    expect(asking, &info, "");
    return info.sessions;
}

struct lab {
    struct test_cluster cluster;
    struct graph *graph;
    struct stream_writer *writer;
    struct named_tensor bytes;
    struct asking_conns asking;
};

static void lab_open(struct lab *lab)
{
    *lab = (struct lab){.graph = chain_new(NODES)};
    lab->writer = chain_write(lab->graph, &lab->bytes);
    test_cluster_start(&lab->cluster, 1, 0);
    lab->asking = dial(&lab->cluster, "worker:1");
}

static void lab_close(struct lab *lab)
{
    hang_up(&lab->asking);
    test_cluster_stop(&lab->cluster);
    stream_writer_free(lab->writer);
    graph_free(lab->graph);
}

static void a_driver_that_is_gone_leaves_no_session_behind(void **state)
{
    (void)state;
    struct lab lab;
    struct asked_once opening;
    lab_open(&lab);
    struct asking_conns driver = dial(&lab.cluster, "worker:2");
    ask(&driver, &opening, "open", 1, &lab.bytes);
    double end = time_now() + PATIENCE;
    while (!sessions(&lab.asking) && time_now() < end)
        loop_run_until(conns_loop(driver.conns), is_answered, &opening, 0.001);
    assert_int_equal(sessions(&lab.asking), 1);
    hang_up(&driver);
    assert_int_equal(opening.n_replies, 1);
    while (sessions(&lab.asking) && time_now() < end)
        usleep(1000);
    assert_int_equal(sessions(&lab.asking), 0);
    lab_close(&lab);
}

/* Meanwhile other requests for the number are refused, or, if they come late enough, done. */
static void a_number_is_that_of_one_session(void **state)
{
    (void)state;
    struct lab lab;
    struct asked_once opening, early, again, closing;
    lab_open(&lab);
    ask(&lab.asking, &opening, "open", 1, &lab.bytes);
    ask(&lab.asking, &early, "cancel", 1, NULL);
    ask(&lab.asking, &again, "open", 1, &lab.bytes);
    wait_for(&lab.asking, &early);
    expect(&lab.asking, &opening, "");
    expect(&lab.asking, &again, "there is a session of that number");
    ask(&lab.asking, &closing, "close", 1, NULL);
    expect(&lab.asking, &closing, "");
    assert_int_equal(sessions(&lab.asking), 0);
    lab_close(&lab);
}

static void all_who_ask_for_a_broken_update_are_told(void **state)
{
    (void)state;
    struct lab lab;
    struct asked_once asked[3];
    lab_open(&lab);
    ((char *)lab.bytes.tensor.data)[tensor_bytes(&lab.bytes.tensor) / 2] ^= 1;
    for (int i = 0; i < 3; i++)
        ask(&lab.asking, &asked[i], "update", 0, &lab.bytes);
    for (int i = 0; i < 3; i++)
        expect(&lab.asking, &asked[i], "the graph of an update");
    lab_close(&lab);
}

static void a_shard_ends_while_graphs_are_read(void **state)
{
    (void)state;
    struct lab lab;
    struct asked_once opening, update;
    lab_open(&lab);
    ask(&lab.asking, &update, "update", 0, &lab.bytes);
    ask(&lab.asking, &opening, "open", 1, &lab.bytes);
    while (!sessions(&lab.asking))
        ;
    test_shard_stop(&lab.cluster.shards[0]);
    wait_for(&lab.asking, &opening);
    wait_for(&lab.asking, &update);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_that_is_gone_leaves_no_session_behind),
        cmocka_unit_test(a_number_is_that_of_one_session),
        cmocka_unit_test(all_who_ask_for_a_broken_update_are_told),
        cmocka_unit_test(a_shard_ends_while_graphs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
