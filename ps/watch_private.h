/* SPDX-License-Identifier: Apache-2.0
 *
 * The watcher's members, also for its tests. Private to ps/.
 */
#ifndef TF_PS_WATCH_PRIVATE_H
#define TF_PS_WATCH_PRIVATE_H

#include "ps/tail.h"
#include "ps/watch.h"

/* A task as it was last seen. */
struct watched_task {
    char name[64];
    bool is_shard, is_worker;
    struct job_process process;
    bool ready, silent;  /* as last reported */
    double heard;        /* when last heard from; of a worker: also by a shard */
    double heard_before; /* the same as links were served last */
    const char *lacks;   /* why it cannot be reached; NULL: nothing is known */

    /* Of a shard: */
    double still; /* seconds that its loop has stalled, as it reports */
    bool asking;  /* a status call is under way */
    double asked;
    struct call call;
    struct watch *watch;
    int64_t version; /* of its clock; -1: it has none */
    int64_t late, stale;
    int64_t saves_failed; /* as last reported */
};

struct watch {
    struct watch_options options;
    struct job job;
    struct cluster cluster;
    VEC(struct watched_task *) tasks;
    struct conns *conns;
    struct tail tail; /* of worker 0 */
    struct watch_state state;
    double answered; /* when a shard last replied */
    double looked;   /* when the links were last served */
    double said;     /* the last step line */
    int64_t said_step;
    bool anyone;     /* some process was seen */
    bool has_shards; /* the job has shards */
    bool conns_is_over;
};

/* Asks a linked shard for its statistics, a few times in a lease. */
void watch_ask(struct watch *watch, struct watched_task *task);

#endif
