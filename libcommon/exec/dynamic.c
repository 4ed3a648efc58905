/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the items of a dynamic plan. Whoever finishes an item runs what became ready by it: cheap
 * items at once, one expensive item next; the other expensive ones go to the queue, from which the
 * thread that called and the process's helpers take.
 */
#include "exec/dynamic.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/step.h"
#include "exec/trace.h"
#include "exec/workers.h"

static void execute(struct run *run, struct activation *a);

/* ---- the queue ---- */

void run_push(struct run *run, struct activation *a)
{
    a->next = run->queue;
    run->queue = a;
    pthread_cond_signal(&run->changed);
}

static void help(void *argument);

/* With the lock held: asks for helpers, up to one per activation in the queue. */
static void call_helpers(struct run *run, int wanted)
{
    int limit = run->plan->dynamic->threads - 1;
    while (wanted-- > 0 && run->helpers < limit) {
        run->helpers++;
        if (!workers_submit(limit, help, run)) {
            run->helpers--;
            return;
        }
    }
}

/* Distributes what became ready: all cheap or dead ones and one expensive one stay (in *mine). */
static void distribute(struct run *run, struct activation *ready, struct activation **mine)
{
    struct activation *kept = NULL;
    int queued = 0;
    while (ready) {
        struct activation *a = ready;
        ready = a->next;
        if (a->is_dead || run->plan->dynamic->items[a->item].is_cheap) {
            a->next = *mine;
            *mine = a;
        } else {
            if (kept) {
                run_push(run, kept);
                queued++;
            }
            kept = a;
        }
    }
    if (kept && *mine) { /* whoever is free takes it while we run the cheap ones */
        run_push(run, kept);
        queued++;
    } else if (kept) {
        kept->next = NULL;
        *mine = kept;
    }
    call_helpers(run, queued);
}

/* An activation is over. With the lock held. True: it is the first that failed, and those who wait
 * have to be told, without the lock, by `stop`. */
static bool finish(struct run *run, struct activation *a, int code, struct activation **mine)
{
    struct activation *ready = NULL;
    const struct dynamic_item *di = &run->plan->dynamic->items[a->item];
    bool first_failure = code && !run->failed;
    if (first_failure) {
        run->failed = true;
        run->err = a->err;
    }
    if (di->role == ROLE_RECV && !a->iteration->outputs[di->first_output].type)
        a->is_dead = true;
    if (!run->failed)
        frame_propagate(run, a, &ready);
    distribute(run, ready, mine);
    if (!first_failure && --run->active == 0)
        pthread_cond_broadcast(&run->changed);
    return first_failure;
}

/* The run is not over before all have been told. */
static void stop(struct run *run)
{
    step_stop(run->step, &run->err);
    pthread_mutex_lock(&run->lock);
    if (--run->active == 0)
        pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

static int dead_fetch(struct activation *a)
{
    const struct item *item = &a->run->plan->items.items[a->item];
    if (!a->is_dead || item->code != &plan_fetch_code)
        return 0;
    return error_set(&a->err, ERR_DATA,
                     "a fetched value is dead: it is in a branch that was not taken");
}

/* Runs an activation and whatever of its consequences stays with this thread. */
static void execute(struct run *run, struct activation *a)
{
    struct activation *mine = a;
    a->next = NULL;
    while (mine) {
        a = mine;
        mine = a->next;
        int code = 0;
        bool sends = run->plan->dynamic->items[a->item].role == ROLE_SEND;
        bool skip = run->failed || (a->is_dead && !sends);
        if (!run->failed && a->is_dead)
            code = dead_fetch(a);
        if (!skip && !kernel_take_holds(run, a))
            continue;
        if (!skip)
            code = kernel_run(run, a);
        if (code == KERNEL_PENDING)
            continue;
        if (!code)
            code = step_stopped(run->step, &a->err);
        kernel_release_inputs(run, a);
        pthread_mutex_lock(&run->lock);
        bool tell = finish(run, a, code, &mine);
        pthread_mutex_unlock(&run->lock);
        if (tell)
            stop(run);
    }
}

void run_async_done(struct call_host *host, int result)
{
    struct activation *a = (struct activation *)host, *mine = NULL;
    struct run *run = a->run;
    if (result > 0)
        item_fail(host->item, &a->err);
    kernel_release_inputs(run, a);
    pthread_mutex_lock(&run->lock);
    bool tell = finish(run, a, result > 0 ? result : 0, &mine);
    while (mine) { /* the caller is somebody else's thread: it only queues */
        struct activation *next = mine->next;
        run_push(run, mine);
        mine = next;
    }
    call_helpers(run, 1);
    pthread_mutex_unlock(&run->lock);
    if (tell)
        stop(run);
}

static struct activation *pop(struct run *run)
{
    struct activation *a = run->queue;
    if (a)
        run->queue = a->next;
    return a;
}

static void help(void *argument)
{
    struct run *run = argument;
    struct device *device = run->plan->options.device;
    static _Thread_local struct device *entered;
    if (entered != device && device->enter_thread)
        device->enter_thread(device, 1);
    entered = device;
    pthread_mutex_lock(&run->lock);
    for (struct activation *a; (a = pop(run));) {
        pthread_mutex_unlock(&run->lock);
        execute(run, a);
        pthread_mutex_lock(&run->lock);
    }
    run->helpers--;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

/* ---- a step ---- */

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

static struct run *run_take(struct plan *plan)
{
    pthread_mutex_lock(&plan->lock);
    struct run *run = plan->dynamic->idle_runs;
    if (run)
        plan->dynamic->idle_runs = run->next;
    pthread_mutex_unlock(&plan->lock);
    return run ? run : run_new(plan);
}

static void run_give(struct run *run)
{
    struct plan *plan = run->plan;
    pthread_mutex_lock(&plan->lock);
    run->next = plan->dynamic->idle_runs;
    plan->dynamic->idle_runs = run;
    pthread_mutex_unlock(&plan->lock);
}

/* The thread that called works, too, until nothing is left and no helper touches the run. */
static void work(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    struct activation *mine = NULL, *ready = NULL;
    run->active = 1; /* the step is not over while its roots are being found */
    frame_start_root(run, &ready);
    distribute(run, ready, &mine);
    run->active--;
    while (mine) {
        struct activation *next = mine->next;
        run_push(run, mine);
        mine = next;
    }
    while (run->active > 0 || run->helpers > 0) {
        struct activation *a = pop(run);
        int withdrawn = 0;
        if (run->active == 0) /* helpers that are busy elsewhere need not come any more */
            withdrawn = workers_withdraw(help, run);
        run->helpers -= withdrawn;
        if (!a && !withdrawn)
            pthread_cond_wait(&run->changed, &run->lock);
        if (!a)
            continue;
        pthread_mutex_unlock(&run->lock);
        execute(run, a);
        pthread_mutex_lock(&run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

/* Reads that last as long as the step are begun in the order of all holds. */
static void keep_reads(const struct dynamic *d)
{
    for (size_t i = 0; i < d->kept.n; i++)
        variable_hold_wait(d->kept.items[i], false);
}

static void let_go_of_reads(const struct dynamic *d)
{
    for (size_t i = 0; i < d->kept.n; i++)
        variable_unhold(d->kept.items[i], false);
}

int dynamic_run(struct plan *plan, struct step *step, const struct tensor *feeds,
                struct tensor *fetches, struct error *err)
{
    struct run *run = run_take(plan);
    run->step = step;
    run->feeds = feeds;
    run->fetches = fetches;
    run->queue = NULL;
    run->failed = false;
    keep_reads(plan->dynamic);
    work(run);
    let_go_of_reads(plan->dynamic);
    const struct item *waiting = run->failed ? NULL : frame_find_waiting(run);
    if (waiting) {
        run->failed = true;
        error_set(&run->err, ERR_INTERNAL, "waits for what never happens");
        item_fail(waiting, &run->err);
    }
    int code = run->failed ? run->err.code : 0;
    if (code)
        *err = run->err;
    frame_clear(run);
    struct error sync_error = ERROR_INIT;
    int synced = plan->options.device->sync(plan->options.device, &sync_error);
    if (!code && synced) {
        *err = sync_error;
        code = synced;
    }
    for (int i = 0; code && i < plan->n_fetches; i++)
        tensor_release(&fetches[i]);
    run_give(run);
    return code;
}

void dynamic_free(struct plan *plan)
{
    struct dynamic *d = plan->dynamic;
    if (!d)
        return;
    for (struct run *run = d->idle_runs, *next; run; run = next) {
        next = run->next;
        frame_free_idle(run);
        mem_free(run->idle_frames);
        mem_free(run->idle_iterations);
        pthread_mutex_destroy(&run->lock);
        pthread_cond_destroy(&run->changed);
        mem_free(run);
    }
    for (size_t i = 0; i < d->frames.n; i++) {
        vec_release(&d->frames.items[i].items);
        vec_release(&d->frames.items[i].exits);
        vec_release(&d->frames.items[i].over);
    }
    vec_release(&d->frames);
    vec_release(&d->kept);
    pool_free(d->pool);
    pool_free(d->host_pool);
    mem_free(d);
}
