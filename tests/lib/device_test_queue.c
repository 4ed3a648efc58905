/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device's queue. Jobs run as late as can be, in their order, by whoever waits for them: a
 * wait that is missing shows in every run.
 */
#include "lib/device_test_internal.h"

void test_queue_init(struct test_queue *queue)
{
    pthread_mutexattr_t recursive; /* what runs may give back memory, which is enqueued */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&queue->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

void test_queue_release(struct test_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
}

void test_enqueue(struct test_queue *queue, struct test_job *job)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    pthread_mutex_unlock(&queue->lock);
}

int test_drain_alone(struct test_queue *queue, struct error *err)
{
    struct error failure = ERROR_INIT;
    pthread_mutex_lock(&queue->lock);
    while (queue->first) {
        struct test_job *job = queue->first;
        if (!(queue->first = job->next))
            queue->last = NULL;
        if (!failure.code)
            job->run(job, &failure);
        job->free(job);
    }
    if (failure.code)
        *err = failure;
    return failure.code;
}

void test_end_alone(struct test_queue *queue)
{
    pthread_mutex_unlock(&queue->lock);
}

int test_drain(struct test_queue *queue, struct error *err)
{
    int code = test_drain_alone(queue, err);
    test_end_alone(queue);
    return code;
}
