/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the items of a dynamic plan. Whoever finishes an item runs what became ready by it: cheap
 * items at once and, if it may, one expensive item next; the other expensive ones go to the queue,
 * from which the thread that runs or starts the step and the process's helpers take. A thread that
 * merely brings a value for which a kernel waited may not.
 *
 * A run is over when nothing is active and no helper will touch it. The thread that makes that so
 * concludes a run that was started; else the thread that waits for it is woken.
 */
#include "exec/run/dynamic.h"

#include <stddef.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/step/collective_kernel.h"
#include "exec/step/workers.h"

/* ---- the queue: what is ready and expensive, in no particular order ---- */

/* With the lock held. */
static void push(struct run *run, struct activation *a)
{
    a->next = run->queue;
    run->queue = a;
    pthread_cond_signal(&run->changed);
}

/* With the lock held: what leads to most comes first; with `frees`, of those alone that let go of
 * memory in which values have left. NULL: there is none. */
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

/* ---- who takes from it ---- */

static bool was_started(const struct run *run)
{
    return run->done != NULL;
}

static void help(void *argument);

/* Gives the lock back. True: the caller was the last who touched the run, and has concluded it. */
static bool unlock(struct run *run)
{
    bool is_over = run->active == 0;
    if (is_over && run->helpers > 0) /* those who are busy elsewhere need not come any more */
        run->helpers -= workers_withdraw(help, run);
    if (is_over)
        pthread_cond_broadcast(&run->changed);
    is_over = is_over && was_started(run) && run->helpers == 0;
    pthread_mutex_unlock(&run->lock);
    if (is_over)
        run->conclude(run);
    return is_over;
}

static bool is_short(const struct run *run, const struct activation *a)
{
    if (a->is_dead || run->failed || !a->is_cheap || a->head->role != ROLE_SEND)
        return a->is_dead || run->failed || a->is_cheap;
    /* a value of a loop or a branch lies where it was made */
    const struct token *input = &a->iteration->inputs[a->head->first_input];
    return !(input->is_live && input->tensor.data &&
             outgoing_copies(run->plan->options.outgoing, &input->tensor));
}

/* Others wait for what it takes away. */
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
    TAKES_ONE,  /* and an expensive one */
    TAKES_GIVES /* and what gives: of a thread in the middle of a region */
};

/* With the lock held: distributes activations that became ready. Those that the thread takes stay
 * (in *mine); all, where there is nobody else. */
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
    if (kept && *mine) { /* whoever is free takes it while we run the cheap ones */
        push(run, kept);
        queued++;
    } else if (kept) {
        kept->next = NULL;
        *mine = kept;
    }
    int threads = run->plan->options.threads; /* helpers, up to one per activation in the queue */
    int limit = (threads > 0 ? threads : 1) - !was_started(run);
    while (queued-- > 0 && run->helpers < limit && workers_submit(limit, help, run))
        run->helpers++;
    while (was_started(run) && run->helpers == 0 && run->queue)
        prepend(pop(run, false), mine);
}

/* ---- activations ---- */

/* An activation is over: what became ready by it is distributed. */
static void finish(struct run *run, struct launch *launch, int code, enum takes takes,
                   struct activation **mine)
{
    struct activation *a = launch->activation, *ready = NULL;
    region_give_locks(a); /* if it waited for one, and the step had failed when it came */
    pthread_mutex_lock(&run->lock);
    if (code && !run->failed) { /* those for whom kernels wait are told, without the lock */
        run->failed = true;
        run->err = launch->err;
        pthread_mutex_unlock(&run->lock);
        step_stop(run->step, &run->err);
        pthread_mutex_lock(&run->lock);
    }
    if (a->head->role == ROLE_RECV && !a->iteration->outputs[a->head->first_output].type)
        a->is_dead = true;
    if (!run->failed)
        ready_propagate(run, a, true, &ready);
    distribute(run, ready, takes, mine);
    run->active--;
    unlock(run);
}

static bool run_one(struct run *run, struct activation *a, struct launch *own, enum takes takes,
                    struct activation **list);

static void propagate(void *context, struct run *run, struct activation *a)
{
    struct activation **list = context, *ready = NULL;
    pthread_mutex_lock(&run->lock);
    ready_propagate(run, a, false, &ready);
    distribute(run, ready, TAKES_GIVES, list);
    pthread_mutex_unlock(&run->lock);
}

/* Runs those of the list that give; others go on with the list when the region is over. */
static void give_values(void *context, struct run *run)
{
    struct launch own = {.err = ERROR_INIT};
    struct activation **list = context;
    for (struct activation **at = list; *at;) {
        struct activation *a = *at;
        if (!gives(a)) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        if (run_one(run, a, &own, TAKES_SHORT, list))
            at = list;
    }
    vec_release(&own.temporaries);
    deferred_before_long();
}

#define DEPTH_MAX 16 /* of regions that come between the items of others, on one stack */

/* An activation that lets go of memory in which values have left comes before the next such value,
 * which takes it; and where that makes the next piece of a value, before what takes long. */
static void run_relieved(void *context, struct run *run, const struct launch *relieved)
{
    struct launch own = {.err = ERROR_INIT, .depth = relieved->depth + 1};
    for (struct activation *a; own.depth <= DEPTH_MAX; give_values(context, run)) {
        pthread_mutex_lock(&run->lock);
        a = pop(run, true);
        pthread_mutex_unlock(&run->lock);
        if (!a)
            break;
        run_one(run, a, &own, TAKES_GIVES, context);
    }
    vec_release(&own.temporaries);
}

/* Runs it, by its own launch or that of the thread, and what became ready by it is distributed.
 * False: it is put aside or pending, and the run may be over. */
static bool run_one(struct run *run, struct activation *a, struct launch *own, enum takes takes,
                    struct activation **list)
{
    const struct region_calls calls = {propagate, give_values, run_relieved, list};
    struct launch *launch = run->plan->is_whole ? &run->own : own;
    int code = 0;
    if (a->region->is_point && a->head->flags & KERNEL_ASYNC) {
        if (!a->launch)
            a->launch = mem_alloc(sizeof *a->launch);
        launch = a->launch;
    }
    launch->err.code = 0;
    launch->activation = a;
    bool goes_on = !run->failed, is_dead = a->is_dead && a->head->role != ROLE_SEND;
    if (goes_on && !is_dead)
        code = region_run(run, launch, &calls);
    else if (goes_on &&
             collective_decline(run->step, a->head->node, a->iteration->tag, &launch->err))
        code = launch->err.code;
    else if (goes_on && a->region->fetches)
        code = item_fail_dead(&launch->err);
    if (code != KERNEL_PENDING)
        finish(run, launch, code, takes, list);
    return code != KERNEL_PENDING;
}

void run_execute(struct run *run, struct activation *list, bool computes)
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
    if (!unlock(run))
        run_execute(run, mine, computes);
}

void run_drain(struct run *run)
{
    for (struct activation *a; (a = pop(run, false));) {
        pthread_mutex_unlock(&run->lock);
        a->next = NULL;
        run_execute(run, a, true);
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
    run_execute(run, mine, false);
}

void run_resume(struct activation *a)
{
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
    run_execute(run, mine, false);
}

void run_async_done(struct executor *executor, int result)
{
    const struct call_host *host = (struct call_host *)executor;
    struct activation *a = &host->iteration->activations[host->item->local];
    a->launch->result = result;
    a->deferred.run = async_over;
    deferred_run(&a->deferred);
}
