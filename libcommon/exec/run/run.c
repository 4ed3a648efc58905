/* SPDX-License-Identifier: Apache-2.0
 *
 * Running and starting plans: a run from its beginning to its end.
 */
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/dynamic.h"
#include "exec/step/rendezvous.h"

/* ---- runs ---- */

/* A run's memory is kept for later steps, so there is one run for each step that ever ran at the
 * same time. Runs of whole plans, and of plans with segments, have their memory in arenas that all
 * plans of a session share, whose lock also guards the idle runs. */

static void run_free(struct run *run)
{
    captured_release(run);
    for (size_t i = 1; i < run->plan->frames.n; i++)
        loop_run_free(run, run->idle[i].loop);
    frame_clear(run);
    iterations_release(run);
    device_step_release(&run->on_device);
    vec_release(&run->own.temporaries);
    arena_release(&run->memory);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->changed);
    mem_free(run);
}

/* Threads that wait for a value learn from the rendezvous that the step stops. */
static void abort_rendezvous(struct step_waiter *waiter, const struct error *reason)
{
    struct rendezvous *rendezvous = CONTAINER_OF(waiter, struct run, stop)->step->rendezvous;
    rendezvous->abort(rendezvous, reason);
}

static struct run *run_new(struct plan *plan)
{
    struct run *run = mem_alloc(sizeof *run);
    run->plan = plan;
    run->keeper.run = run;
    run->stop.cancelled = abort_rendezvous;
    run->feeds = arena_array(&run->memory, (size_t)plan->n_feeds, sizeof *run->feeds);
    run->fetches = arena_array(&run->memory, (size_t)plan->n_fetches, sizeof *run->fetches);
    run->idle = arena_array(&run->memory, plan->frames.n, sizeof *run->idle);
    if (plan->has_branches)
        run->dead = arena_array(&run->memory, plan->values.n + plan->items.n, sizeof *run->dead);
    captured_open(run);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    if (plan->is_whole) { /* the one iteration stays as long as the run */
        run->root = frame_new(run, FRAME_ROOT, NULL);
        iteration_new(run, run->root, 0);
    }
    return run;
}

/* An idle run, or a new one, with the memory of its arenas; NULL with the error set. */
static struct run *run_take(struct plan *plan, struct error *err)
{
    const struct plan_frame *root = &plan->frames.items[FRAME_ROOT];
    bool is_short = false;
    pthread_mutex_lock(&plan->options.arenas->lock);
    struct run *run = plan->idle_runs;
    if (run)
        plan->idle_runs = run->next;
    else
        run = run_new(plan);
    for (int i = 0; root->borrows && i < 2 && !is_short; i++) {
        const struct shared_arena wanted = {.next = run->arenas[i],
                                            .device = plan->options.device,
                                            .on_device = i == 1,
                                            .bytes = root->arena_bytes[i]};
        run->arenas[i] = wanted.bytes ? arena_take(plan->options.arenas, &wanted) : NULL;
        is_short = wanted.bytes && !run->arenas[i];
        if (is_short && i && run->arenas[0])
            run->arenas[0]->busy = false;
        if (is_short)
            error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", wanted.bytes,
                      mem_limit_text());
    }
    pthread_mutex_unlock(&plan->options.arenas->lock);
    if (!is_short)
        return run;
    run_free(run);
    return NULL;
}

static void run_free_idle(struct plan *plan)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    struct run *idle = plan->idle_runs;
    plan->idle_runs = NULL;
    pthread_mutex_unlock(&plan->options.arenas->lock);
    while (idle) {
        struct run *next = idle->next;
        run_free(idle);
        idle = next;
    }
}

/* ---- feeds, and the return of a run ---- */

/* Feeds must be as planned. */
static int check_feeds(const struct plan *plan, const struct tensor *feeds, struct error *err)
{
    for (int i = 0; i < plan->n_feeds; i++) {
        const struct tensor *wanted = &plan->feed_values[i];
        const struct node_output output = {wanted->type, false, wanted->shape};
        if (plan_check_fed(graph_node(plan->source, plan->feeds[i].node), &output, feeds[i].type,
                           &feeds[i].shape, err))
            return err->code;
    }
    return 0;
}

static void end_step(struct step *step, const struct step_done *done)
{
    if (!done || !done->is_part)
        step_end(step);
}

/* Gives the run back to the plan. */
static void end(struct run *run, int code, const struct error *err)
{
    struct plan *plan = run->plan;
    for (int i = 0; i < plan->n_fetches; i++) {
        if (code)
            tensor_release(&run->fetches[i]);
        run->results[i] = run->fetches[i];
        run->fetches[i] = (struct tensor)TENSOR_INIT;
    }
    if (code)
        step_stop(run->step, err);
    if (run->waits)
        step_off_cancel(run->step, &run->stop);
    end_step(run->step, run->done);
    if (plan->is_whole)
        iteration_clear(plan, run->root->oldest);
    pthread_mutex_lock(&plan->options.arenas->lock);
    for (int i = 0; i < 2; i++)
        if (run->arenas[i])
            run->arenas[i]->busy = false;
    run->next = plan->idle_runs;
    plan->idle_runs = run;
    pthread_mutex_unlock(&plan->options.arenas->lock);
}

/* ---- the end ---- */

/* Called when only enqueued work is left of the step. After a step without errors, an item that
 * still waits is an error. */
static void release_run(struct run *run)
{
    bool is_whole = run->plan->is_whole;
    struct error err = ERROR_INIT;
    region_give_locks(&run->keeper);
    const struct item *waiting = is_whole || run_is_stopped(run) ? NULL : ready_find_waiting(run);
    if (waiting) {
        error_set(&err, ERR_INTERNAL, "waits for what never happens");
        item_fail(waiting, &err);
        step_stop(run->step, &err);
    }
    if (!is_whole)
        frame_clear(run);
    device_step_end(&run->on_device);
}

/* Ends a run whose enqueued work is over. Its result is the device's failure (NULL or no error:
 * none), or the error flag that a kernel left in the step block, which comes before an error of the
 * step itself. */
static int collect(struct run *run, const struct error *devices, struct error *err)
{
    bool has_failed = devices && devices->code;
    device_step_tell(&run->on_device, run->step, has_failed);
    const struct fault *fault = has_failed ? NULL : device_step_fault(&run->on_device);
    if (has_failed)
        step_stop(run->step, devices);
    int code = fault                 ? fault_report(fault, err)
               : run_is_stopped(run) ? step_stop_reason(run->step, err)
                                     : fetches_bring_home(run->plan, run->fetches, err);
    captured_over(run, !code);
    end(run, code, err);
    return code;
}

static void enqueued_is_over(struct event_waiter *over, const struct error *failure)
{
    struct run *run = CONTAINER_OF(over, struct run, over);
    struct step_done *done = run->done;
    struct error err = ERROR_INIT;
    deferred_begin();
    int code = collect(run, failure, &err);
    done->done(done, code, &err);
    deferred_end();
}

void run_conclude(struct run *run)
{
    release_run(run);
    run->over.done = enqueued_is_over;
    device_notify_end(run->plan->options.device, &run->over);
}

/* ---- the beginning ---- */

/* NULL with the error set: the step has ended. */
static struct run *begin(struct plan *plan, struct step *step, const struct tensor *feeds,
                         struct tensor *fetches, struct step_done *done, struct error *err)
{
    error_clear(err);
    if (plan->n_fetches)
        memset(fetches, 0, (size_t)plan->n_fetches * sizeof *fetches);
    thread_take_up(plan->options.device);
    struct run *run = check_feeds(plan, feeds, err) ? NULL : run_take(plan, err);
    if (!run) {
        if (step->rendezvous)
            step->rendezvous->abort(step->rendezvous, err);
        step_stop(step, err);
        end_step(step, done);
        return NULL;
    }
    run->step = step;
    run->results = fetches;
    run->done = done;
    for (int i = 0; i < plan->n_feeds; i++) {
        run->feeds[i] = feeds[i];
        run->feeds[i].buffer = NULL;
    }
    if (plan->is_whole)
        iteration_place(run, run->root->oldest);
    run->waits = step->rendezvous && !step_on_cancel(step, &run->stop, err);
    if (step->rendezvous && !run->waits)
        step->rendezvous->abort(step->rendezvous, err);
    if (!err->code && plan->is_on_device)
        device_step_begin(&run->on_device, plan->options.device, step, err);
    if (!err->code)
        return run;
    end(run, err->code, err);
    return NULL;
}

/* ---- a waiting thread ---- */

/* Helps until nothing is left and no other helper touches the run. */
static void wait_for(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->active > 0 || run->helpers > 1) {
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
    run->helpers = 0;
    pthread_mutex_unlock(&run->lock);
}

int plan_run(struct plan *plan, struct step *step, const struct tensor *feeds,
             struct tensor *fetches, struct error *err)
{
    struct error failure = ERROR_INIT;
    struct run *run = begin(plan, step, feeds, fetches, NULL, err);
    if (!run)
        return err->code;
    if (plan->is_whole) { /* without queue or counters */
        struct activation *a = run->own.activation = run->root->oldest->activations;
        a->at = a->n_locked = 0;
        if (plan->n_order && region_run(run, &run->own, NULL))
            step_stop(step, &run->own.err);
        run->own.err.code = 0;
    } else {
        run->helpers = 1;
        deferred_begin();
        region_take_locks(&run->keeper, &plan->locks);
        run_begin(run, true);
        wait_for(run);
        deferred_end();
    }
    release_run(run);
    device_finish(plan->options.device, &failure);
    return collect(run, &failure, err);
}

/* ---- a started step ---- */

static void lock_or_begin(struct deferred_work *deferred)
{
    struct run *run = CONTAINER_OF(deferred, struct run, keeper.deferred);
    if (!region_take_locks(&run->keeper, &run->plan->locks))
        return;
    if (!run->done->computes) {
        run_begin(run, false);
        return;
    }
    run->helpers = 1;
    run_begin(run, true);
    run_help(run);
}

void plan_start(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct step_done *done)
{
    struct error err = ERROR_INIT;
    struct run *run = begin(plan, step, feeds, fetches, done, &err);
    if (!run) {
        done->done(done, err.code, &err);
    } else {
        run->keeper.deferred.run = lock_or_begin;
        deferred_run(&run->keeper.deferred);
    }
}

/* ---- plans ---- */

void plan_trim(struct plan *plan)
{
    if (plan->frames.items[FRAME_ROOT].borrows) {
        run_free_idle(plan);
        pthread_mutex_lock(&plan->options.arenas->lock);
        arenas_trim(plan->options.arenas, NULL, false);
        pthread_mutex_unlock(&plan->options.arenas->lock);
    }
    for (int i = 0; i < 2; i++)
        if (plan->pools[i])
            pool_trim(plan->pools[i]);
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    run_free_idle(plan);
    plan_release(plan);
}
