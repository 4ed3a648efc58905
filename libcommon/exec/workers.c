/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/workers.h"

#include <pthread.h>
#include <signal.h>

#include "base/vec.h"

struct task {
    void (*function)(void *argument);
    void *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static VEC(struct task) tasks; /* a stack: the newest is the one whose data is in the cache */
static int n_workers;

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!tasks.n)
            pthread_cond_wait(&arrived, &lock);
        struct task task = vec_pop(&tasks);
        pthread_mutex_unlock(&lock);
        task.function(task.argument);
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

/* Signals are for the thread that waits for them, never for a helper. */
static bool start_worker(void)
{
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool started = !pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

bool workers_submit(int threads, void (*function)(void *argument), void *argument)
{
    pthread_mutex_lock(&lock);
    while (n_workers < threads && start_worker())
        n_workers++;
    bool taken = n_workers > 0 && threads > 0;
    if (taken) {
        struct task task = {function, argument};
        vec_push(&tasks, task);
        pthread_cond_signal(&arrived);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

int workers_withdraw(void (*function)(void *argument), void *argument)
{
    size_t kept = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < tasks.n; i++)
        if (tasks.items[i].function != function || tasks.items[i].argument != argument)
            tasks.items[kept++] = tasks.items[i];
    int withdrawn = (int)(tasks.n - kept);
    tasks.n = kept;
    pthread_mutex_unlock(&lock);
    return withdrawn;
}
