/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of batches between the thread that makes them and the one that writes them. The lock
 * guards the ring's counters and `stop`; a batch in the ring belongs to the ring, one being made to
 * the producer. The first error follows the batches made before it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "data/batches.h"

struct prefetch {
    struct batches batches;
    struct batches *source;
    int (*wait)(void *context, struct error *err);
    void *wait_context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch *ring;
    int depth, first, n;
    bool ended, stop;
    int stop_pipe[2]; /* readable once the producer must stop waiting for input */
    struct error failure;
};

static void *produce(void *context)
{
    struct prefetch *p = context;
    bool more = true;
    while (more) {
        struct batch batch = {0};
        struct error err = ERROR_INIT;
        if (p->source->next(p->source, &batch, &more, &err))
            more = false;
        pthread_mutex_lock(&p->lock);
        while (more && p->n == p->depth && !p->stop)
            pthread_cond_wait(&p->changed, &p->lock);
        if (more && !p->stop)
            p->ring[(p->first + p->n++) % p->depth] = batch;
        else
            batch_release(&batch);
        more = more && !p->stop;
        p->ended = !more;
        if (err.code)
            p->failure = err;
        pthread_cond_signal(&p->changed);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

static int prefetch_next(struct batches *batches, struct batch *batch, bool *more,
                         struct error *err)
{
    struct prefetch *p = (struct prefetch *)batches;
    pthread_mutex_lock(&p->lock);
    bool empty = p->n == 0 && !p->ended;
    pthread_mutex_unlock(&p->lock);
    int code = empty && p->wait ? p->wait(p->wait_context, err) : 0;
    if (code)
        return code;
    pthread_mutex_lock(&p->lock);
    while (p->n == 0 && !p->ended)
        pthread_cond_wait(&p->changed, &p->lock);
    *more = p->n > 0;
    if (*more) {
        *batch = p->ring[p->first];
        p->first = (p->first + 1) % p->depth;
        p->n--;
        pthread_cond_signal(&p->changed);
    } else if (p->failure.code) {
        *err = p->failure;
        code = err->code;
    }
    pthread_mutex_unlock(&p->lock);
    return code;
}

static void destroy(struct prefetch *p)
{
    for (; p->n; p->n--, p->first = (p->first + 1) % p->depth)
        batch_release(&p->ring[p->first]);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    batches_free(p->source);
    close(p->stop_pipe[0]);
    close(p->stop_pipe[1]);
    mem_free(p->ring);
    mem_free(p);
}

static void prefetch_free(struct batches *batches)
{
    struct prefetch *p = (struct prefetch *)batches;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    if (write(p->stop_pipe[1], "", 1) < 0)
        p->ended = true; /* cannot happen, as an empty pipe takes a byte */
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    destroy(p);
}

int batches_prefetch(struct batches *batches, int depth, int (*wait)(void *, struct error *),
                     void *context, struct batches **ahead, struct error *err)
{
    struct prefetch *p = mem_alloc(sizeof *p);
    p->batches = (struct batches){
        .next = prefetch_next, .free = prefetch_free, .expected = batches->expected};
    p->source = batches;
    p->wait = wait;
    p->wait_context = context;
    p->depth = depth;
    p->ring = mem_array((size_t)depth, sizeof *p->ring);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (pipe2(p->stop_pipe, O_CLOEXEC)) {
        p->stop_pipe[0] = p->stop_pipe[1] = -1;
        error_set_errno(err, ERR_OS, "cannot start a thread");
        destroy(p);
        return err->code;
    }
    if (batches->stop_on)
        batches->stop_on(batches, p->stop_pipe[0]);
    int status = thread_start(&p->thread, produce, p);
    if (status) {
        destroy(p);
        return error_set(err, ERR_OS, "cannot start a thread");
    }
    *ahead = &p->batches;
    return 0;
}
