/* SPDX-License-Identifier: Apache-2.0 */
#include "base/serial_queue.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/thread.h"

struct queued_work {
    void (*work)(void *argument);
    void *argument;
    struct queued_work *next;
};

struct serial_queue {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    struct queued_work *first, *last;
    bool ends;
};

static void *run(void *argument)
{
    struct serial_queue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (!queue->first && !queue->ends)
            pthread_cond_wait(&queue->changed, &queue->lock);
        struct queued_work *item = queue->first;
        if (!item)
            break;
        queue->first = item->next;
        pthread_mutex_unlock(&queue->lock);
        item->work(item->argument);
        mem_free(item);
        pthread_mutex_lock(&queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

struct serial_queue *serial_queue_new(void)
{
    struct serial_queue *queue = mem_alloc(sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (thread_start(&queue->thread, run, queue))
        mem_exhausted(0);
    return queue;
}

bool serial_queue_add(struct serial_queue *queue, void (*work)(void *argument), void *argument)
{
    struct queued_work *item = mem_alloc(sizeof *item);
    *item = (struct queued_work){work, argument, NULL};
    pthread_mutex_lock(&queue->lock);
    bool taken = !queue->ends;
    if (taken && queue->first)
        queue->last->next = item;
    else if (taken)
        queue->first = item;
    if (taken)
        queue->last = item;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (!taken)
        mem_free(item);
    return taken;
}

void serial_queue_free(struct serial_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->ends = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    mem_free(queue);
}
