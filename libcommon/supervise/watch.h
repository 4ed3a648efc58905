/* SPDX-License-Identifier: Apache-2.0
 *
 * What a watch over a job reports (ps/watch.h). The supervisor is given a watch, as it knows
 * nothing of links itself.
 */
#ifndef TF_SUPERVISE_WATCH_H
#define TF_SUPERVISE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct watch_state {     /* contents of the step line */
    int64_t step, total; /* -1: unknown */
    double rate;         /* steps per second, since the last line */
    const char *values;  /* "loss=0.0187", from worker 0's records */
    int workers, workers_here;
    int64_t late, stale; /* late pushes of all workers; how far the last one is behind */
};

#define WATCH_NO_REPLY "no answer yet"

struct watch_task { /* one task, as the watch sees it */
    const char *name;
    bool ready, silent;   /* it replies, or did; no reply for a lease */
    bool left;            /* it has left the job: its process is about to end */
    uint64_t incarnation; /* the last one seen; 0: none */
    double heard;         /* time of its last reply or arrival (time_now); 0: never */
    const char *missing;  /* why it is missing, or that it does not reply: a literal; or NULL */
};

struct watch_options {
    const char *job_folder, *key_file; /* key_file NULL: the job's */
    const char *producer;
    bool no_key;
    double lease;    /* seconds; 0: 3 */
    double interval; /* between step lines; 0: 1 s */
    /* Each may be NULL. */
    void (*line)(void *context, const char *text);
    void (*task)(void *context, const struct watch_task *task);    /* once per task and look */
    void (*state)(void *context, const struct watch_state *state); /* once per look */
    bool (*ends)(void *context);
    void *context;
};

#endif
