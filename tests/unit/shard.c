/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards that run in threads of the test, and a client that asks them over Unix sockets.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "exec/aggregate.h"
#include "lib/unit.h"
#include "ps/client.h"
#include "ps/containers.h"
#include "ps/saves.h"
#include "ps/shard.h"
#include "ps/snapshot.h"
#include "show/shards.h"

#define SHARDS 2

static const char cluster_text[] = "task ps:0 unix:ps-0\ntask ps:1 unix:ps-1\n";

struct server {
    char task[16];
    struct hub *hub;
    struct variable_store *store;
    struct shard *shard;
    pthread_t thread;
    char told[512];
};

static struct server servers[SHARDS];
static char folder[64];

static int find_cluster(void *context, struct cluster *cluster, struct error *err)
{
    (void)context;
    return cluster_parse(cluster, cluster_text, "test", err);
}

static void tell(void *context, const char *line)
{
    struct server *server = context;
    snprintf(server->told, sizeof server->told, "%s", line);
}

static void *run(void *argument)
{
    struct server *server = argument;
    struct error err = ERROR_INIT;
    loop_run(hub_loop(server->hub), &err);
    return NULL;
}

static void start(struct server *server, int i, int64_t save_every)
{
    struct error err = ERROR_INIT;
    char address[32];
    snprintf(server->task, sizeof server->task, "ps:%d", i);
    snprintf(address, sizeof address, "unix:ps-%d", i);
    struct hub_options hub = {.peers = {.task = server->task, .producer = "test"}};
    server->hub = hub_new(&hub, &err);
    assert_non_null(server->hub);
    if (!server->store)
        server->store = variable_store_new();
    struct shard_options options = {.hub = server->hub,
                                    .task = server->task,
                                    .variables = server->store,
                                    .context = server,
                                    .find_cluster = find_cluster,
                                    .tell = tell,
                                    .save_folder = "ckpt",
                                    .save_every = save_every};
    server->shard = shard_new(&options);
    assert_int_equal(peers_listen(hub_peers(server->hub), address, NULL, &err), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
}

static void end(struct server *server)
{
    loop_stop(hub_loop(server->hub));
    pthread_join(server->thread, NULL);
    shard_free(server->shard);
    hub_free(server->hub);
    server->hub = NULL;
}

static int64_t put(struct server *server, const char *container, const char *name, int64_t value)
{
    struct error err = ERROR_INIT;
    struct variable like = {.container = container, .name = name, .type = INT64}, *variable;
    struct tensor t = tensor_borrow(INT64, &like.shape, &value);
    assert_int_equal(variable_store_get(server->store, &like, &variable, &err), 0);
    assert_int_equal(containers_put(server->store, container, name, 1, &t, &err), 0);
    return value;
}

static int64_t get(struct server *server, const char *name)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    if (containers_get(server->store, "default", name, 1, &t, &err))
        fail_msg("%s", err.text);
    int64_t value = *(int64_t *)t.data;
    tensor_release(&t);
    return value;
}

static void set_up(int64_t save_every)
{
    FILE *file;
    snprintf(folder, sizeof folder, "/tmp/tf-shard-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_non_null(file = fopen("cluster", "w"));
    fputs(cluster_text, file);
    fclose(file);
    for (int i = 0; i < SHARDS; i++)
        start(&servers[i], i, save_every);
    put(&servers[0], "default", "v", 1);
    put(&servers[0], "scratch", "s", 2);
    put(&servers[1], "default", "w", 3);
}

static void clean_up(void)
{
    char command[128];
    for (int i = 0; i < SHARDS; i++) {
        if (servers[i].hub)
            end(&servers[i]);
        variable_store_free(servers[i].store);
        servers[i] = (struct server){0};
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(chdir("/") | system(command), 0);
}

/* ---- asking ---- */

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

static void open_client(struct client *client, const char *task)
{
    struct error err = ERROR_INIT;
    struct client_options options = {.cluster_path = "cluster", .task = task, .timeout = 5};
    if (client_open(client, &options, &err))
        fail_msg("%s", err.text);
}

/* One request of a client of its own. */
static int ask(const char *task, struct request *request, struct gathered *g, struct error *err)
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
    struct request request = {.verb = shard_view_verb(g.view)};
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
    set_up(0);
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
    clean_up();
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
    struct request get_v = {.verb = "get", .n_fields = 2, .pack = pack_name};
    struct request put_v = {
        .verb = "put", .n_fields = 2, .pack = pack_name, .tensors = &seven, .n_tensors = 1};
    set_up(0);
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
    clean_up();
}

static void a_container_is_reset(void **unused)
{
    (void)unused;
    struct gathered g = {0};
    struct error err = ERROR_INIT;
    static char scratch[] = "scratch";
    struct request reset = {
        .verb = "reset", .n_fields = 1, .pack = pack_container, .context = scratch};
    struct client client;
    set_up(0);
    open_client(&client, "ps:0");
    assert_int_equal(client_ask(&client, &reset, &err), 0);
    client_close(&client);
    assert_false(variable_store_find(servers[0].store, "scratch", "s")->initialized);
    assert_int_equal(get(&servers[0], "v"), 1);
    (void)g;
    clean_up();
}

static void who_does_not_answer_is_named(void **unused)
{
    (void)unused;
    struct gathered g = {0};
    struct error err = ERROR_INIT;
    struct client client;
    struct request get_v = {.verb = "get",
                            .n_fields = 2,
                            .pack = pack_name,
                            .about = "'v'",
                            .answered = gather,
                            .context = &g};
    set_up(0);
    struct variable *v = variable_store_find(servers[0].store, "default", "v");
    variable_hold_wait(v, true);
    open_client(&client, "ps:0");
    client.options.timeout = 0.2;
    assert_int_equal(client_ask(&client, &get_v, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ps:0 at unix:ps-0, incarnation "));
    assert_non_null(strstr(err.text, ": no answer in 0.2 s, waiting for 'v'"));
    client_close(&client);
    variable_unhold(v, true);
    struct request unknown = {.verb = "dance"};
    unit_assert_error(ask("ps:0", &unknown, &g, &err), err, ERR_PROTOCOL,
                      "ps:0: does not know the request 'dance'");
    clean_up();
}

/* ---- checkpoints ---- */

static void pack_folder(void *context, msgpack_packer *packer)
{
    pack_key(packer, "folder");
    pack_text(packer, context);
    pack_key(packer, "seconds");
    msgpack_pack_double(packer, 0.5);
}

static void all_shards_are_saved_and_taken_back(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct client client;
    static char here[] = "saved";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    struct request restore = save;
    restore.verb = "restore";
    set_up(0);
    open_client(&client, NULL);
    for (int i = 0; i < 2; i++)
        if (client_ask_first(&client, &save, &err))
            fail_msg("%s", err.text);
    assert_true(!access("saved/1/manifest", F_OK) && !access("saved/2/manifest", F_OK));
    put(&servers[0], "default", "v", 100);
    put(&servers[1], "default", "w", 100);
    put(&servers[1], "default", "new", 100);
    if (client_ask(&client, &restore, &err))
        fail_msg("%s", err.text);
    assert_int_equal(get(&servers[0], "v"), 1);
    assert_int_equal(get(&servers[1], "w"), 3);
    assert_false(variable_store_find(servers[1].store, "default", "new")->initialized);
    assert_string_equal(servers[1].told, "restored from saved@2");
    client_close(&client);
    clean_up();
}

static void a_shard_that_is_gone_stops_a_save_and_spoils_nothing(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct manifest manifest = {0};
    struct client client;
    char *path;
    static char here[] = "saved";
    struct request save = {.verb = "save", .n_fields = 2, .pack = pack_folder, .context = here};
    set_up(0);
    open_client(&client, "ps:0");
    assert_int_equal(client_ask_first(&client, &save, &err), 0);
    end(&servers[1]);
    client.options.timeout = 20;
    assert_int_equal(client_ask_first(&client, &save, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ps:1"));
    assert_int_equal(saves_find("saved", -1, NULL, &manifest, &path, &err), 0);
    assert_int_equal(manifest.step, 1);
    assert_int_equal(manifest.files.n, SHARDS);
    mem_free(path);
    manifest_release(&manifest);
    assert_int_not_equal(access("saved/2.part", F_OK), 0);
    client_close(&client);
    clean_up();
}

/* ---- a clock that ticks by itself ---- */

struct ticker {
    struct clock *clock;
    struct clock_waiter waiter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int64_t version;
};

static void done(struct clock_waiter *waiter, const struct clock_result *result,
                 const struct error *failure)
{
    struct ticker *t = (struct ticker *)((char *)waiter - offsetof(struct ticker, waiter));
    assert_null(failure);
    pthread_mutex_lock(&t->lock);
    t->done = true;
    t->version = result->version;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void await(struct ticker *t)
{
    pthread_mutex_lock(&t->lock);
    while (!t->done)
        pthread_cond_wait(&t->changed, &t->lock);
    t->done = false;
    pthread_mutex_unlock(&t->lock);
}

/* One asynchronous worker: a push, then the round that it makes. v is the number of rounds. */
static void tick(struct ticker *t, struct ticker *rounds, int64_t step)
{
    struct error err = ERROR_INIT;
    struct push_id id = {0, 1, step};
    clock_push(t->clock, &id, step - 1, &t->waiter);
    clock_round(t->clock, &rounds->waiter);
    await(rounds);
    assert_int_equal(rounds->version, step);
    put(&servers[0], "default", "v", step);
    put(&servers[1], "default", "w", step);
    assert_int_equal(clock_advance(t->clock, step, &err), 0);
    await(t);
}

static void checkpoints_are_made_at_their_very_update(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct ticker t = {.waiter.done = done,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    set_up(10);
    t.clock = resource_get(servers[0].store, &clock_kind, "default", "clock");
    assert_int_equal(clock_configure(t.clock, "async", 1, &err), 0);
    struct ticker rounds = t;
    struct push_id id = {0, 1, 0};
    clock_join(t.clock, &id, &t.waiter);
    await(&t);
    usleep(100000); /* until the shard has seen that there is a clock */
    for (int64_t step = 1; step <= 35; step++) {
        char path[32];
        tick(&t, &rounds, step);
        snprintf(path, sizeof path, "ckpt/%d", (int)step);
        for (int i = 0; step % 10 == 0 && access(path, F_OK) && i < 500; i++)
            usleep(10000);
        usleep(step % 10 == 0 ? 100000 : 0); /* until the next one is due */
    }
    int n = 0;
    for (int64_t step = 1; step <= 35; step++) {
        struct manifest manifest = {0};
        char *path, file[256];
        if (!saves_find("ckpt", step, NULL, &manifest, &path, &err)) {
            n++;
            assert_int_equal(step % 10, 0);
            assert_int_equal(manifest.pushes.n, 1);
            assert_int_equal(manifest.pushes.items[0].count, step);
            for (int i = 0; i < SHARDS; i++) {
                struct server restored = {.store = variable_store_new()};
                snprintf(file, sizeof file, "%s/ps-%d.ckpt", path, i);
                assert_int_equal(snapshot_restore(restored.store, NULL, file, 1, &err), 0);
                assert_int_equal(get(&restored, i ? "w" : "v"), step);
                variable_store_free(restored.store);
            }
        }
        mem_free(path);
        manifest_release(&manifest);
    }
    assert_int_equal(n, 3);
    clean_up();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shards_list_in_order),
        cmocka_unit_test(a_value_goes_there_and_back),
        cmocka_unit_test(a_container_is_reset),
        cmocka_unit_test(who_does_not_answer_is_named),
        cmocka_unit_test(all_shards_are_saved_and_taken_back),
        cmocka_unit_test(a_shard_that_is_gone_stops_a_save_and_spoils_nothing),
        cmocka_unit_test(checkpoints_are_made_at_their_very_update),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
