/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer that has the key and means no good: the bytes choose requests, values and grants with
 * fields of every kind, which a shard gets over a link. Whatever comes, the shard must answer or
 * end the link, and keep nothing of the sessions when the peer is gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/container_of.h"
#include "base/time.h"
#include "graph/graph_io.h"
#include "graph/text.h"
#include "ops/ops.h"
#include "transport/session/server_private.h"

#define RECORDS_MAX 24
#define PATIENCE 5.0 /* seconds */
#define ON " @/job:ps/task:0/device:CPU:0\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char graph_text[] =
    "x = Placeholder() {dtype=float32, shape=[2]}" ON
    "r = Recv() {tensor_type=float32, tensor_name=\"s\", shape=[2], "
    "send_device=\"/job:worker/task:0/device:CPU:0\", "
    "recv_device=\"/job:ps/task:0/device:CPU:0\"}" ON "v = Variable() {dtype=float32, shape=[2]}" ON
    "a = Assign(v, x)" ON "y = Neg(r)" ON "z = Neg(x)" ON;

static const char *const words[] = {"x", "r", "s", "v", "a", "y", "z", "^a", "^y", "y:1", "", "?"};
static const char *const verbs[] = {"open",  "register", "step",  "cancel", "read",
                                    "write", "update",   "close", "info",   "?"};
static const char *const fields[] = {"session", "handle",      "step",  "number",  "seed",
                                     "replica", "incarnation", "feeds", "fetches", "name",
                                     "updates", "cluster",     "code",  "text",    "targets"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct {
    char folder[32];
    struct conns *conns;
    struct server *server;
    struct device *device;
    struct variable_store *variables;
    struct stream_writer *graph;
    uint64_t started;
} shard;

struct input {
    const uint8_t *data;
    size_t size;
};

static unsigned draw(struct input *in, size_t below)
{
    if (!in->size)
        return 0;
    in->size--;
    return *in->data++ % (unsigned)below;
}

static struct conns *make_conns(const char *task)
{
    struct error err = ERROR_INIT;
    struct conns_options options = {.peers = {.task = task,
                                              .incarnation = ++shard.started,
                                              .producer = "fuzz",
                                              .folder = shard.folder,
                                              .no_shared_memory = true,
                                              .lease = 60},
                                    .window = 4096};
    struct conns *conns = conns_new(&options, &err);
    if (!conns)
        abort();
    return conns;
}

static void start(void)
{
    struct error err = ERROR_INIT;
    struct graph *graph;
    snprintf(shard.folder, sizeof shard.folder, "/tmp/tf-fuzz-XXXXXX");
    if (!mkdtemp(shard.folder) ||
        graph_parse_text(graph_text, strlen(graph_text), "fuzz", ops_registry(), &graph, &err))
        abort();
    shard.graph = stream_writer_new_memory("fuzz", 1);
    graph_write(shard.graph, graph, &err);
    stream_finish(shard.graph, &err);
    graph_free(graph);
    shard.conns = make_conns("ps:0");
    shard.variables = variable_store_new();
    shard.device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    if (!shard.device || peers_listen(conns_peers(shard.conns), "unix:p0", NULL, &err))
        abort();
    struct server_options options = {.conns = shard.conns,
                                     .task = "ps:0",
                                     .registry = ops_registry(),
                                     .kernels = ops_kernels(),
                                     .devices = &shard.device,
                                     .n_devices = 1,
                                     .threads = 1,
                                     .variables = shard.variables,
                                     .timeout = 1};
    shard.server = server_new(&options);
}

/* Both loops are of this thread: each in turn. */
static bool pump(struct conns *peer, bool (*until)(void *context), void *context)
{
    double end = time_now() + PATIENCE;
    while (!until(context) && time_now() < end) {
        loop_run_until(conns_loop(shard.conns), until, context, 0);
        if (peer)
            loop_run_until(conns_loop(peer), until, context, 0);
    }
    return until(context);
}

/* ---- what is sent ---- */

static void pack_field(struct input *in, msgpack_packer *packer, const char *name)
{
    unsigned n;
    pack_key(packer, name);
    switch (draw(in, 6)) {
    case 0:
        msgpack_pack_int64(packer, (int64_t)draw(in, 256) - 128);
        break;
    case 1:
        pack_text(packer, words[draw(in, COUNT(words))]);
        break;
    case 2:
        n = draw(in, 4);
        msgpack_pack_array(packer, n);
        for (unsigned i = 0; i < n; i++)
            pack_text(packer, words[draw(in, COUNT(words))]);
        break;
    case 3:
        msgpack_pack_uint64(packer, UINT64_MAX - draw(in, 2));
        break;
    default:
        msgpack_pack_uint64(packer, draw(in, 4));
    }
}

static int draw_tensor(struct input *in, struct named_tensor *named)
{
    static float numbers[4] = {1, 2, 3, 4};
    size_t n = 2 + draw(in, 2);
    const void *bytes = numbers;
    enum dtype type = FLOAT32;
    switch (draw(in, 4)) {
    case 0:
        return 0;
    case 1:
        bytes = stream_writer_bytes(shard.graph, &n);
        type = UINT8;
        break;
    case 2:
        bytes = in->data;
        n = in->size < 64 ? in->size : 64;
        type = UINT8;
        break;
    default:
        break;
    }
    struct shape shape = shape_vector((int64_t)n);
    *named = (struct named_tensor){"", tensor_borrow(type, &shape, (void *)(uintptr_t)bytes)};
    return 1;
}

/* Any record of any kind that a session knows; requests have an id, so that replies come. */
static void send_record(struct input *in, struct peer *peer, uint64_t id)
{
    static const enum record_kind kinds[] = {RECORD_VALUE, RECORD_ANNOUNCE, RECORD_GRANT,
                                             RECORD_SHARE};
    struct error err = ERROR_INIT;
    struct named_tensor named;
    bool asks = draw(in, 4) > 0;
    int n_fields = asks ? (int)draw(in, 9) : 4, n = draw_tensor(in, &named);
    msgpack_packer *packer =
        peer_begin(peer, asks ? RECORD_REQUEST : kinds[draw(in, 4)], n_fields + 2 * asks, &err);
    if (!packer)
        return;
    if (asks) {
        pack_key(packer, "id");
        msgpack_pack_uint64(packer, id);
        pack_key(packer, "verb");
        pack_text(packer, verbs[draw(in, COUNT(verbs))]);
    }
    unsigned first = draw(in, 2) ? 0 : draw(in, COUNT(fields));
    for (int i = 0; i < n_fields && asks; i++) /* in a row from the first, or from anywhere */
        pack_field(in, packer, fields[(first + (unsigned)i) % COUNT(fields)]);
    for (int i = 0; i < 4 && !asks; i++)
        pack_field(in, packer, ((const char *const[]){"session", "step", "key", "iteration"})[i]);
    peer_end(peer, &named, n, &err);
}

static void pack_names(msgpack_packer *packer, const char *name, const char *word)
{
    pack_key(packer, name);
    msgpack_pack_array(packer, word != NULL);
    if (word)
        pack_text(packer, word);
}

struct talk {
    struct conns *conns;
    struct peer *peer;
    struct conns_watcher watcher;
    bool answered, lost;
    struct call call;
};

static void opened(struct conns_watcher *watcher, struct peer *peer)
{
    struct talk *talk = CONTAINER_OF(watcher, struct talk, watcher);
    talk->peer = peer_retain(peer);
}

static void lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct talk *talk = CONTAINER_OF(watcher, struct talk, watcher);
    (void)peer, (void)why;
    talk->lost = true;
}

static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct talk *talk = CONTAINER_OF(call, struct talk, call);
    (void)reply, (void)failure;
    talk->answered = true;
}

static bool is_linked(void *context)
{
    return ((struct talk *)context)->peer != NULL;
}

static bool is_over(void *context)
{
    const struct talk *talk = context;
    return talk->answered || talk->lost;
}

static void register_handle(struct peer *peer, uint64_t i)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer = peer_begin(peer, RECORD_REQUEST, 6, &err);
    if (!packer)
        return;
    pack_key(packer, "id");
    msgpack_pack_uint64(packer, 900 + i);
    pack_key(packer, "verb");
    pack_text(packer, "register");
    pack_key(packer, "session");
    msgpack_pack_uint64(packer, 1);
    pack_names(packer, "feeds", i ? NULL : "x");
    pack_names(packer, "fetches", i ? "y" : "z");
    pack_names(packer, "targets", i ? NULL : "^a");
    peer_end(peer, NULL, 0, &err);
}

/* Session 1 with a graph and two handles, so that what comes then meets something. */
static void open_session(struct talk *talk)
{
    size_t n;
    const void *bytes = stream_writer_bytes(shard.graph, &n);
    struct shape shape = shape_vector((int64_t)n);
    struct named_tensor graph = {"", tensor_borrow(UINT8, &shape, (void *)(uintptr_t)bytes)};
    msgpack_packer *packer = conns_call_begin(talk->conns, talk->peer, "open", 1, &talk->call);
    if (!packer)
        abort();
    pack_key(packer, "session");
    msgpack_pack_uint64(packer, 1);
    conns_call(talk->conns, &talk->call, &graph, 1);
    if (!pump(talk->conns, is_over, talk))
        abort();
    talk->answered = false;
    for (uint64_t i = 0; i < 2; i++)
        register_handle(talk->peer, i);
}

static bool is_empty(void *context)
{
    (void)context;
    return !shard.server->sessions;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct talk talk = {.watcher = {.opened = opened, .lost = lost}};
    struct error err = ERROR_INIT;
    if (!shard.conns)
        start();
    talk.conns = make_conns("worker:0");
    conns_watch(talk.conns, &talk.watcher);
    if (peers_connect(conns_peers(talk.conns), "ps:0", "unix:p0", PATIENCE, &err) ||
        !pump(talk.conns, is_linked, &talk))
        abort();
    talk.call.replied = replied;
    if (draw(&in, 4))
        open_session(&talk);
    for (uint64_t i = 0; i < RECORDS_MAX && in.size; i++)
        send_record(&in, talk.peer, 1000 + i);
    if (!talk.lost && conns_call_begin(talk.conns, talk.peer, "info", 0, &talk.call))
        conns_call(talk.conns, &talk.call, NULL, 0);
    if (!pump(talk.conns, is_over, &talk))
        abort();
    conns_free(talk.conns);
    peer_release(talk.peer);
    if (!pump(NULL, is_empty, NULL))
        abort();
    return 0;
}
