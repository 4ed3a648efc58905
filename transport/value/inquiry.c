/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/inquiry.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"

#define LOOK_SECONDS 0.05

struct inquiry_call {
    struct call call; /* first: the connection manager returns a pointer to it */
    struct inquiry *inquiry;
    struct peer *peer; /* held; NULL: there is no link */
    void (*answered)(void *context, const char *task, const struct record *reply);
    void *context;
    char *about;
    bool done;
};

struct inquiry {
    struct conns *conns;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t holders; /* calls under way, and the asker */
    bool is_left;   /* the asker no longer waits */
    struct error failure;
    VEC(struct inquiry_call *) asked;
};

/* With the lock, which it releases. */
static void inquiry_drop(struct inquiry *inquiry)
{
    bool last = !--inquiry->holders;
    pthread_cond_signal(&inquiry->changed);
    pthread_mutex_unlock(&inquiry->lock);
    if (!last)
        return;
    vec_each(asked, &inquiry->asked) {
        peer_release((*asked)->peer);
        mem_free((*asked)->about);
        mem_free(*asked);
    }
    vec_release(&inquiry->asked);
    pthread_cond_destroy(&inquiry->changed);
    pthread_mutex_destroy(&inquiry->lock);
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
    if (!failure && !inquiry->is_left && asked->answered)
        asked->answered(asked->context, peer_task(asked->peer), reply);
    asked->done = true;
    if (failure && !inquiry->failure.code) {
        inquiry->failure = *failure;
        say_waited(&inquiry->failure, asked->about);
    }
    inquiry_drop(inquiry);
}

struct inquiry *inquiry_new(struct conns *conns)
{
    struct inquiry *inquiry = mem_alloc(sizeof *inquiry);
    inquiry->conns = conns;
    inquiry->holders = 1;
    pthread_mutex_init(&inquiry->lock, NULL);
    time_cond_init(&inquiry->changed);
    return inquiry;
}

/* Adds a call to the task; takes the hold of its peer. */
static void ask(struct inquiry *inquiry, const char *task, struct peer *peer,
                const struct task_request *request)
{
    struct error err = ERROR_INIT;
    struct inquiry_call *asked = mem_alloc(sizeof *asked);
    *asked = (struct inquiry_call){.call = {.replied = replied},
                                   .inquiry = inquiry,
                                   .peer = peer,
                                   .answered = request->answered,
                                   .context = request->context,
                                   .about = mem_strdup(request->about ? request->about : "")};
    pthread_mutex_lock(&inquiry->lock);
    vec_push(&inquiry->asked, asked);
    inquiry->holders++;
    pthread_mutex_unlock(&inquiry->lock);
    if (!peer) {
        error_set(&err, ERR_UNAVAILABLE, "%s: there is no link to it", task);
        replied(&asked->call, NULL, &err);
        return;
    }
    msgpack_packer *packer =
        conns_call_begin(inquiry->conns, peer, request->verb,
                         request->n_fields + (request->session != 0), &asked->call);
    if (!packer)
        return;
    if (request->session)
        pack_key_uint(packer, "session", request->session);
    if (request->pack)
        request->pack(request->fields, packer);
    conns_call(inquiry->conns, &asked->call, request->tensors, request->n_tensors);
}

void inquiry_ask(struct inquiry *inquiry, struct peer *peer, const struct task_request *request)
{
    ask(inquiry, peer_task(peer), peer_retain(peer), request);
}

void inquiry_ask_all(struct inquiry *inquiry, const char *const *tasks, size_t n,
                     const struct task_request *request)
{
    for (size_t i = 0; i < n; i++)
        ask(inquiry, tasks[i], conns_peer(inquiry->conns, tasks[i]), request);
}

static bool is_answered(void *context)
{
    struct inquiry *inquiry = context;
    pthread_mutex_lock(&inquiry->lock);
    bool over = inquiry->holders == 1;
    pthread_mutex_unlock(&inquiry->lock);
    return over;
}

static bool is_given_up(const struct inquiry_wait *wait)
{
    return wait->given_up && wait->given_up(wait->context);
}

/* With the lock: names the first task that has not replied. */
static void blame(struct inquiry *inquiry, const struct inquiry_wait *wait)
{
    size_t i = 0;
    while (i < inquiry->asked.n && inquiry->asked.items[i]->done)
        i++;
    if (i == inquiry->asked.n)
        return;
    const char *task = peer_text(inquiry->asked.items[i]->peer);
    if (is_given_up(wait))
        error_set(&inquiry->failure, ERR_CANCELLED, "%s: interrupted before it has answered", task);
    else
        error_set(&inquiry->failure, ERR_UNAVAILABLE, "%s: no answer in %g s", task, wait->seconds);
    say_waited(&inquiry->failure, inquiry->asked.items[i]->about);
}

int inquiry_finish(struct inquiry *inquiry, const struct inquiry_wait *wait, struct error *err)
{
    double end = wait->seconds > 0 ? time_now() + wait->seconds : INFINITY, left;
    while (wait->pumps && (left = end - time_now()) > 0 && !is_given_up(wait) &&
           !loop_run_until(conns_loop(inquiry->conns), is_answered, inquiry,
                           fmin(left, LOOK_SECONDS))) /* checks now and then */
        ;
    pthread_mutex_lock(&inquiry->lock);
    while (!wait->pumps && inquiry->holders > 1 && time_now() < end && !is_given_up(wait)) {
        struct timespec until = time_after(LOOK_SECONDS);
        pthread_cond_timedwait(&inquiry->changed, &inquiry->lock, &until);
    }
    inquiry->is_left = true;
    if (!inquiry->failure.code)
        blame(inquiry, wait);
    int code = inquiry->failure.code;
    if (code)
        *err = inquiry->failure;
    inquiry_drop(inquiry);
    return code;
}
