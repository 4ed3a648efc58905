/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/asking.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"

#define LOOK_SECONDS 0.05

struct inquiry_call {
    struct call call; /* first: what the hub gives back */
    struct inquiry *asking;
    struct peer *peer;
    char *task;
    bool done;
};

struct inquiry {
    struct hub *hub;
    struct task_request request;
    char *about;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int holders; /* calls under way, and who waits */
    int n, n_done;
    bool given_up; /* who asked does not wait any more */
    struct error failure;
    struct inquiry_call *asked;
};

static void release(struct inquiry *asking)
{
    pthread_mutex_lock(&asking->lock);
    bool last = --asking->holders == 0;
    pthread_mutex_unlock(&asking->lock);
    if (!last)
        return;
    for (int i = 0; i < asking->n; i++) {
        if (asking->asked[i].peer)
            peer_release(asking->asked[i].peer);
        mem_free(asking->asked[i].task);
    }
    pthread_cond_destroy(&asking->changed);
    pthread_mutex_destroy(&asking->lock);
    mem_free(asking->about);
    mem_free(asking->asked);
    mem_free(asking);
}

/* Tells what a link has died over, unless the task that was asked says so itself. */
static void say_waited(struct error *failure, const char *about)
{
    if (failure->code == ERR_UNAVAILABLE && *about && failure->reason != ERROR_WAITED)
        error_waited(failure, "%s", about);
}

/* `answered` runs under the lock, so that nobody gives up and takes its context away meanwhile. */
static void replied(struct call *call, const struct record *reply, const struct error *failure)
{
    struct inquiry_call *asked = (struct inquiry_call *)call;
    struct inquiry *asking = asked->asking;
    pthread_mutex_lock(&asking->lock);
    if (!failure && !asking->given_up && asking->request.answered)
        asking->request.answered(asking->request.context, asked->task, reply);
    asked->done = true;
    asking->n_done++;
    if (failure && !asking->failure.code) {
        asking->failure = *failure;
        say_waited(&asking->failure, asking->about);
    }
    pthread_cond_signal(&asking->changed);
    pthread_mutex_unlock(&asking->lock);
    release(asking);
}

static int ask(struct inquiry_call *asked, struct error *err)
{
    struct inquiry *asking = asked->asking;
    const struct task_request *request = &asking->request;
    asked->peer = hub_peer(asking->hub, asked->task);
    if (!asked->peer)
        return error_set(err, ERR_UNAVAILABLE, "%s: there is no link to it", asked->task);
    asked->call.replied = replied;
    msgpack_packer *packer = hub_call_begin(asking->hub, asked->peer, request->verb,
                                            request->n_fields, &asked->call, err);
    if (!packer)
        return err->code;
    if (request->pack)
        request->pack(request->context, packer);
    return hub_call(asking->hub, &asked->call, request->tensors, request->n_tensors, err);
}

struct inquiry *asking_start(struct hub *hub, const char *const *tasks, int n,
                             const struct task_request *request)
{
    struct inquiry *asking = mem_alloc(sizeof *asking);
    asking->hub = hub;
    asking->request = *request;
    asking->about = mem_strdup(request->about ? request->about : "");
    asking->n = n;
    asking->holders = n + 1;
    asking->asked = mem_array((size_t)n, sizeof *asking->asked);
    pthread_mutex_init(&asking->lock, NULL);
    time_cond_init(&asking->changed);
    for (int i = 0; i < n; i++) {
        struct error err = ERROR_INIT;
        struct inquiry_call *asked = &asking->asked[i];
        asked->asking = asking;
        asked->task = mem_strdup(tasks[i]);
        if (ask(asked, &err))
            replied(&asked->call, NULL, &err);
    }
    return asking;
}

static bool is_over(void *context)
{
    struct inquiry *asking = context;
    pthread_mutex_lock(&asking->lock);
    bool over = asking->n_done == asking->n;
    pthread_mutex_unlock(&asking->lock);
    return over;
}

static bool is_cancelled(const struct inquiry *asking)
{
    return asking->request.cancelled && atomic_load(asking->request.cancelled);
}

/* With the lock: names the first who has not answered. */
static void blame(struct inquiry *asking, double seconds)
{
    for (int i = 0; i < asking->n; i++) {
        const struct inquiry_call *asked = &asking->asked[i];
        if (asked->done)
            continue;
        if (is_cancelled(asking))
            error_set(&asking->failure, ERR_CANCELLED, "%s: interrupted before it has answered",
                      peer_text(asked->peer));
        else
            error_set(&asking->failure, ERR_UNAVAILABLE, "%s: no answer in %g s",
                      peer_text(asked->peer), seconds);
        say_waited(&asking->failure, asking->about);
        return;
    }
}

int asking_finish(struct inquiry *asking, bool pumps, double seconds, struct error *err)
{
    double end = time_now() + seconds, left = seconds;
    while (pumps && left > 0 && !is_cancelled(asking) && /* looks every now and then */
           !loop_run_until(hub_loop(asking->hub), is_over, asking, fmin(left, LOOK_SECONDS)))
        left = end - time_now();
    pthread_mutex_lock(&asking->lock);
    while (!pumps && asking->n_done < asking->n && time_now() < end && !is_cancelled(asking)) {
        struct timespec until = time_after(LOOK_SECONDS);
        pthread_cond_timedwait(&asking->changed, &asking->lock, &until);
    }
    asking->given_up = true;
    if (!asking->failure.code)
        blame(asking, seconds);
    int code = asking->failure.code;
    if (code)
        *err = asking->failure;
    pthread_mutex_unlock(&asking->lock);
    release(asking);
    return code;
}
