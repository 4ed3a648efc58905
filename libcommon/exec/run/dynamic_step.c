/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of a dynamic plan, from its beginning to its end, and the memory of steps.
 */
#include <stddef.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/queue.h"
#include "exec/run/dynamic.h"

/* ---- runs are kept ---- */

static struct run *run_new(struct plan *plan)
{
    struct run *run = mem_alloc(sizeof *run);
    size_t n = plan->dynamic->frames.n;
    run->plan = plan;
    run->idle_frames = mem_array(n, sizeof *run->idle_frames);
    run->idle_iterations = mem_array(n, sizeof *run->idle_iterations);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    return run;
}

static struct run *run_take(struct plan *plan, const struct execution *execution)
{
    pthread_mutex_lock(&plan->lock);
    struct run *run = plan->idle_runs;
    if (run)
        plan->idle_runs = run->next;
    pthread_mutex_unlock(&plan->lock);
    if (!run)
        run = run_new(plan);
    run->execution = *execution;
    run->step = execution->step;
    run->feeds = execution->feeds;
    run->fetches = execution->fetches;
    run->queue = NULL;
    run->failed = false;
    run->n_kept = 0;
    return run;
}

static void run_give(struct run *run)
{
    struct plan *plan = run->plan;
    pthread_mutex_lock(&plan->lock);
    run->next = plan->idle_runs;
    plan->idle_runs = run;
    pthread_mutex_unlock(&plan->lock);
}

/* ---- the end ---- */

static void let_go_of_reads(struct run *run)
{
    const struct dynamic *d = run->plan->dynamic;
    while (run->n_kept > 0)
        variable_unlock(d->kept.items[--run->n_kept], false);
}

/* After a step without errors: something that waits for ever is an error. */
static void check_waiting(struct run *run)
{
    const struct item *waiting = run->failed ? NULL : ready_find_waiting(run);
    if (!waiting)
        return;
    run->failed = true;
    error_set(&run->err, ERR_INTERNAL, "waits for what never happens");
    item_fail(waiting, &run->err);
}

/* The run goes back to the plan. */
static int end(struct run *run, int code, struct error *err)
{
    struct plan *plan = run->plan;
    for (int i = 0; code && i < plan->n_fetches; i++)
        tensor_release(&run->fetches[i]);
    execution_close(&run->execution, code, err);
    run_give(run);
    return code;
}

/* Nothing of the step is left but what was enqueued. */
static void let_go(struct run *run)
{
    let_go_of_reads(run);
    check_waiting(run);
    frame_clear(run);
}

/* That is over, too. */
static int collect(struct run *run, const struct error *devices, struct error *err)
{
    const struct error *own = run->failed ? &run->err : NULL;
    int code = execution_result(run->step, &run->on_device, own, devices, err);
    if (!code)
        code = fetches_bring_home(run->plan, run->fetches, err);
    return end(run, code, err);
}

static void conclude(struct event_waiter *over, const struct error *failure)
{
    struct run *run = CONTAINER_OF(over, struct run, over);
    struct step_done *done = run->execution.done;
    struct error err = ERROR_INIT;
    deferred_begin();
    int code = collect(run, failure, &err);
    done->done(done, code, &err);
    deferred_end();
}

void run_conclude(struct run *run)
{
    let_go(run);
    run->over.done = conclude;
    device_step_end(&run->on_device);
    device_notify_end(run->plan->options.device, &run->over);
}

/* ---- a thread that waits ---- */

/* Reads that last as long as the step are begun in the order of all locks. */
static void keep_reads(struct run *run)
{
    const struct dynamic *d = run->plan->dynamic;
    for (; run->n_kept < d->kept.n; run->n_kept++)
        variable_lock_wait(d->kept.items[run->n_kept], false);
}

/* Helps, too, until nothing is left and no helper touches the run. */
static void wait_for(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->active > 0 || run->helpers > 0) {
        if (run->queue) {
            run_drain(run);
        } else if (deferred_is_pending()) {
            pthread_mutex_unlock(&run->lock);
            deferred_catch_up();
            pthread_mutex_lock(&run->lock);
        } else {
            pthread_cond_wait(&run->changed, &run->lock);
        }
    }
    pthread_mutex_unlock(&run->lock);
}

static int open(struct run *run, struct error *err)
{
    int code = execution_open(&run->execution, run->plan, err);
    if (!code && run->plan->is_on_device)
        code = device_step_open(&run->on_device, run->plan->options.device, err);
    if (!code && run->plan->is_on_device)
        code = device_step_begin(&run->on_device, run->step, err);
    return code;
}

int dynamic_run(struct plan *plan, struct execution *execution, struct error *err)
{
    struct run *run = run_take(plan, execution);
    int code = open(run, err);
    if (code)
        return end(run, code, err);
    deferred_begin();
    keep_reads(run);
    run_begin(run, true);
    wait_for(run);
    deferred_end();
    struct error failure = ERROR_INIT;
    let_go(run);
    device_step_end(&run->on_device);
    device_finish(plan->options.device, &failure);
    return collect(run, &failure, err);
}

/* ---- a step that is started ---- */

static void resume(struct variable_waiter *waiter)
{
    struct run *run = CONTAINER_OF(waiter, struct run, waiter);
    run->n_kept++;
    deferred_run(&run->deferred);
}

static void begin(struct deferred_work *deferred)
{
    struct run *run = CONTAINER_OF(deferred, struct run, deferred);
    const struct dynamic *d = run->plan->dynamic;
    for (; run->n_kept < d->kept.n; run->n_kept++) {
        run->waiter.resume = resume;
        if (!variable_lock(d->kept.items[run->n_kept], false, &run->waiter))
            return;
    }
    if (!run->execution.done->computes) {
        run_begin(run, false);
        return;
    }
    run->helpers = 1;
    run_begin(run, true);
    run_help(run);
}

void dynamic_start(struct plan *plan, const struct execution *execution)
{
    struct step_done *done = execution->done;
    struct run *run = run_take(plan, execution);
    struct error err = ERROR_INIT;
    int code = open(run, &err);
    if (code) {
        end(run, code, &err);
        done->done(done, code, &err);
        return;
    }
    run->deferred.run = begin;
    deferred_run(&run->deferred);
}

void dynamic_free_runs(struct plan *plan)
{
    for (struct run *run = plan->idle_runs, *next; run; run = next) {
        next = run->next;
        frame_free_idle(run);
        device_step_release(&run->on_device);
        mem_free(run->idle_frames);
        mem_free(run->idle_iterations);
        pthread_mutex_destroy(&run->lock);
        pthread_cond_destroy(&run->changed);
        mem_free(run);
    }
    plan->idle_runs = NULL;
}
