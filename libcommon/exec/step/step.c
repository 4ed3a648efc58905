/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/step.h"

#include <pthread.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/vec.h"
#include "exec/device/deferred.h"

/* A step is plain memory that is neither opened nor closed, so the locks of all steps are here.
 * They are held for a few instructions, and never while a waiter is told. */
#define N_GUARDS 16

static struct guard {
    pthread_mutex_t lock;
    pthread_cond_t told; /* signalled when a waiter, or all, have been told */
} guards[N_GUARDS] = {[0 ... N_GUARDS - 1] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}};

static struct guard *lock_step(const struct step *step)
{
    struct guard *guard = &guards[(uintptr_t)step / sizeof *step % N_GUARDS];
    pthread_mutex_lock(&guard->lock);
    return guard;
}

uint64_t step_resource_add(struct step *step, void *object, void (*release)(void *object))
{
    struct guard *guard = lock_step(step);
    vec_push(&step->resources, ((struct step_resource){object, release}));
    uint64_t handle = step->resources.n;
    pthread_mutex_unlock(&guard->lock);
    return handle;
}

void *step_resource_get(struct step *step, uint64_t handle, void (*release)(void *object))
{
    struct guard *guard = lock_step(step);
    void *object = NULL;
    if (handle > 0 && handle <= step->resources.n) {
        const struct step_resource *found = &step->resources.items[handle - 1];
        object = found->release == release ? found->object : NULL;
    }
    pthread_mutex_unlock(&guard->lock);
    return object;
}

/* ---- stopping ---- */

static void unlink_waiter(struct step_waiter *waiter)
{
    *waiter->at = waiter->next;
    if (waiter->next)
        waiter->next->at = waiter->at;
}

int step_on_cancel(struct step *step, struct step_waiter *waiter, struct error *err)
{
    struct step_stop *stop = &step->stop;
    struct guard *guard = lock_step(step);
    int code = stop->reason.code;
    if (code) {
        *err = stop->reason;
    } else {
        waiter->was_told = false;
        waiter->next = stop->waiters;
        waiter->at = &stop->waiters;
        if (stop->waiters)
            stop->waiters->at = &waiter->next;
        stop->waiters = waiter;
    }
    pthread_mutex_unlock(&guard->lock);
    return code;
}

bool step_off_cancel(struct step *step, struct step_waiter *waiter)
{
    struct step_stop *stop = &step->stop;
    struct guard *guard = lock_step(step);
    bool was_told = waiter->was_told;
    if (!was_told)
        unlink_waiter(waiter);
    while (was_told && stop->told == waiter && !pthread_equal(stop->teller, pthread_self()))
        pthread_cond_wait(&guard->told, &guard->lock);
    pthread_mutex_unlock(&guard->lock);
    return was_told;
}

static void stop_step(struct step *step, const struct error *reason, bool cancelled)
{
    struct step_stop *stop = &step->stop;
    deferred_begin(); /* waiters' work is deferred: it may end the step */
    struct guard *guard = lock_step(step);
    if (!stop->reason.code) {
        stop->reason = *reason;
        atomic_store(&stop->stopped, true);
        if (cancelled)
            atomic_store(&step->cancelled, true);
        stop->teller = pthread_self();
        while (stop->waiters) {
            struct step_waiter *waiter = stop->waiters;
            unlink_waiter(waiter);
            waiter->was_told = true;
            stop->told = waiter;
            pthread_mutex_unlock(&guard->lock);
            waiter->cancelled(waiter, &stop->reason); /* may free the waiter */
            pthread_mutex_lock(&guard->lock);
            stop->told = NULL;
            pthread_cond_broadcast(&guard->told);
        }
    }
    pthread_mutex_unlock(&guard->lock);
    deferred_end();
}

void step_stop(struct step *step, const struct error *reason)
{
    stop_step(step, reason, false);
}

void step_cancel(struct step *step, const struct error *reason)
{
    stop_step(step, reason, true);
}

int step_stop_reason(struct step *step, struct error *err)
{
    struct guard *guard = lock_step(step);
    int code = step->stop.reason.code;
    if (code)
        *err = step->stop.reason;
    pthread_mutex_unlock(&guard->lock);
    return code ? code : error_set(err, ERR_CANCELLED, "the step was cancelled");
}

/* Waits for a thread that still tells waiters of the last step. */
void step_end(struct step *step)
{
    struct step_stop *stop = &step->stop;
    for (size_t i = step->resources.n; i-- > 0;)
        step->resources.items[i].release(step->resources.items[i].object);
    vec_release(&step->resources);
    struct guard *guard = lock_step(step);
    while (stop->told)
        pthread_cond_wait(&guard->told, &guard->lock);
    error_clear(&stop->reason);
    atomic_store(&stop->stopped, false);
    pthread_mutex_unlock(&guard->lock);
}
