/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches a running job for whoever runs it: which processes are there, answer, are silent, have
 * died or left, and how far training is. By calls, or as lines for a shell; docs/job.md lists them:
 *
 *     up ps:0 pid=4120 incarnation=1
 *     ready ps:0 pid=4120 incarnation=1
 *     waiting worker:1 why=not started
 *     step 211 loss=0.0187 rate=2350 workers=2/2 late=0 stale=0
 *     silent worker:1 3.0s pid=4188 incarnation=2 step=402
 *     died worker:1 pid=4123 incarnation=1 step=211
 *     left ps:0 step=460
 *
 * A process is there as long as it holds the lock of its pid file; it answers, if a shard does to a
 * link of ours, or a worker has one to a shard.
 */
#ifndef TF_PS_WATCH_H
#define TF_PS_WATCH_H

#include "transport/job/job.h"
#include "transport/value/hub.h"

struct watch_state {     /* what the step line says */
    int64_t step, total; /* -1: unknown */
    double rate;         /* steps a second, since the last line */
    const char *values;  /* "loss=0.0187", of worker 0's records */
    int workers, workers_here;
    int64_t late, stale; /* pushes of all workers; how far the last one is behind */
};

#define WATCH_NO_ANSWER "no answer yet"

struct watch_task { /* one task, as it is seen */
    const char *name;
    bool ready, silent;   /* it answers, or did; not for a lease now */
    bool left;            /* it was there, and has left: its process is about to end */
    uint64_t incarnation; /* the last that was there; 0: none */
    double heard;         /* when it last did, or came (time_now); 0: never */
    const char *missing;  /* why it is not there, or that it does not answer: a literal; or NULL */
};

struct watch_options {
    const char *job_folder, *key_file; /* key_file NULL: the job's */
    const char *producer;
    bool no_key;
    double lease;    /* seconds; 0: 3 */
    double interval; /* between step lines; 0: 1 s */
    /* Each may be NULL. */
    void (*line)(void *context, const char *text);
    void (*task)(void *context, const struct watch_task *task);    /* each, as often as it looks */
    void (*state)(void *context, const struct watch_state *state); /* so, too */
    bool (*ends)(void *context);
    void *context;
};

/* Runs until every process that was there has ended well, or `ends` says so: 0. ERR_NOINPUT when
 * there is no job. */
int watch_job(const struct watch_options *options, struct error *err);

#endif
