/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the items of a dynamic plan. The thread that finishes an item runs what became ready by
 * it: cheap items at once and, if it may, one expensive item next. Other expensive items go to the
 * queue, from which the thread that runs or starts the step and the process's helper threads take.
 * A thread that merely delivers a value for which a kernel waited runs no expensive items.
 *
 * A run is over when nothing is active and no helper will touch it. The thread that brings this
 * about concludes the run, or wakes the helper that waits for it in plan_run.
 */
#include "exec/run/dynamic.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/step/collective_kernel.h"
#include "exec/step/workers.h"

/* ---- the queue: ready and expensive activations, in no particular order ---- */

/* With the lock held. */
static void push(struct run *run, struct activation *a)
{
    a->next = run->queue;
    run->queue = a;
    pthread_cond_signal(&run->changed);
}

/* Takes the activation with the smallest rank; with `frees`, only of those that free the memory of
 * sent values. NULL: there is none. With the lock held. */
static struct activation *pop(struct run *run, bool frees)
{
    struct activation **best = NULL;
    for (struct activation **at = &run->queue; *at; at = &(*at)->next)
        if ((!frees || (*at)->region->frees) &&
            (!best || (*at)->region->rank < (*best)->region->rank))
            best = at;
    struct activation *a = best ? *best : NULL;
    if (a)
        *best = a->next;
    return a;
}

/* ---- threads that take from the queue ---- */

static void help(void *argument);

/* Releases the lock; the last user of a run that nobody waits for concludes it. */
static void unlock(struct run *run)
{
    bool is_over = run->active == 0;
    if (is_over && run->helpers > 0) /* helpers that have not come yet are not needed */
        run->helpers -= workers_withdraw(help, run);
    if (is_over)
        pthread_cond_broadcast(&run->changed);
    is_over = is_over && run->helpers == 0;
    pthread_mutex_unlock(&run->lock);
    if (is_over)
        run_conclude(run);
}

static bool is_short(const struct run *run, const struct activation *a)
{
    if (a->is_dead || run_is_stopped(run))
        return true;
    if (!a->is_cheap || a->head->role != ROLE_SEND)
        return a->is_cheap;
    /* a value of a loop or a branch may not be in outgoing memory */
    const struct token *input = &a->iteration->inputs[a->head->first_input];
    return !(input->is_live && input->tensor.data &&
             outgoing_copies(run->plan->options.outgoing, &input->tensor));
}

/* Returns whether others wait for what the activation sends. */
static bool gives(const struct activation *a)
{
    enum item_role role = a->head->role;
    return role == ROLE_SEND || (role != ROLE_RECV && a->head->flags & KERNEL_ASYNC);
}

static void prepend(struct activation *a, struct activation **list)
{
    a->next = *list;
    *list = a;
}

enum takes {
    TAKES_SHORT,
    TAKES_ONE,  /* and one expensive activation */
    TAKES_GIVES /* and those that send: for a thread in the middle of a region */
};

/* Distributes activations that became ready: the thread's own go to *mine, the others to the queue;
 * all are the thread's own if it is alone. With the lock held. */
static void distribute(struct run *run, struct activation *ready, enum takes takes,
                       struct activation **mine)
{
    struct activation *kept = NULL;
    int queued = 0;
    while (ready) {
        struct activation *a = ready;
        ready = a->next;
        if (is_short(run, a) || (takes == TAKES_GIVES && gives(a))) {
            prepend(a, mine);
        } else if (takes == TAKES_ONE && !kept) {
            kept = a;
        } else {
            push(run, a);
            queued++;
        }
    }
    if (kept && *mine) { /* a free thread takes it while this one runs cheap ones */
        push(run, kept);
        queued++;
    } else if (kept) {
        kept->next = NULL;
        *mine = kept;
    }
    int threads = run->plan->options.threads; /* one helper per queued activation, up to a limit */
    int limit = threads > 0 ? threads : 1;
    while (queued-- > 0 && run->helpers < limit && workers_submit(limit, help, run))
        run->helpers++;
    while (run->helpers == 0 && run->queue)
        prepend(pop(run, false), mine);
}

/* ---- activations ---- */

/* Ends an activation and distributes what became ready by it. */
static void finish(struct run *run, struct launch *launch, int code, enum takes takes,
                   struct activation **mine)
{
    struct activation *a = launch->activation, *ready = NULL;
    region_give_locks(a); /* taken, if the step had failed by the time it came */
    if (code)
        step_stop(run->step, &launch->err);
    pthread_mutex_lock(&run->lock);
    if (a->head->role == ROLE_RECV && !a->iteration->outputs[a->head->first_output].type)
        a->is_dead = true;
    if (!run_is_stopped(run))
        ready_propagate(run, a, true, &ready);
    distribute(run, ready, takes, mine);
    run->active--;
    unlock(run);
}

static bool run_one(struct run *run, struct activation *a, struct launch *own, enum takes takes,
                    struct activation **list);

void run_tell(struct run *run, struct activation *a, struct activation **mine)
{
    struct activation *ready = NULL;
    pthread_mutex_lock(&run->lock);
    ready_propagate(run, a, false, &ready);
    distribute(run, ready, TAKES_GIVES, mine);
    pthread_mutex_unlock(&run->lock);
}

/* Those that send nothing stay until the region is over. */
void run_give(struct run *run, struct activation **mine)
{
    struct launch own = {.err = ERROR_INIT};
    for (struct activation **at = mine; *at;) {
        struct activation *a = *at;
        if (!gives(a)) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        if (run_one(run, a, &own, TAKES_SHORT, mine))
            at = mine;
    }
    vec_release(&own.temporaries);
    deferred_before_long();
}

#define DEPTH_MAX 16 /* of regions that run between items of others, on one stack */

void run_reclaim(struct run *run, const struct launch *launch, struct activation **mine)
{
    struct launch own = {.err = ERROR_INIT, .depth = launch->depth + 1};
    for (struct activation *a; own.depth <= DEPTH_MAX; run_give(run, mine)) {
        pthread_mutex_lock(&run->lock);
        a = pop(run, true);
        pthread_mutex_unlock(&run->lock);
        if (!a)
            break;
        run_one(run, a, &own, TAKES_GIVES, mine);
    }
    vec_release(&own.temporaries);
}

/* Runs an activation, with its own launch or the thread's, and distributes what became ready by it.
 * False: it was put aside or is pending, and the run may be over. */
static bool run_one(struct run *run, struct activation *a, struct launch *own, enum takes takes,
                    struct activation **list)
{
    struct launch *launch = run->plan->is_whole ? &run->own : own;
    int code = 0;
    if (a->region->is_point && a->head->flags & KERNEL_ASYNC) {
        if (!a->launch)
            a->launch = mem_alloc(sizeof *a->launch);
        launch = a->launch;
    }
    launch->err.code = 0;
    launch->activation = a;
    bool goes_on = !run_is_stopped(run), is_dead = a->is_dead && a->head->role != ROLE_SEND;
    if (goes_on && !is_dead)
        code = region_run(run, launch, list);
    else if (goes_on &&
             collective_decline(run->step, a->head->node, a->iteration->tag, &launch->err))
        code = launch->err.code;
    else if (goes_on && a->region->fetches)
        code = item_fail_dead(&launch->err);
    if (code != KERNEL_PENDING)
        finish(run, launch, code, takes, list);
    return code != KERNEL_PENDING;
}

/* Runs a list of activations and those of their consequences that stay with this thread: cheap
 * ones, and with `computes` expensive ones. When nothing is left of a run that was started, it has
 * been concluded and may belong to another step. */
static void run_activations(struct run *run, struct activation *list, bool computes)
{
    struct launch own = {.err = ERROR_INIT};
    while (list) {
        struct activation *a = list;
        list = a->next;
        if (computes && !is_short(run, a))
            deferred_before_long();
        run_one(run, a, &own, computes ? TAKES_ONE : TAKES_SHORT, &list);
    }
    vec_release(&own.temporaries);
}

void run_begin(struct run *run, bool computes)
{
    struct activation *mine = NULL, *ready = NULL;
    pthread_mutex_lock(&run->lock);
    run->active = 1; /* the step is not over while its roots are being found */
    ready_start_root(run, &ready);
    distribute(run, ready, computes ? TAKES_ONE : TAKES_SHORT, &mine);
    run->active--;
    unlock(run);
    run_activations(run, mine, computes); /* nothing, if the run is over */
}

void run_drain(struct run *run)
{
    for (struct activation *a; (a = pop(run, false));) {
        pthread_mutex_unlock(&run->lock);
        a->next = NULL;
        run_activations(run, a, true);
        pthread_mutex_lock(&run->lock);
    }
}

void run_help(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run_drain(run);
    run->helpers--;
    unlock(run);
}

static void help(void *argument)
{
    struct run *run = argument;
    const struct plan *plan = run->plan;
    struct device *device = plan->options.device;
    thread_enter_device(device, plan_team(plan));
    deferred_begin();
    run_help(run);
    deferred_end();
}

static void take_up(struct deferred_work *deferred)
{
    struct activation *a = CONTAINER_OF(deferred, struct activation, deferred);
    struct activation *mine = NULL;
    struct run *run = a->run;
    thread_take_up(run->plan->options.device);
    a->next = NULL;
    pthread_mutex_lock(&run->lock);
    distribute(run, a, TAKES_SHORT, &mine);
    pthread_mutex_unlock(&run->lock);
    run_activations(run, mine, false);
}

void run_resume(struct variable_waiter *waiter)
{
    struct activation *a = CONTAINER_OF(waiter, struct activation, waiter);
    a->n_locked++;
    if (a->region)
        a->deferred.run = take_up;
    deferred_run(&a->deferred);
}

static void async_over(struct deferred_work *deferred)
{
    struct activation *a = CONTAINER_OF(deferred, struct activation, deferred);
    struct activation *mine = NULL;
    struct launch *launch = a->launch;
    struct run *run = a->run;
    thread_take_up(run->plan->options.device);
    finish(run, launch, region_end_async(run, launch), TAKES_SHORT, &mine);
    run_activations(run, mine, false);
}

void run_async_done(struct executor *executor, int result)
{
    const struct call_host *host = (struct call_host *)executor;
    struct activation *a = &host->iteration->activations[host->item->local];
    a->launch->result = result;
    a->deferred.run = async_over;
    deferred_run(&a->deferred);
}
