/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of steps of a static plan: made once, with all that is the same in every step.
 */
#include "exec/run/static.h"

#include <stddef.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "exec/run/builtin.h"

struct tensor *instance_tensor(struct instance *instance, int v)
{
    struct value *value = &instance->plan->values.items[v];
    if (value->kind == VALUE_VARIABLE)
        return &value->variable->value;
    if (value->kind == VALUE_CONSTANT)
        return &value->constant;
    return &instance->tensors[v];
}

static void *arena_at(const struct instance *instance, bool on_device, int64_t offset)
{
    const struct shared_arena *arena = instance->arenas[on_device];
    return arena ? (char *)arena->buffer->data + offset : NULL;
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

/* Inputs in another shape than their own; `next` is where there is memory for them. */
static void make_seen(const struct item *item, struct tensor **in, struct seen_input **next)
{
    for (int i = 0; item->seen && i < item->n_in; i++) {
        if (!item->seen[i])
            continue;
        struct seen_input *seen = (*next)++;
        *seen = (struct seen_input){{.type = in[i]->type, .shape = *item->seen[i]}, in[i]};
        in[i] = &seen->tensor;
    }
}

void static_see(const struct static_call *c)
{
    const struct item *item = c->host.item;
    for (int i = 0; item->seen && i < item->n_in; i++) {
        if (!item->seen[i])
            continue;
        struct seen_input *seen = CONTAINER_OF(c->call.in[i], struct seen_input, tensor);
        seen->tensor.data = seen->of->data;
    }
}

static int count_seen(const struct item *item)
{
    int n = 0;
    for (int i = 0; item->seen && i < item->n_in; i++)
        n += item->seen[i] != NULL;
    return n;
}

static void make_call(struct plan *plan, struct instance *instance, int position,
                      struct tensor ***pointers, struct seen_input **seen)
{
    const struct item *item = &plan->items.items[plan->order[position]];
    struct static_call *c = &instance->calls[position];
    struct tensor **in = *pointers, **out = in + item->n_in;
    struct device *device = plan->options.device;
    void *scratch =
        item->scratch_bytes ? arena_at(instance, !device->is_host, item->scratch_offset) : NULL;
    *pointers = out + item->n_out;
    for (int i = 0; i < item->n_in; i++)
        in[i] = instance_tensor(instance, item->in[i]);
    make_seen(item, in, seen);
    for (int i = 0; i < item->n_out; i++)
        out[i] = instance_tensor(instance, item->out[i]);
    c->host = (struct call_host){.planned = true, .plan = plan, .item = item};
    c->host.temporaries = &instance->temporaries;
    c->host.on_device = &instance->on_device;
    c->host.pool = plan->pool;
    c->host.host_pool = plan->host_pool;
    c->host.counts = plan->pool && device->is_host;
    c->call = (struct kernel_call){.node = item->node,
                                   .state = item->state,
                                   .scratch = scratch,
                                   .n_in = item->n_in,
                                   .n_out = item->n_out,
                                   .in = in,
                                   .out = out,
                                   .refs = item->refs,
                                   .device = device,
                                   .step_block = device_step_block(&instance->on_device),
                                   .item = plan->faults.first + (uint32_t)plan->order[position],
                                   .threads = plan_team(plan),
                                   .err = &instance->err,
                                   .executor = &c->host.executor};
}

static struct plain_call plain_call_of(const struct plan *plan, struct static_call *c)
{
    const struct item *item = c->host.item;
    bool is_plain = item->flow == FLOW_ALWAYS && !item->is_prepared && !item->take.n &&
                    !item->give.n && !plan->options.check_numerics;
    return (struct plain_call){is_plain ? item_kernel(item) : NULL, &c->call};
}

static void instance_free(struct instance *instance)
{
    captured_release(instance);
    device_step_release(&instance->on_device);
    vec_release(&instance->temporaries);
    vec_release(&instance->counted);
    vec_release(&instance->feeds);
    vec_release(&instance->fetches);
    mem_free(instance->tensors);
    mem_free(instance->pointers);
    mem_free(instance->calls);
    mem_free(instance->plain);
    mem_free(instance->seen);
    mem_free(instance->dead);
    mem_free(instance);
}

/* ---- with the lock of the arenas ---- */

static void drop_arenas(struct instance *instance)
{
    for (int i = 0; i < 2; i++)
        if (instance->arenas[i])
            arena_drop(instance->plan->options.arenas, instance->arenas[i]);
}

static int take_arenas(struct plan *plan, struct instance *instance, struct error *err)
{
    for (int i = 0; i < 2; i++) {
        size_t bytes = plan->arena_bytes[i];
        if (!bytes)
            continue;
        instance->arenas[i] = arena_take(plan->options.arenas, plan->options.device, i == 1, bytes);
        if (!instance->arenas[i])
            return error_set(err, ERR_OS, "no memory for the plan's %zu bytes%s", bytes,
                             mem_limit_text());
    }
    return 0;
}

static void set_busy(struct instance *instance, bool busy)
{
    for (int i = 0; i < 2; i++)
        if (instance->arenas[i])
            instance->arenas[i]->busy = busy;
}

static bool can_run(const struct instance *instance)
{
    for (int i = 0; i < 2; i++)
        if (instance->arenas[i] && !arena_is_free(instance->arenas[i]))
            return false;
    return true;
}

static bool has_gone(const struct instance *instance)
{
    for (int i = 0; i < 2; i++)
        if (instance->arenas[i] && !instance->arenas[i]->buffer)
            return true;
    return false;
}

/* One whose arenas no other step uses. Those whose arenas have gone go as well. */
static struct instance *find_idle(struct plan *plan)
{
    for (struct instance **at = &plan->idle; *at;) {
        struct instance *instance = *at;
        bool runs = can_run(instance);
        if (!runs && !has_gone(instance)) {
            at = &instance->next;
            continue;
        }
        *at = instance->next;
        if (runs)
            return instance;
        drop_arenas(instance);
        instance_free(instance);
    }
    return NULL;
}

/* ---- */

/* All but the arenas. */
static void instance_fill(struct plan *plan, struct instance *instance)
{
    size_t n_pointers = 0, n_seen = 0;
    for (int i = 0; i < plan->n_order; i++) {
        const struct item *item = &plan->items.items[plan->order[i]];
        n_pointers += (size_t)item->n_in + (size_t)item->n_out;
        n_seen += (size_t)count_seen(item);
    }
    instance->tensors = mem_array(plan->values.n + 1, sizeof *instance->tensors);
    instance->pointers = mem_array(n_pointers + 1, sizeof *instance->pointers);
    instance->calls = mem_array((size_t)plan->n_order + 1, sizeof *instance->calls);
    instance->plain = mem_array((size_t)plan->n_order + 1, sizeof *instance->plain);
    if (plan->has_branches)
        instance->dead = mem_array(plan->values.n + plan->items.n, sizeof *instance->dead);
    make_tensors(plan, instance);
    instance->seen = mem_array(n_seen + 1, sizeof *instance->seen);
    struct tensor **pointers = instance->pointers;
    struct seen_input *seen = instance->seen;
    for (int i = 0; i < plan->n_order; i++) {
        make_call(plan, instance, i, &pointers, &seen);
        instance->plain[i] = plain_call_of(plan, &instance->calls[i]);
        if (plan->items.items[plan->order[i]].builtin == BUILTIN_FETCH)
            vec_push(&instance->fetches, i);
    }
    for (size_t v = 0; v < plan->values.n; v++) {
        const struct value *value = &plan->values.items[v];
        if (value->kind == VALUE_FEED)
            vec_push(&instance->feeds, (int)v);
        if (value->kind == VALUE_COMPUTED && value->is_counted)
            vec_push(&instance->counted, (int)v);
    }
}

static int take_memory(struct plan *plan, struct instance *instance, struct error *err)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    int code = take_arenas(plan, instance, err);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    if (!code && plan->is_on_device)
        code = device_step_open(&instance->on_device, plan->options.device, err);
    return code;
}

static void abandon(struct plan *plan, struct instance *instance)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    set_busy(instance, false);
    drop_arenas(instance);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    instance_free(instance);
}

static struct instance *instance_new(struct plan *plan, struct error *err)
{
    struct instance *instance = mem_alloc(sizeof *instance);
    instance->plan = plan;
    if (take_memory(plan, instance, err)) {
        abandon(plan, instance);
        return NULL;
    }
    instance_fill(plan, instance);
    return instance;
}

struct instance *instance_take(struct plan *plan, struct error *err)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    struct instance *instance = find_idle(plan);
    if (instance)
        set_busy(instance, true);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    return instance ? instance : instance_new(plan, err);
}

void instance_give(struct plan *plan, struct instance *instance)
{
    instance->execution.done = NULL;
    pthread_mutex_lock(&plan->options.arenas->lock);
    set_busy(instance, false);
    instance->next = plan->idle;
    plan->idle = instance;
    pthread_mutex_unlock(&plan->options.arenas->lock);
}

void static_free_instances(struct plan *plan)
{
    pthread_mutex_lock(&plan->options.arenas->lock);
    struct instance *idle = plan->idle;
    plan->idle = NULL;
    for (struct instance *at = idle; at; at = at->next)
        drop_arenas(at);
    pthread_mutex_unlock(&plan->options.arenas->lock);
    while (idle) {
        struct instance *next = idle->next;
        instance_free(idle);
        idle = next;
    }
}
