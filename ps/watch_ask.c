/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "base/time.h"
#include "ps/watch_private.h"

struct watched_task *watch_find(struct watch *watch, const char *name)
{
    for (size_t i = 0; i < watch->tasks.n; i++)
        if (!strcmp(watch->tasks.items[i]->name, name))
            return watch->tasks.items[i];
    return NULL;
}

/* A dial that fails is repeated at the next look. */
void watch_link(struct watch *watch, struct watched_task *task, const char *address)
{
    struct error ignored = ERROR_INIT;
    if (!conns_is_linked(watch->conns, task->name))
        peers_connect(conns_peers(watch->conns), task->name, address, WATCH_LOOK_SECONDS, &ignored);
}

/* ---- pings ---- */

#define STUCK_LEASES 10 /* for which a loop may stall before it counts as dead */

static void hear_ping(void *context, struct link *link)
{
    struct watch *watch = context;
    struct watched_task *task = watch_find(watch, link_peer(link)->task);
    double heard = time_now() - link_silence(link);
    if (!task)
        return;
    if (task->is_worker && heard > task->heard)
        task->heard = heard;
    if (!task->is_shard)
        return;
    task->still = link_stillness(link);
    if (task->still > 0 && task->still < STUCK_LEASES * watch->options.lease && heard > task->heard)
        task->heard = heard;
}

void watch_hear_pings(struct watch *watch)
{
    peers_each(conns_peers(watch->conns), hear_ping, watch);
}

/* ---- replies ---- */

static void add_workers(struct watched_task *task, const msgpack_object *workers)
{
    task->late = task->stale = 0;
    if (!workers || workers->type != MSGPACK_OBJECT_ARRAY)
        return;
    for (uint32_t i = 0; i < workers->via.array.size; i++) {
        const msgpack_object *worker = &workers->via.array.ptr[i];
        int64_t late = 0, behind = 0;
        bool here = false;
        if (worker->type != MSGPACK_OBJECT_MAP)
            continue;
        record_get_int(worker, "late", &late);
        record_get_int(worker, "behind", &behind);
        record_get_bool(worker, "here", &here);
        task->late += late;
        if (here && behind > task->stale)
            task->stale = behind;
    }
}

/* Reports an automatic checkpoint that failed or, if several did, their number. */
static void hear_of_saves(struct watched_task *task, const msgpack_object *reply)
{
    struct arena arena = ARENA_INIT;
    const char *why = "";
    int64_t failed = 0, step = -1;
    record_get_int(reply, "saves_failed", &failed);
    record_get_int(reply, "failed_step", &step);
    record_get_text(reply, "failed_why", &arena, &why);
    if (failed > task->saves_failed)
        watch_say(task->watch, "unsaved %s failed=%" PRId64 " step=%" PRId64 " why=%s", task->name,
                  failed, step, str_is_printable(why, strlen(why)) ? why : "?");
    task->saves_failed = failed;
    arena_release(&arena);
}

static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct watched_task *task = CONTAINER_OF(call, struct watched_task, call);
    task->asking = false;
    if (failure || task->watch->conns_is_over)
        return;
    task->heard = time_now();
    task->version = -1;
    record_get_int(&reply->header, "version", &task->version);
    hear_of_saves(task, &reply->header);
    /* A shard tells when it last heard from a worker. */
    struct watch *watch = task->watch;
    const msgpack_object *peers = record_field(&reply->header, "peers");
    double now = time_now(), silence;
    for (size_t i = 0; peers && i < watch->tasks.n; i++) {
        struct watched_task *other = watch->tasks.items[i];
        if (other->is_worker && record_get_float(peers, other->name, &silence) &&
            now - silence > other->heard)
            other->heard = now - silence;
    }
    watch->answered = now;
    add_workers(task, record_field(&reply->header, "workers"));
}

void watch_ask(struct watch *watch, struct watched_task *task)
{
    struct peer *peer;
    double pause = watch->options.lease / 6; /* several replies per lease */
    if (task->asking || time_now() - task->asked < pause)
        return;
    if (!(peer = conns_peer(watch->conns, task->name)))
        return;
    task->asked = time_now();
    task->call.replied = replied;
    task->asking = true;
    if (conns_call_begin(watch->conns, peer, "stats", 0, &task->call))
        conns_call(watch->conns, &task->call, NULL, 0);
    peer_release(peer);
}
