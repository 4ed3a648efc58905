/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/loop/keeper.h"

#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "transport/loop/loop_private.h"

struct keeper {
    pthread_t thread;
    pthread_mutex_t lock; /* held while tasks are called */
    pthread_cond_t changed;
    struct keeper_task *tasks;
    double period;
    bool ended, started;
};

static void *keep_time(void *argument)
{
    struct keeper *keeper = argument;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->ended) {
        if (keeper->tasks) {
            struct timespec until = time_after(keeper->period);
            pthread_cond_timedwait(&keeper->changed, &keeper->lock, &until);
        } else {
            pthread_cond_wait(&keeper->changed, &keeper->lock);
        }
        for (struct keeper_task *task = keeper->tasks; task && !keeper->ended; task = task->next)
            task->call(task->context);
    }
    pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->ended = true;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
    if (keeper->started)
        pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    mem_free(keeper);
}

void keeper_add(struct loop *loop, struct keeper_task *task, double period)
{
    struct keeper *keeper = loop->keeper;
    if (!keeper) {
        keeper = mem_alloc(sizeof *keeper);
        pthread_mutex_init(&keeper->lock, NULL);
        time_cond_init(&keeper->changed);
        keeper->period = 1;
        keeper->started = !thread_start(&keeper->thread, keep_time, keeper);
        loop->keeper = keeper;
    }
    pthread_mutex_lock(&keeper->lock);
    task->next = keeper->tasks;
    keeper->tasks = task;
    if (period < keeper->period)
        keeper->period = period;
    pthread_cond_signal(&keeper->changed);
    pthread_mutex_unlock(&keeper->lock);
}

void keeper_remove(struct loop *loop, struct keeper_task *task)
{
    struct keeper *keeper = loop->keeper;
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->lock);
    for (struct keeper_task **at = &keeper->tasks; *at; at = &(*at)->next) {
        if (*at == task) {
            *at = task->next;
            break;
        }
    }
    pthread_mutex_unlock(&keeper->lock);
}
