/* SPDX-License-Identifier: Apache-2.0 */
#include <semaphore.h>

#include "lib/shards.h"
#include "ps/shard_private.h"
#include "show/shards.h"

struct gathered {
    const struct shard_view *view;
    bool json;
    const struct client *client;
    struct str rows[SHARDS];
    int64_t step;
    struct tensor value;
};

static void gather(void *context, const char *task, const struct record *reply)
{
    struct gathered *g = context;
    int i = client_task_index(g->client, task);
    if (g->view)
        shard_view_add(g->view, g->json, task, &reply->header, &g->rows[i]);
    record_get_int(&reply->header, "step", &g->step);
    if (reply->n_tensors)
        tensor_share(&g->value, &reply->tensors[0].tensor);
}

/* Sends one request, from a client of its own. */
static int ask(const char *task, struct task_request *request, struct gathered *g,
               struct error *err)
{
    struct client client;
    open_client(&client, task);
    g->client = &client;
    request->answered = gather;
    if (!request->context)
        request->context = g;
    int code = client_ask(&client, request, err);
    client_close(&client);
    return code;
}

static void assert_view(const char *name, bool json, const char *wanted)
{
    struct gathered g = {.view = shard_view_find(name), .json = json};
    struct task_request request = {.verb = shard_view_verb(g.view)};
    struct error err = ERROR_INIT;
    struct str all = STR_INIT, out = STR_INIT;
    if (ask(NULL, &request, &g, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < SHARDS; i++) {
        str_append_bytes(&all, str_text(&g.rows[i]), g.rows[i].n);
        str_release(&g.rows[i]);
    }
    if (json)
        str_append(&out, str_text(&all));
    else
        shard_view_print(g.view, &all, &out);
    assert_string_equal(str_text(&out), wanted);
    str_release(&all);
    str_release(&out);
}

static void all_shards_list_in_order(void **unused)
{
    (void)unused;
    shards_start(0);
    assert_view("list", false,
                "TASK  CONTAINER  NAME  TYPE     UPDATES\n"
                "ps:0  default    v     int64[]  1\n"
                "ps:0  scratch    s     int64[]  1\n"
                "ps:1  default    w     int64[]  1\n");
    assert_view("key", false,
                "TASK  NAME  UPDATES  SIZE\n"
                "ps:0  v     1        8 B\n"
                "ps:0  s     1        8 B\n"
                "ps:1  w     1        8 B\n");
    assert_view("list", true,
                "{\"task\":\"ps:0\",\"container\":\"default\",\"name\":\"v\",\"type\":\"int64[]\","
                "\"initialized\":true,\"updates\":1,\"bytes\":8}\n"
                "{\"task\":\"ps:0\",\"container\":\"scratch\",\"name\":\"s\",\"type\":\"int64[]\","
                "\"initialized\":true,\"updates\":1,\"bytes\":8}\n"
                "{\"task\":\"ps:1\",\"container\":\"default\",\"name\":\"w\",\"type\":\"int64[]\","
                "\"initialized\":true,\"updates\":1,\"bytes\":8}\n");
    assert_view("worker", false,
                "WORKER  CLOCK  BEHIND  WAITED  PUSHED  LATE  DROPPED  DUPLICATE  SEEN\n");
    shards_end();
}

static void pack_name(void *context, msgpack_packer *packer)
{
    (void)context;
    pack_key(packer, "container");
    pack_text(packer, "default");
    pack_key(packer, "name");
    pack_text(packer, "v");
}

static void pack_container(void *context, msgpack_packer *packer)
{
    pack_key(packer, "container");
    pack_text(packer, context);
}

static void a_value_goes_there_and_back(void **unused)
{
    (void)unused;
    struct gathered g = {0};
    struct error err = ERROR_INIT;
    int64_t number = 7;
    struct shape scalar = {.rank = 0};
    struct named_tensor seven = {"v", tensor_borrow(INT64, &scalar, &number)};
    struct task_request get_v = {.verb = "get", .n_fields = 2, .pack = pack_name};
    struct task_request put_v = {
        .verb = "put", .n_fields = 2, .pack = pack_name, .tensors = &seven, .n_tensors = 1};
    shards_start(0);
    assert_int_equal(ask("ps:0", &put_v, &g, &err), 0);
    assert_int_equal(get(&servers[0], "v"), 7);
    get_v.context = NULL;
    assert_int_equal(ask("ps:0", &get_v, &g, &err), 0);
    assert_int_equal(*(int64_t *)g.value.data, 7);
    tensor_release(&g.value);
    unit_assert_error(ask("ps:1", &get_v, &g, &err), err, ERR_NOINPUT,
                      "ps:1: no variable 'v' in container 'default'");
    error_clear(&err);
    put_v.n_tensors = 0;
    unit_assert_error(ask("ps:0", &put_v, &g, &err), err, ERR_PROTOCOL,
                      "ps:0: a request to put needs one tensor");
    shards_end();
}

static void a_container_is_reset(void **unused)
{
    (void)unused;
    struct gathered g = {0};
    struct error err = ERROR_INIT;
    static char scratch[] = "scratch";
    struct task_request reset = {
        .verb = "reset", .n_fields = 1, .pack = pack_container, .fields = scratch};
    struct client client;
    shards_start(0);
    open_client(&client, "ps:0");
    assert_int_equal(client_ask(&client, &reset, &err), 0);
    client_close(&client);
    assert_false(has_value(&servers[0], "scratch", "s"));
    assert_int_equal(get(&servers[0], "v"), 1);
    (void)g;
    shards_end();
}

/* A server that lost another task itself, and reports it in the client's words or in its own. */
static void reply_loss(void *context, const struct query *query)
{
    struct error err = ERROR_INIT;
    int64_t waited = 0;
    (void)context;
    record_get_int(&query->record->header, "waited", &waited);
    error_set(&err, ERR_UNAVAILABLE, "'waiting for me': lost");
    if (waited)
        error_waited(&err, "'w'");
    reply_error(query->peer, query->id, &err);
}

static void pack_waited(void *context, msgpack_packer *packer)
{
    pack_key(packer, "waited");
    msgpack_pack_int(packer, *(int *)context);
}

static void add_lossy_verb(void *argument)
{
    conns_verb(argument, "lose", reply_loss, NULL);
}

static void what_was_waited_for_is_said_once(void **unused)
{
    (void)unused;
    struct gathered g = {0};
    struct error err = ERROR_INIT;
    int waited = 0;
    struct task_request lose = {
        .verb = "lose", .n_fields = 1, .pack = pack_waited, .about = "'v'", .fields = &waited};
    shards_start(0);
    loop_post(conns_loop(servers[0].conns), add_lossy_verb, servers[0].conns);
    unit_assert_error(ask("ps:0", &lose, &g, &err), err, ERR_UNAVAILABLE,
                      "ps:0: 'waiting for me': lost, waiting for 'v'");
    assert_int_equal(err.reason, ERROR_WAITED);
    waited = 1;
    error_clear(&err);
    unit_assert_error(ask("ps:0", &lose, &g, &err), err, ERR_UNAVAILABLE,
                      "ps:0: 'waiting for me': lost, waiting for 'w'");
    assert_int_equal(err.reason, ERROR_WAITED);
    shards_end();
}

static void who_does_not_reply_is_named(void **unused)
{
    (void)unused;
    struct gathered g = {0};
    struct error err = ERROR_INIT;
    struct client client;
    struct task_request get_v = {.verb = "get",
                                 .n_fields = 2,
                                 .pack = pack_name,
                                 .about = "'v'",
                                 .answered = gather,
                                 .context = &g};
    shards_start(0);
    struct variable *v = variable_store_find(servers[0].store, "default", "v");
    variable_lock_wait(v, true);
    open_client(&client, "ps:0");
    client.member.options.timeout = 0.2;
    assert_int_equal(client_ask(&client, &get_v, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ps:0 at unix:ps-0, incarnation "));
    assert_non_null(strstr(err.text, ": no answer in 0.2 s, waiting for 'v'"));
    client_close(&client);
    variable_unlock(v, true);
    struct task_request unknown = {.verb = "dance"};
    unit_assert_error(ask("ps:0", &unknown, &g, &err), err, ERR_PROTOCOL,
                      "ps:0: does not know the request 'dance'");
    shards_end();
}

/* Fields of wrong types, and tensors that do not belong there. */
static void pack_nonsense(void *context, msgpack_packer *packer)
{
    uint64_t *random = context;
    static const char *const names[] = {"container", "name", "folder", "step", "seconds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pack_key(packer, names[i]);
        switch (unit_random(random) % 7) {
        case 0:
            msgpack_pack_int64(packer, (int64_t)unit_random(random));
            break;
        case 1:
            msgpack_pack_double(packer, unit_random(random) & 1 ? -1e300 : 0.0 / 0.0);
            break;
        case 2:
            msgpack_pack_nil(packer);
            break;
        case 3:
            msgpack_pack_array(packer, 1);
            msgpack_pack_true(packer);
            break;
        case 4:
            pack_text(packer, "");
            break;
        case 5:
            pack_text(packer, "../../../dev/null/there");
            break;
        default:
            pack_text(packer, "default");
        }
    }
}

static void nonsense_is_answered_and_changes_nothing(void **unused)
{
    (void)unused;
    static const char *const verbs[] = {"list", "get",     "put",    "reset", "snapshot", "keep",
                                        "save", "restore", "status", "stats", "origin"};
    uint64_t random = 1;
    struct gathered g = {0};
    int64_t number = 7;
    struct shape scalar = {.rank = 0};
    struct named_tensor tensors[] = {{"v", tensor_borrow(INT64, &scalar, &number)},
                                     {"w", tensor_borrow(INT64, &scalar, &number)}};
    struct client client;
    shards_start(0);
    open_client(&client, NULL);
    for (int i = 0; i < 300; i++) {
        struct error err = ERROR_INIT;
        struct task_request request = {.verb = verbs[unit_random(&random) % 11],
                                       .n_fields = 5,
                                       .pack = pack_nonsense,
                                       .tensors = tensors,
                                       .n_tensors = 2,
                                       .fields = &random};
        client_ask(&client, &request, &err);
        /* shards that each lead a save wait for each other */
        bool led = err.code == ERR_UNAVAILABLE && !strcmp(request.verb, "save");
        if (err.code && !led && err.code != ERR_PROTOCOL && err.code != ERR_NOINPUT &&
            err.code != ERR_DENIED && err.code != ERR_IO && err.code != ERR_RETRY &&
            err.code != ERR_DATA && err.code != ERR_CONFIG)
            fail_msg("%s: %s", request.verb, err.text);
    }
    client_close(&client);
    struct task_request status = {.verb = "status"};
    struct error err = ERROR_INIT;
    assert_int_equal(ask(NULL, &status, &g, &err), 0);
    shards_end();
}

/* As transport/session/serve.c ends: the loop runs on for a while. */
static void close_shard(void *context)
{
    struct test_server *server = context;
    struct error why = ERROR_INIT;
    error_set(&why, ERR_UNAVAILABLE, "it ends");
    conns_refuse(server->conns, &why);
    shard_free(server->shard);
    server->shard = NULL;
}

static void who_asks_a_shard_that_ends_is_told_so(void **unused)
{
    (void)unused;
    static const char *const verbs[] = {"stats", "status", "list", "stop"};
    shards_start(0);
    loop_post(conns_loop(servers[0].conns), close_shard, &servers[0]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct gathered g = {0};
        struct task_request request = {.verb = verbs[i]};
        struct error err = ERROR_INIT;
        assert_int_equal(ask("ps:0", &request, &g, &err), ERR_UNAVAILABLE);
        assert_non_null(strstr(err.text, "ps:0"));
        assert_non_null(strstr(err.text, "it ends"));
    }
    shards_end();
}

static void wait_for_post(void *argument)
{
    sem_wait(argument);
}

static void *find_others(void *argument)
{
    struct shard_others others = {0};
    struct error err = ERROR_INIT;
    struct test_server *server = argument;
    bool found = !shard_find_others(server->shard, &others, 30, &err);
    shard_others_release(&others);
    return found ? "found" : NULL;
}

/* The loop gets to the dial only after the queue has given up. */
static void a_shard_that_ends_dials_nobody(void **unused)
{
    (void)unused;
    pthread_t queue;
    sem_t go_on;
    void *found;
    shards_start(0);
    sem_init(&go_on, 0, 0);
    struct shard *shard = servers[0].shard;
    struct loop *loop = conns_loop(servers[0].conns);
    loop_post(loop, wait_for_post, &go_on);
    assert_int_equal(pthread_create(&queue, NULL, find_others, &servers[0]), 0);
    usleep(100000); /* most likely until it has asked the loop */
    atomic_store(&shard->ends, true);
    pthread_join(queue, &found);
    assert_null(found);
    sem_post(&go_on);
    usleep(100000); /* longer than a dial takes */
    assert_null(conns_peer(servers[0].conns, "ps:1"));
    shards_end();
    sem_destroy(&go_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shards_list_in_order),
        cmocka_unit_test(a_value_goes_there_and_back),
        cmocka_unit_test(a_container_is_reset),
        cmocka_unit_test(what_was_waited_for_is_said_once),
        cmocka_unit_test(who_does_not_reply_is_named),
        cmocka_unit_test(nonsense_is_answered_and_changes_nothing),
        cmocka_unit_test(who_asks_a_shard_that_ends_is_told_so),
        cmocka_unit_test(a_shard_that_ends_dials_nobody),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
