/* SPDX-License-Identifier: Apache-2.0
 *
 * What a watch over a job sees (ps/watch.h). The supervisor is given one, as it knows nothing of
 * links itself.
 */
#ifndef TF_SUPERVISE_WATCH_H
#define TF_SUPERVISE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

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

#endif
