/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/clerk.h"

#include <pthread.h>
#include <signal.h>

#include "base/error.h"
#include "base/memory.h"

struct errand {
    void (*work)(void *argument);
    void *argument;
    struct errand *next;
};

struct clerk {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct errand *first, *last;
    bool ends;
};

/* The next errand; NULL: there will be none any more. */
static struct errand *take(struct clerk *clerk)
{
    pthread_mutex_lock(&clerk->lock);
    while (!clerk->first && !clerk->ends)
        pthread_cond_wait(&clerk->changed, &clerk->lock);
    struct errand *errand = clerk->first;
    if (errand)
        clerk->first = errand->next;
    pthread_mutex_unlock(&clerk->lock);
    return errand;
}

static void *run(void *argument)
{
    struct errand *errand;
    while ((errand = take(argument))) {
        errand->work(errand->argument);
        mem_free(errand);
    }
    return NULL;
}

struct clerk *clerk_new(void)
{
    struct clerk *clerk = mem_alloc(sizeof *clerk);
    pthread_mutex_init(&clerk->lock, NULL);
    pthread_cond_init(&clerk->changed, NULL);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the thread that waits for them */
    if (pthread_create(&clerk->thread, NULL, run, clerk))
        mem_exhausted(0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return clerk;
}

bool clerk_do(struct clerk *clerk, void (*work)(void *argument), void *argument)
{
    struct errand *errand = mem_alloc(sizeof *errand);
    *errand = (struct errand){work, argument, NULL};
    pthread_mutex_lock(&clerk->lock);
    bool taken = !clerk->ends;
    if (taken && clerk->first)
        clerk->last->next = errand;
    else if (taken)
        clerk->first = errand;
    if (taken)
        clerk->last = errand;
    pthread_cond_signal(&clerk->changed);
    pthread_mutex_unlock(&clerk->lock);
    if (!taken)
        mem_free(errand);
    return taken;
}

void clerk_free(struct clerk *clerk)
{
    if (!clerk)
        return;
    pthread_mutex_lock(&clerk->lock);
    clerk->ends = true;
    pthread_cond_signal(&clerk->changed);
    pthread_mutex_unlock(&clerk->lock);
    pthread_join(clerk->thread, NULL);
    pthread_cond_destroy(&clerk->changed);
    pthread_mutex_destroy(&clerk->lock);
    mem_free(clerk);
}
