/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the watcher share. Private to ps/.
 */
#ifndef TF_PS_WATCH_PRIVATE_H
#define TF_PS_WATCH_PRIVATE_H

#include "ps/tail.h"
#include "ps/watch.h"

#define WATCH_LOOK_SECONDS 0.1

/* A task as it was seen last. */
struct watched_task {
    char name[64];
    bool is_shard, is_worker;
    int index; /* of the tasks of its job */
    struct job_process process;
    bool ready, silent; /* as was said */
    double heard;       /* from it, or of a worker by a shard */
    const char *lacks;  /* why it cannot be reached; NULL: nothing is known */

    /* Facts of a shard. */
    double still; /* for how long its loop has stood still, as it says */
    bool asking;  /* the call is under way */
    double asked;
    struct call call;
    struct watch *watch;
    bool has_clock;
    int64_t version, late, stale;
    int64_t saves_failed; /* as was said */
};

struct watch {
    struct watch_options options;
    struct job job;
    struct cluster cluster;
    VEC(struct watched_task *) tasks;
    struct hub *hub;
    struct tail tail; /* of worker 0 */
    struct watch_state state;
    double answered; /* when a shard last did */
    double looked;   /* when the links last moved */
    double said;     /* the last step line */
    int64_t said_step;
    bool anyone;     /* some process was there */
    bool has_shards; /* the job has */
    bool hub_is_over;
};

void watch_say(const struct watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* watch_ask.c: links to shards, or to workers where there are none, and questions. */
void watch_link(struct watch *watch, struct watched_task *task, const char *address);
void watch_ask(struct watch *watch, struct watched_task *task);
/* A shard that stands still does not answer, but is not dead: it says so. A worker's ping is all
 * that is asked of it. */
void watch_hear_pings(struct watch *watch);
bool watch_is_linked(struct watch *watch, const struct watched_task *task);
struct watched_task *watch_find(struct watch *watch, const char *name);

#endif
