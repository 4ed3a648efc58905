/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/workers.h"

#include <pthread.h>
#include <string.h>

#include "base/cores.h"
#include "base/thread.h"
#include "base/vec.h"

struct worker_task {
    void (*function)(void *argument);
    void *argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static VEC(struct worker_task) tasks; /* a queue from `first` on */
static size_t first;
static int n_workers, n_idle;

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) { /* it counts as idle from its start */
        while (first == tasks.n)
            pthread_cond_wait(&arrived, &lock);
        n_idle--;
        struct worker_task task = tasks.items[first++];
        pthread_mutex_unlock(&lock);
        task.function(task.argument);
        pthread_mutex_lock(&lock);
        n_idle++;
    }
    return NULL;
}

bool workers_submit(int threads, void (*function)(void *argument), void *argument)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    /* As many as were asked for; if all are busy, up to one for each core, as several plans may
     * run. */
    while (threads > 0 &&
           (n_workers < threads ||
            (n_workers < cores_usable() && (size_t)n_idle <= tasks.n - first)) &&
           !thread_start(&thread, work, NULL)) {
        pthread_detach(thread);
        n_workers++;
        n_idle++;
    }
    bool taken = n_workers > 0 && threads > 0;
    if (first >= 64 && first * 2 >= tasks.n) { /* moves so many that each move is cheap */
        memmove(tasks.items, tasks.items + first, (tasks.n - first) * sizeof *tasks.items);
        tasks.n -= first;
        first = 0;
    }
    if (taken) {
        struct worker_task task = {function, argument};
        vec_push(&tasks, task);
        pthread_cond_signal(&arrived);
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

int workers_withdraw(void (*function)(void *argument), void *argument)
{
    pthread_mutex_lock(&lock);
    size_t kept = first;
    for (size_t i = first; i < tasks.n; i++)
        if (tasks.items[i].function != function || tasks.items[i].argument != argument)
            tasks.items[kept++] = tasks.items[i];
    int withdrawn = (int)(tasks.n - kept);
    tasks.n = kept;
    pthread_mutex_unlock(&lock);
    return withdrawn;
}
