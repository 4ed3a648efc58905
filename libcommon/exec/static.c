/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a static plan: the items in their order, by the thread that asks. What a step writes to
 * (arena, tensors, calls) is an instance; instances are kept, one per step that ever ran at once.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan_internal.h"
#include "exec/step.h"
#include "exec/trace.h"

struct static_call {
    struct call_host host; /* first: what call->executor points to */
    struct kernel_call call;
};

struct instance {
    struct instance *next;
    struct buffer *arenas[2];  /* in host memory, in the device's */
    struct tensor *tensors;    /* by value */
    struct tensor **pointers;  /* inputs and outputs of all calls */
    struct static_call *calls; /* by position */
    VEC(void *) temporaries;
    VEC(int) feeds;   /* values that are fed */
    VEC(int) fetches; /* positions of the items that fetch */
    struct error err;
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
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes", bytes);
    }
    return 0;
}

static struct instance *instance_new(struct plan *plan, struct error *err)
{
    struct instance *instance = mem_alloc(sizeof *instance);
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

static void take_holds(const struct item *item)
{
    for (size_t i = 0; i < item->take.n; i++)
        variable_hold_wait(item->take.items[i].variable, item->take.items[i].write);
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
    int64_t start = step->trace ? trace_now() : 0;
    int result = item->code->run(&c->call);
    item_trace(item, step, start);
    if (result > 0)
        return item_fail(item, c->call.err);
    return plan->options.check_numerics ? item_check_numerics(plan, item, &c->call, c->call.err)
                                        : 0;
}

static int run_items(struct plan *plan, struct instance *instance, struct step *step)
{
    for (int at = 0; at < plan->n_order; at++) {
        struct static_call *c = &instance->calls[at];
        const struct item *item = c->host.item;
        take_holds(item);
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

int static_run(struct plan *plan, struct step *step, const struct tensor *feeds,
               struct tensor *fetches, struct error *err)
{
    struct instance *instance = instance_take(plan, err);
    if (!instance)
        return err->code;
    int code = bind_feeds(plan, instance, feeds, err);
    if (!code) {
        for (size_t i = 0; i < instance->fetches.n; i++)
            instance->calls[instance->fetches.items[i]].host.fetches = fetches;
        code = run_items(plan, instance, step);
        struct error ignored = ERROR_INIT;
        int synced = plan->options.device->sync(plan->options.device, code ? &ignored : err);
        if (code)
            *err = instance->err;
        else
            code = synced;
    }
    for (int i = 0; code && i < plan->n_fetches; i++)
        tensor_release(&fetches[i]);
    instance_give(plan, instance);
    return code;
}
