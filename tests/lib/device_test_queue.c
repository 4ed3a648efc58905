/* SPDX-License-Identifier: Apache-2.0
 *
 * The TEST device's queue: jobs run one after the other on a thread of their own, now and then
 * late.
 */
#include <signal.h>
#include <unistd.h>

#include "lib/device_test_internal.h"

/* One job in so many is late by so many microseconds. */
#define LATE_EVERY 64
#define LATE_MICROSECONDS 60

static struct test_job *next_job(struct test_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->first && !queue->stops)
        pthread_cond_wait(&queue->changed, &queue->lock);
    struct test_job *job = queue->first;
    if (job && !(queue->first = job->next))
        queue->last = NULL;
    pthread_mutex_unlock(&queue->lock);
    return job;
}

static void run_job(struct test_queue *queue, struct test_job *job, uint64_t n)
{
    struct error err = ERROR_INIT;
    if (n % LATE_EVERY == 0)
        usleep(LATE_MICROSECONDS);
    pthread_mutex_lock(&queue->lock);
    bool failed = queue->err.code != 0;
    pthread_mutex_unlock(&queue->lock);
    if (!failed)
        job->run(job, &err);
    job->free(job);
    pthread_mutex_lock(&queue->lock);
    if (!failed && err.code)
        queue->err = err;
    queue->n_over++;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void *work(void *argument)
{
    struct test_queue *queue = argument;
    struct test_job *job;
    queue->cpu->enter_thread(queue->cpu, queue->cpu->threads);
    for (uint64_t n = 1; (job = next_job(queue)); n++)
        run_job(queue, job, n);
    return NULL;
}

int test_queue_start(struct test_queue *queue, struct device *cpu, struct error *err)
{
    sigset_t all, old;
    queue->cpu = cpu;
    pthread_mutex_init(&queue->order, NULL);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    queue->started = !pthread_create(&queue->thread, NULL, work, queue);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return queue->started ? 0 : error_set(err, ERR_OS, "cannot start the thread of a device");
}

void test_queue_stop(struct test_queue *queue)
{
    if (queue->started) {
        pthread_mutex_lock(&queue->lock);
        queue->stops = true;
        pthread_cond_broadcast(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
        pthread_join(queue->thread, NULL);
    }
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    pthread_mutex_destroy(&queue->order);
}

void test_enqueue(struct test_queue *queue, struct test_job *job)
{
    pthread_mutex_lock(&queue->order);
    pthread_mutex_lock(&queue->lock);
    if (queue->last)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    queue->n_enqueued++;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_mutex_unlock(&queue->order);
}

int test_drain(struct test_queue *queue, struct error *err)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t until = queue->n_enqueued;
    while (queue->n_over < until)
        pthread_cond_wait(&queue->changed, &queue->lock);
    int code = queue->err.code;
    if (code)
        *err = queue->err;
    error_clear(&queue->err);
    pthread_mutex_unlock(&queue->lock);
    return code;
}
