/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of steps of a static plan: made once, with all that is the same in every step.
 */
#include "exec/run/static.h"

#include "base/memory.h"

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
    c->host.temporaries = &instance->temporaries;
    c->host.pool = plan->counted;
    c->host.counts = plan->counted != NULL;
    c->call = (struct kernel_call){.node = item->node,
                                   .state = item->state,
                                   .scratch = scratch,
                                   .n_in = item->n_in,
                                   .n_out = item->n_out,
                                   .in = in,
                                   .out = out,
                                   .refs = item->refs,
                                   .device = device,
                                   .threads = plan_team(plan),
                                   .err = &instance->err,
                                   .executor = &c->host};
}

static void instance_free(struct instance *instance)
{
    for (int i = 0; i < 2; i++)
        if (instance->arenas[i])
            instance->arenas[i]->free(instance->arenas[i]);
    vec_release(&instance->temporaries);
    vec_release(&instance->counted);
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
                i ? device_alloc(device, bytes) : device_alloc_host(device, bytes);
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
    for (size_t v = 0; v < plan->values.n; v++) {
        const struct value *value = &plan->values.items[v];
        if (value->kind == VALUE_FEED)
            vec_push(&instance->feeds, (int)v);
        if (value->kind == VALUE_COMPUTED && value->is_counted)
            vec_push(&instance->counted, (int)v);
    }
    return instance;
}

struct instance *instance_take(struct plan *plan, struct error *err)
{
    pthread_mutex_lock(&plan->lock);
    struct instance *instance = plan->idle;
    if (instance)
        plan->idle = instance->next;
    pthread_mutex_unlock(&plan->lock);
    return instance ? instance : instance_new(plan, err);
}

void instance_give(struct plan *plan, struct instance *instance)
{
    instance->execution.done = NULL;
    pthread_mutex_lock(&plan->lock);
    instance->next = plan->idle;
    plan->idle = instance;
    pthread_mutex_unlock(&plan->lock);
}

void static_free_instances(struct plan *plan)
{
    pthread_mutex_lock(&plan->lock);
    struct instance *idle = plan->idle;
    plan->idle = NULL;
    pthread_mutex_unlock(&plan->lock);
    while (idle) {
        struct instance *next = idle->next;
        instance_free(idle);
        idle = next;
    }
}
