/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/inquiry.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"

#define LOOK_SECONDS 0.05

struct inquiry_call {
    struct call call; /* first: the connection manager returns a pointer to it */
    struct inquiry *inquiry;
    struct peer *peer;
    char *task;
    bool done;
};

struct inquiry {
    struct conns *conns;
    struct task_request request;
    char *about;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int holders; /* calls under way, and the waiter */
    int n, n_done;
    bool given_up; /* the asker no longer waits */
    struct error failure;
    struct inquiry_call *asked;
};

static void release(struct inquiry *inquiry)
{
    pthread_mutex_lock(&inquiry->lock);
    bool last = --inquiry->holders == 0;
    pthread_mutex_unlock(&inquiry->lock);
    if (!last)
        return;
    for (int i = 0; i < inquiry->n; i++) {
        if (inquiry->asked[i].peer)
            peer_release(inquiry->asked[i].peer);
        mem_free(inquiry->asked[i].task);
    }
    pthread_cond_destroy(&inquiry->changed);
    pthread_mutex_destroy(&inquiry->lock);
    mem_free(inquiry->about);
    mem_free(inquiry->asked);
    mem_free(inquiry);
}

/* Adds what was waited for when a link died, unless the task's own error says it. */
static void say_waited(struct error *failure, const char *about)
{
    if (failure->code == ERR_UNAVAILABLE && *about && failure->reason != ERROR_WAITED)
        error_waited(failure, "%s", about);
}

/* Calls `answered` under the lock, so that the asker cannot free its context meanwhile. */
static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct inquiry_call *asked = (struct inquiry_call *)call;
    struct inquiry *inquiry = asked->inquiry;
    pthread_mutex_lock(&inquiry->lock);
    if (!failure && !inquiry->given_up && inquiry->request.answered)
        inquiry->request.answered(inquiry->request.context, asked->task, reply);
    asked->done = true;
    inquiry->n_done++;
    if (failure && !inquiry->failure.code) {
        inquiry->failure = *failure;
        say_waited(&inquiry->failure, inquiry->about);
    }
    pthread_cond_signal(&inquiry->changed);
    pthread_mutex_unlock(&inquiry->lock);
    release(inquiry);
}

static void ask(struct inquiry_call *asked)
{
    struct error err = ERROR_INIT;
    struct inquiry *inquiry = asked->inquiry;
    const struct task_request *request = &inquiry->request;
    asked->peer = conns_peer(inquiry->conns, asked->task);
    if (!asked->peer) {
        error_set(&err, ERR_UNAVAILABLE, "%s: there is no link to it", asked->task);
        replied(&asked->call, NULL, &err);
        return;
    }
    asked->call.replied = replied;
    msgpack_packer *packer = conns_call_begin(inquiry->conns, asked->peer, request->verb,
                                              request->n_fields, &asked->call);
    if (packer && request->pack)
        request->pack(request->context, packer);
    if (packer)
        conns_call(inquiry->conns, &asked->call, request->tensors, request->n_tensors);
}

struct inquiry *inquiry_start(struct conns *conns, const char *const *tasks, int n,
                              const struct task_request *request)
{
    struct inquiry *inquiry = mem_alloc(sizeof *inquiry);
    inquiry->conns = conns;
    inquiry->request = *request;
    inquiry->about = mem_strdup(request->about ? request->about : "");
    inquiry->n = n;
    inquiry->holders = n + 1;
    inquiry->asked = mem_array((size_t)n, sizeof *inquiry->asked);
    pthread_mutex_init(&inquiry->lock, NULL);
    time_cond_init(&inquiry->changed);
    for (int i = 0; i < n; i++) {
        struct inquiry_call *asked = &inquiry->asked[i];
        asked->inquiry = inquiry;
        asked->task = mem_strdup(tasks[i]);
        ask(asked);
    }
    return inquiry;
}

static bool is_answered(void *context)
{
    struct inquiry *inquiry = context;
    pthread_mutex_lock(&inquiry->lock);
    bool over = inquiry->n_done == inquiry->n;
    pthread_mutex_unlock(&inquiry->lock);
    return over;
}

static bool is_cancelled(const struct inquiry *inquiry)
{
    return inquiry->request.cancelled && atomic_load(inquiry->request.cancelled);
}

/* With the lock: names the first task that has not replied. */
static void blame(struct inquiry *inquiry, double seconds)
{
    for (int i = 0; i < inquiry->n; i++) {
        const struct inquiry_call *asked = &inquiry->asked[i];
        if (asked->done)
            continue;
        if (is_cancelled(inquiry))
            error_set(&inquiry->failure, ERR_CANCELLED, "%s: interrupted before it has answered",
                      peer_text(asked->peer));
        else
            error_set(&inquiry->failure, ERR_UNAVAILABLE, "%s: no answer in %g s",
                      peer_text(asked->peer), seconds);
        say_waited(&inquiry->failure, inquiry->about);
        return;
    }
}

int inquiry_finish(struct inquiry *inquiry, bool pumps, double seconds, struct error *err)
{
    double end = time_now() + seconds, left = seconds;
    while (
        pumps && left > 0 && !is_cancelled(inquiry) && /* checks now and then */
        !loop_run_until(conns_loop(inquiry->conns), is_answered, inquiry, fmin(left, LOOK_SECONDS)))
        left = end - time_now();
    pthread_mutex_lock(&inquiry->lock);
    while (!pumps && inquiry->n_done < inquiry->n && time_now() < end && !is_cancelled(inquiry)) {
        struct timespec until = time_after(LOOK_SECONDS);
        pthread_cond_timedwait(&inquiry->changed, &inquiry->lock, &until);
    }
    inquiry->given_up = true;
    if (!inquiry->failure.code)
        blame(inquiry, seconds);
    int code = inquiry->failure.code;
    if (code)
        *err = inquiry->failure;
    pthread_mutex_unlock(&inquiry->lock);
    release(inquiry);
    return code;
}
