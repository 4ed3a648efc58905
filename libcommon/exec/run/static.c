/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a static plan: the items in their order, by the thread that asks. What a step writes to
 * (arena, tensors, calls) is an instance; instances are kept, one per step that ever ran at once.
 */
#include "exec/run/static.h"

#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "exec/device/queue.h"
#include "exec/run/builtin.h"
#include "exec/step/workers.h"

static void resume(struct variable_waiter *waiter);

/* The locks of the item at that position that it has not taken yet. A step that was started does
 * not wait for them: false when it was put aside, and perhaps goes on elsewhere already. */
static bool take_locks(struct instance *instance, const struct variable_lock *locks, size_t n,
                       int at, int n_taken)
{
    for (size_t i = (size_t)n_taken; i < n; i++) {
        const struct variable_lock *lock = &locks[i];
        if (!instance->execution.done) {
            variable_lock_wait(lock->variable, lock->write);
            continue;
        }
        instance->at = at;
        instance->n_taken = (int)i;
        instance->waiter.resume = resume;
        if (!variable_lock(lock->variable, lock->write, &instance->waiter))
            return false;
    }
    return true;
}

static void give_locks(const struct item *item)
{
    for (size_t i = 0; i < item->give.n; i++)
        variable_unlock(item->give.items[i].variable, item->give.items[i].write);
}

/* After a failure at `position`: gives back what was taken and not yet given. */
static void abandon_locks(const struct plan *plan, int position)
{
    for (int later = position + 1; later < plan->n_order; later++) {
        const struct item *item = &plan->items.items[plan->order[later]];
        for (size_t g = 0; g < item->give.n; g++) {
            const struct variable_lock *lock = &item->give.items[g];
            bool taken_later = false;
            for (int at = position + 1; at <= later && !taken_later; at++) {
                const struct item *taker = &plan->items.items[plan->order[at]];
                for (size_t t = 0; t < taker->take.n; t++)
                    taken_later = taken_later || (taker->take.items[t].variable == lock->variable &&
                                                  taker->take.items[t].write == lock->write);
            }
            if (!taken_later)
                variable_unlock(lock->variable, lock->write);
        }
    }
}

static int prepare_item(const struct static_call *c)
{
    static_see(c);
    return item_make_ready(c->host.item, c->host.on_device, c->call.err);
}

static int run_item(struct plan *plan, struct static_call *c, struct step *step, uint64_t iteration)
{
    const struct item *item = c->host.item;
    if (item->is_prepared && prepare_item(c))
        return c->call.err->code;
    c->call.step = step;
    c->call.iteration = iteration;
    struct item_start start = item_start(&c->call, step);
    int result = item_kernel(item)(&c->call);
    return item_over(plan, item, &c->call, start, result);
}

/* An item that may be dead. */
static int run_of_branch(struct plan *plan, struct instance *instance, struct static_call *c,
                         struct step *step)
{
    int code = 0;
    if (branch_begin(instance, c))
        return c->host.item->builtin == BUILTIN_FETCH ? execution_fail_dead(c->call.err) : 0;
    if (c->host.item->builtin != BUILTIN_CONSTANT) /* which is there */
        code = run_item(plan, c, step, instance->iteration);
    if (!code)
        branch_end(instance, c);
    return code;
}

static int run_plain(struct plan *plan, const struct instance *instance, int at, struct step *step)
{
    struct kernel_call *call = instance->plain[at].call;
    call->step = step;
    call->iteration = instance->iteration;
    int result = instance->plain[at].run(call);
    if (result <= 0)
        return 0;
    return item_over(plan, instance->calls[at].host.item, call, (struct item_start){0}, result);
}

static int run_any(struct plan *plan, struct instance *instance, int at, struct step *step)
{
    struct static_call *c = &instance->calls[at];
    return c->host.item->flow == FLOW_ALWAYS ? run_item(plan, c, step, instance->iteration)
                                             : run_of_branch(plan, instance, c, step);
}

/* From the item at that position, which has taken so many of its locks. KERNEL_PENDING: put aside.
 */
static int run_items(struct plan *plan, struct instance *instance, struct step *step, int at,
                     int n_taken)
{
    for (; at < plan->n_order; at++, n_taken = 0) {
        bool is_plain = instance->plain[at].run && !step->trace;
        const struct item *item = is_plain ? NULL : instance->calls[at].host.item;
        if (item && item->take.n &&
            !take_locks(instance, item->take.items, item->take.n, at, n_taken))
            return KERNEL_PENDING;
        int code =
            is_plain ? run_plain(plan, instance, at, step) : run_any(plan, instance, at, step);
        temporaries_free(&instance->temporaries);
        if (!code)
            code = step_stopped(step, &instance->err);
        if (item)
            give_locks(item);
        if (code) {
            abandon_locks(plan, at);
            return code;
        }
    }
    return 0;
}

/* ---- a step ---- */

static int bind_feed(struct instance *instance, int v, const struct tensor *feed, struct error *err)
{
    const struct value *value = &instance->plan->values.items[v];
    if (feed->type != value->type || !shape_equal(&feed->shape, &value->shape))
        return error_set(err, ERR_INTERNAL, "a feed is %s, but the plan is for %s",
                         shape_text_typed(feed->type, &feed->shape),
                         shape_text_typed(value->type, &value->shape));
    instance->tensors[v].data = feed->data;
    return 0;
}

static void bind_fetches(struct instance *instance, struct tensor *fetches)
{
    for (size_t i = 0; i < instance->fetches.n; i++)
        instance->calls[instance->fetches.items[i]].host.fetches = fetches;
}

static int bind(struct instance *instance, struct error *err)
{
    int code = 0;
    bind_fetches(instance, instance->running->fetches);
    for (size_t i = 0; i < instance->feeds.n && !code; i++) {
        int v = instance->feeds.items[i];
        const struct tensor *feeds = instance->running->feeds;
        code = bind_feed(instance, v, &feeds[instance->plan->values.items[v].feed], err);
    }
    return code;
}

#define ALL_ITEMS (-1) /* in place of a position: they are launched */

static int begin(struct instance *instance, const struct execution *execution, struct error *err)
{
    instance->running = execution;
    instance->captured.is_current = false;
    instance->at = captured_may_run(instance, execution->step) ? ALL_ITEMS : 0;
    instance->n_taken = 0;
    int code = bind(instance, err);
    if (!code && instance->plan->is_on_device)
        code = device_step_begin(&instance->on_device, execution->step, err);
    return code;
}

/* As run_items. */
static int run_captured(struct instance *instance, struct step *step)
{
    struct plan *plan = instance->plan;
    const struct variable_lock *locks = plan->locks.items;
    struct error *err = &instance->err;
    if (!take_locks(instance, locks, plan->locks.n, ALL_ITEMS, instance->n_taken))
        return KERNEL_PENDING;
    bool is_captured = captured_prepare(instance, step);
    int code = is_captured ? captured_launch(instance, instance->running->feeds, err) : 0;
    for (size_t i = 0; i < plan->locks.n; i++)
        variable_unlock(locks[i].variable, locks[i].write);
    if (is_captured)
        return code ? code : step_stopped(step, err);
    code = bind(instance, err);
    return code ? code : run_items(plan, instance, step, 0, 0);
}

static int run(struct instance *instance, struct step *step)
{
    return instance->at == ALL_ITEMS
               ? run_captured(instance, step)
               : run_items(instance->plan, instance, step, instance->at, instance->n_taken);
}

/* Of a step whose items have run, or one of them failed (`code`). */
static int result(struct instance *instance, struct step *step, int code,
                  const struct error *devices, struct error *err)
{
    const struct error *own = code ? &instance->err : NULL;
    struct captured *captured = &instance->captured;
    code = execution_result(step, &instance->on_device, own, devices, err);
    if (!code && captured->is_current)
        return captured_fetch(instance, instance->running->fetches, err);
    if (!code)
        code = fetches_bring_home(instance->plan, instance->running->fetches, err);
    captured->has_run |= !code;
    return code;
}

/* Lets go of what is counted. */
static void clear(struct instance *instance)
{
    for (size_t i = 0; i < instance->counted.n; i++) {
        struct tensor *t = &instance->tensors[instance->counted.items[i]], counted = *t;
        t->buffer = NULL;
        tensor_release(&counted);
    }
}

static void end(struct plan *plan, struct instance *instance, struct execution *execution, int code,
                const struct error *err)
{
    for (int i = 0; code && i < plan->n_fetches; i++)
        tensor_release(&execution->fetches[i]);
    execution_close(execution, code, err); /* which may be in the instance */
    if (instance) {
        clear(instance);
        instance_give(plan, instance);
    }
}

int static_run(struct plan *plan, struct execution *execution, struct error *err)
{
    struct instance *instance = NULL;
    int code = execution_open(execution, plan, err);
    if (!code && !(instance = instance_take(plan, err)))
        code = err->code;
    if (!code && !(code = begin(instance, execution, err))) {
        struct error failure = ERROR_INIT;
        code = run(instance, execution->step);
        device_step_end(&instance->on_device);
        device_finish(plan->options.device, &failure);
        code = result(instance, execution->step, code, &failure, err);
    }
    end(plan, instance, execution, code, err);
    return code;
}

/* ---- steps that are started ---- */

static void report(struct plan *plan, struct instance *instance, struct execution *execution,
                   struct error *err)
{
    struct step_done *done = execution->done;
    end(plan, instance, execution, err->code, err);
    done->done(done, err->code, err);
}

static void conclude(struct event_waiter *over, const struct error *failure)
{
    struct instance *instance = CONTAINER_OF(over, struct instance, over);
    struct execution *execution = &instance->execution;
    struct error err = ERROR_INIT;
    deferred_begin();
    result(instance, execution->step, instance->code, failure, &err);
    report(instance->plan, instance, execution, &err);
    deferred_end();
}

/* The instance may belong to another step as soon as an item was put aside or the end reported. */
static void go_on(struct deferred_work *deferred)
{
    struct instance *instance = CONTAINER_OF(deferred, struct instance, deferred);
    struct plan *plan = instance->plan;
    thread_take_up(plan->options.device);
    if (!plan->is_cheap)
        deferred_before_long();
    int code = run(instance, instance->execution.step);
    if (code == KERNEL_PENDING)
        return;
    instance->code = code;
    instance->over.done = conclude;
    device_step_end(&instance->on_device);
    device_notify_end(plan->options.device, &instance->over);
}

static void help(void *argument)
{
    struct instance *instance = argument;
    struct device *device = instance->plan->options.device;
    thread_enter_device(device, device->threads);
    deferred_run(&instance->deferred);
}

/* On this thread if that does not keep it for long. */
static void proceed(struct instance *instance, bool computes)
{
    bool stays = computes || instance->plan->is_cheap;
    if (stays || !workers_submit(1, help, instance))
        deferred_run(&instance->deferred);
}

static void resume(struct variable_waiter *waiter)
{
    struct instance *instance = CONTAINER_OF(waiter, struct instance, waiter);
    instance->n_taken++;
    proceed(instance, false);
}

void static_start(struct plan *plan, const struct execution *given)
{
    struct error err = ERROR_INIT, ignored = ERROR_INIT;
    struct execution local = *given;
    struct instance *instance = instance_take(plan, &err);
    struct execution *execution = instance ? &instance->execution : &local;
    *execution = *given;
    if (execution_open(execution, plan, instance ? &err : &ignored) || !instance ||
        begin(instance, execution, &err)) {
        report(plan, instance, execution, &err);
        return;
    }
    instance->deferred.run = go_on;
    proceed(instance, execution->done->computes);
}

/* ---- what a loop repeats ---- */

static const struct tensor *given(const struct while_call *call, int feed)
{
    static int32_t index;
    static bool yes = true;
    static const struct tensor indices = {.type = INT32, .data = &index};
    static const struct tensor truth = {.type = BOOL, .data = &yes};
    int from = call->loop->given[feed];
    return from == WHILE_GIVEN_INDEX  ? &indices
           : from == WHILE_GIVEN_TRUE ? &truth
                                      : &call->values[from];
}

static int bind_given(struct instance *instance, const struct while_call *call, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < instance->feeds.n && !code; i++) {
        int v = instance->feeds.items[i];
        const struct tensor *from = given(call, instance->plan->values.items[v].feed);
        code = bind_feed(instance, v, from, err);
        instance->tensors[v].buffer = from->buffer;
    }
    return code;
}

int static_repeat(struct instance *instance, const struct while_call *call, struct tensor *fetches,
                  struct error *err)
{
    struct plan *plan = instance->plan;
    memset(fetches, 0, (size_t)plan->n_fetches * sizeof *fetches);
    bind_fetches(instance, fetches);
    instance->iteration = call->iteration;
    if (bind_given(instance, call, err))
        return err->code;
    int code = run_items(plan, instance, call->step, 0, 0);
    if (code) {
        *err = instance->err;
        instance->err = (struct error)ERROR_INIT;
        for (int i = 0; i < plan->n_fetches; i++)
            tensor_release(&fetches[i]);
    }
    clear(instance);
    return code;
}
