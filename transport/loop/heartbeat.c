/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/loop/heartbeat.h"

#include <time.h>

#include "base/memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "transport/loop/loop_private.h"

struct heartbeat {
    pthread_t thread;
    pthread_mutex_t lock; /* held while tasks are called */
    pthread_cond_t changed;
    struct heartbeat_task *tasks;
    double period;
    bool ended, started;
};

static void *keep_time(void *argument)
{
    struct heartbeat *heartbeat = argument;
    pthread_mutex_lock(&heartbeat->lock);
    while (!heartbeat->ended) {
        if (heartbeat->tasks) {
            struct timespec until = time_after(heartbeat->period);
            pthread_cond_timedwait(&heartbeat->changed, &heartbeat->lock, &until);
        } else {
            pthread_cond_wait(&heartbeat->changed, &heartbeat->lock);
        }
        for (struct heartbeat_task *task = heartbeat->tasks; task && !heartbeat->ended;
             task = task->next)
            task->call(task->context);
    }
    pthread_mutex_unlock(&heartbeat->lock);
    return NULL;
}

void heartbeat_free(struct heartbeat *heartbeat)
{
    if (!heartbeat)
        return;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->ended = true;
    pthread_cond_signal(&heartbeat->changed);
    pthread_mutex_unlock(&heartbeat->lock);
    if (heartbeat->started)
        pthread_join(heartbeat->thread, NULL);
    pthread_cond_destroy(&heartbeat->changed);
    pthread_mutex_destroy(&heartbeat->lock);
    mem_free(heartbeat);
}

void heartbeat_add(struct loop *loop, struct heartbeat_task *task, double period)
{
    struct heartbeat *heartbeat = loop->heartbeat;
    if (!heartbeat) {
        heartbeat = mem_alloc(sizeof *heartbeat);
        pthread_mutex_init(&heartbeat->lock, NULL);
        time_cond_init(&heartbeat->changed);
        heartbeat->period = 1;
        heartbeat->started = !thread_start(&heartbeat->thread, keep_time, heartbeat);
        loop->heartbeat = heartbeat;
    }
    pthread_mutex_lock(&heartbeat->lock);
    task->next = heartbeat->tasks;
    heartbeat->tasks = task;
    if (period < heartbeat->period)
        heartbeat->period = period;
    pthread_cond_signal(&heartbeat->changed);
    pthread_mutex_unlock(&heartbeat->lock);
}

void heartbeat_remove(struct loop *loop, struct heartbeat_task *task)
{
    struct heartbeat *heartbeat = loop->heartbeat;
    if (!heartbeat)
        return;
    pthread_mutex_lock(&heartbeat->lock);
    for (struct heartbeat_task **at = &heartbeat->tasks; *at; at = &(*at)->next) {
        if (*at == task) {
            *at = task->next;
            break;
        }
    }
    pthread_mutex_unlock(&heartbeat->lock);
}
