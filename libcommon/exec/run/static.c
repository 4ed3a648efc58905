/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a static plan: the items in their order, by the thread that asks. What a step writes to
 * (arena, tensors, calls) is an instance; instances are kept, one per step that ever ran at once.
 */
#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "base/time.h"
#include "exec/plan/plan_internal.h"
#include "exec/step/deferred.h"
#include "exec/step/workers.h"

struct static_call {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
};

struct instance {
    struct instance *next;
    struct plan *plan;
    struct buffer *arenas[2];  /* in host memory, in the device's */
    struct tensor *tensors;    /* by value */
    struct tensor **pointers;  /* inputs and outputs of all calls */
    struct static_call *calls; /* by position */
    VEC(void *) temporaries;
    VEC(int) feeds;   /* values that are fed */
    VEC(int) fetches; /* positions of the items that fetch */
    struct error err;

    /* of a step that was started */
    struct execution execution;
    struct deferred_work deferred;
    struct variable_waiter waiter;
    int at, n_taken; /* the item that waits for a hold, and how many it has */
};

static struct tensor *value_tensor(struct plan *plan, struct instance *instance, int v)
{
    struct value *value = &plan->values.items[v];
    if (value->kind == VALUE_VARIABLE)
        return &value->variable->value;
    if (value->kind == VALUE_CONSTANT)
        return &value->constant;
    return &instance->tensors[v];
}

static void *arena_at(const struct instance *instance, bool on_device, int64_t offset)
{
    const struct buffer *arena = instance->arenas[on_device];
    return arena ? (char *)arena->data + offset : NULL;
}

static void make_tensors(struct plan *plan, struct instance *instance)
{
    for (size_t v = 0; v < plan->values.n; v++) {
        const struct value *value = &plan->values.items[v];
        instance->tensors[v] = (struct tensor){
            .type = value->type,
            .shape = value->shape,
            .layout = value->layout,
            .data = value->offset < 0 ? NULL : arena_at(instance, value->on_device, value->offset),
        };
    }
}

static void make_call(struct plan *plan, struct instance *instance, int position,
                      struct tensor ***pointers)
{
    const struct item *item = &plan->items.items[plan->order[position]];
    struct static_call *c = &instance->calls[position];
    struct tensor **in = *pointers, **out = in + item->n_in;
    struct device *device = plan->options.device;
    void *scratch =
        item->scratch_bytes ? arena_at(instance, !device->is_host, item->scratch_offset) : NULL;
    *pointers = out + item->n_out;
    for (int i = 0; i < item->n_in; i++)
        in[i] = value_tensor(plan, instance, item->in[i]);
    for (int i = 0; i < item->n_out; i++)
        out[i] = value_tensor(plan, instance, item->out[i]);
    c->host = (struct call_host){.planned = true, .plan = plan, .item = item};
    c->host.temporaries = (void *)&instance->temporaries;
    c->call = (struct kernel_call){.node = item->node,
                                   .state = item->state,
                                   .scratch = scratch,
                                   .n_in = item->n_in,
                                   .n_out = item->n_out,
                                   .in = in,
                                   .out = out,
                                   .refs = item->refs,
                                   .device = device,
                                   .threads = device->threads,
                                   .err = &instance->err,
                                   .executor = &c->host};
}

static void instance_free(struct instance *instance)
{
    for (int i = 0; i < 2; i++)
        if (instance->arenas[i])
            instance->arenas[i]->free(instance->arenas[i]);
    vec_release(&instance->temporaries);
    vec_release(&instance->feeds);
    vec_release(&instance->fetches);
    mem_free(instance->tensors);
    mem_free(instance->pointers);
    mem_free(instance->calls);
    mem_free(instance);
}

static int make_arenas(struct plan *plan, struct instance *instance, struct error *err)
{
    struct device *device = plan->options.device;
    for (int i = 0; i < 2; i++) {
        size_t bytes = plan->arena_bytes[i];
        if (bytes)
            instance->arenas[i] =
                i ? device->alloc(device, bytes) : device_alloc_host(device, bytes);
        if (bytes && !instance->arenas[i])
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", bytes,
                             mem_limit_text());
    }
    return 0;
}

static struct instance *instance_new(struct plan *plan, struct error *err)
{
    struct instance *instance = mem_alloc(sizeof *instance);
    instance->plan = plan;
    if (make_arenas(plan, instance, err)) {
        instance_free(instance);
        return NULL;
    }
    size_t n_pointers = 0;
    for (int i = 0; i < plan->n_order; i++)
        n_pointers += (size_t)plan->items.items[plan->order[i]].n_in +
                      (size_t)plan->items.items[plan->order[i]].n_out;
    instance->tensors = mem_array(plan->values.n + 1, sizeof *instance->tensors);
    instance->pointers = mem_array(n_pointers + 1, sizeof *instance->pointers);
    instance->calls = mem_array((size_t)plan->n_order + 1, sizeof *instance->calls);
    make_tensors(plan, instance);
    struct tensor **pointers = instance->pointers;
    for (int i = 0; i < plan->n_order; i++) {
        make_call(plan, instance, i, &pointers);
        if (plan->items.items[plan->order[i]].code == &plan_fetch_code)
            vec_push(&instance->fetches, i);
    }
    for (size_t v = 0; v < plan->values.n; v++)
        if (plan->values.items[v].kind == VALUE_FEED)
            vec_push(&instance->feeds, (int)v);
    return instance;
}

static struct instance *instance_take(struct plan *plan, struct error *err)
{
    pthread_mutex_lock(&plan->lock);
    struct instance *instance = plan->idle;
    if (instance)
        plan->idle = instance->next;
    pthread_mutex_unlock(&plan->lock);
    return instance ? instance : instance_new(plan, err);
}

static void instance_give(struct plan *plan, struct instance *instance)
{
    for (size_t i = 0; i < instance->temporaries.n; i++)
        mem_free(instance->temporaries.items[i]);
    instance->temporaries.n = 0;
    instance->execution.done = NULL;
    pthread_mutex_lock(&plan->lock);
    instance->next = plan->idle;
    plan->idle = instance;
    pthread_mutex_unlock(&plan->lock);
}

void static_free_instances(struct plan *plan)
{
    for (struct instance *i = plan->idle, *next; i; i = next) {
        next = i->next;
        instance_free(i);
    }
    plan->idle = NULL;
}

static void resume(struct variable_waiter *waiter);

/* The holds of the item at that position that it has not taken yet. A step that was started does
 * not wait for them: false when it was put aside, and perhaps goes on elsewhere already. */
static bool take_holds(struct instance *instance, int at, int n_taken)
{
    const struct item *item = instance->calls[at].host.item;
    for (size_t i = (size_t)n_taken; i < item->take.n; i++) {
        const struct hold *hold = &item->take.items[i];
        if (!instance->execution.done) {
            variable_hold_wait(hold->variable, hold->write);
            continue;
        }
        instance->at = at;
        instance->n_taken = (int)i;
        instance->waiter.resume = resume;
        if (!variable_hold(hold->variable, hold->write, &instance->waiter))
            return false;
    }
    return true;
}

static void give_holds(const struct item *item)
{
    for (size_t i = 0; i < item->give.n; i++)
        variable_unhold(item->give.items[i].variable, item->give.items[i].write);
}

/* After a failure at `position`: gives back what was taken and not yet given. */
static void abandon_holds(const struct plan *plan, int position)
{
    for (int later = position + 1; later < plan->n_order; later++) {
        const struct item *item = &plan->items.items[plan->order[later]];
        for (size_t g = 0; g < item->give.n; g++) {
            const struct hold *hold = &item->give.items[g];
            bool taken_later = false;
            for (int at = position + 1; at <= later && !taken_later; at++) {
                const struct item *taker = &plan->items.items[plan->order[at]];
                for (size_t t = 0; t < taker->take.n; t++)
                    taken_later = taken_later || (taker->take.items[t].variable == hold->variable &&
                                                  taker->take.items[t].write == hold->write);
            }
            if (!taken_later)
                variable_unhold(hold->variable, hold->write);
        }
    }
}

static int run_item(struct plan *plan, struct static_call *c, struct step *step)
{
    const struct item *item = c->host.item;
    if (item_check_variables(item, c->call.err))
        return c->call.err->code;
    c->call.step = step;
    int64_t start = step->trace ? time_now_ns() : 0;
    int result = item->code->run(&c->call);
    return item_over(plan, item, &c->call, start, result);
}

/* From the item at that position, which has taken so many of its holds. KERNEL_PENDING: put aside.
 */
static int run_items(struct plan *plan, struct instance *instance, struct step *step, int at,
                     int n_taken)
{
    for (; at < plan->n_order; at++, n_taken = 0) {
        struct static_call *c = &instance->calls[at];
        const struct item *item = c->host.item;
        if (item->take.n && !take_holds(instance, at, n_taken))
            return KERNEL_PENDING;
        int code = run_item(plan, c, step);
        if (!code)
            code = step_stopped(step, &instance->err);
        give_holds(item);
        if (code) {
            abandon_holds(plan, at);
            return code;
        }
    }
    return 0;
}

static int bind_feeds(struct plan *plan, struct instance *instance, const struct tensor *feeds,
                      struct error *err)
{
    for (size_t i = 0; i < instance->feeds.n; i++) {
        int v = instance->feeds.items[i];
        const struct value *value = &plan->values.items[v];
        const struct tensor *feed = &feeds[value->feed];
        if (feed->type != value->type || !shape_equal(&feed->shape, &value->shape))
            return error_set(err, ERR_INTERNAL, "a feed is %s, but the plan is for %s",
                             shape_text_typed(feed->type, &feed->shape),
                             shape_text_typed(value->type, &value->shape));
        instance->tensors[v].data = feed->data;
    }
    return 0;
}

static int begin(struct instance *instance, const struct execution *execution, struct error *err)
{
    for (size_t i = 0; i < instance->fetches.n; i++)
        instance->calls[instance->fetches.items[i]].host.fetches = execution->fetches;
    return bind_feeds(instance->plan, instance, execution->feeds, err);
}

/* All items have run, or one of them failed. */
static int finish(struct plan *plan, struct instance *instance, int code, struct error *err)
{
    struct error ignored = ERROR_INIT;
    int synced = plan->options.device->sync(plan->options.device, code ? &ignored : err);
    if (code)
        *err = instance->err;
    return code ? code : synced;
}

static void end(struct plan *plan, struct instance *instance, struct execution *execution, int code,
                const struct error *err)
{
    for (int i = 0; code && i < plan->n_fetches; i++)
        tensor_release(&execution->fetches[i]);
    execution_close(execution, code, err); /* which may be in the instance */
    if (instance)
        instance_give(plan, instance);
}

int static_run(struct plan *plan, struct execution *execution, struct error *err)
{
    struct instance *instance = NULL;
    int code = execution_open(execution, plan, err);
    if (!code && !(instance = instance_take(plan, err)))
        code = err->code;
    if (!code && !(code = begin(instance, execution, err)))
        code = finish(plan, instance, run_items(plan, instance, execution->step, 0, 0), err);
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

/* The instance may belong to another step as soon as an item was put aside or the end reported. */
static void go_on(struct deferred_work *deferred)
{
    struct instance *instance = CONTAINER_OF(deferred, struct instance, deferred);
    struct plan *plan = instance->plan;
    struct error err = ERROR_INIT;
    if (!plan->is_cheap)
        deferred_before_long();
    int code = run_items(plan, instance, instance->execution.step, instance->at, instance->n_taken);
    if (code == KERNEL_PENDING)
        return;
    finish(plan, instance, code, &err);
    report(plan, instance, &instance->execution, &err);
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
    instance->at = instance->n_taken = 0;
    proceed(instance, execution->done->computes);
}
