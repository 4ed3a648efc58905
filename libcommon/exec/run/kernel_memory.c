/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a kernel's outputs, and of inputs that it keeps, for both executors.
 */
#include <string.h>

#include "base/guard.h"
#include "base/memory.h"
#include "exec/device/pool.h"
#include "exec/device/queue.h"
#include "exec/run/item.h"

struct buffer *value_alloc(const struct plan *plan, int value, struct pool *pool, enum dtype type,
                           size_t bytes)
{
    struct buffer *buffer = NULL;
    if (plan->values.items[value].is_outgoing)
        buffer = outgoing_alloc(plan->options.outgoing, type, bytes);
    return buffer ? buffer : pool_alloc(pool, bytes);
}

int value_copy(struct device *device, struct buffer *buffer, const struct tensor *from,
               struct tensor *to, struct error *err)
{
    if (tensor_in_buffer(to, from->type, &from->shape, buffer, err))
        return err->code;
    to->layout = from->layout;
    return queue_copy(device, QUEUE_COMPUTE, to->data, from, err);
}

static struct tensor *fail_shape(struct kernel_call *call, int i, const struct shape *planned,
                                 const struct shape *shape)
{
    error_set(call->err, ERR_INTERNAL, "output %d was planned as %s, but is %s", i,
              shape_text(planned), shape_text(shape));
    return NULL;
}

/* Returns whether an output of a call in a fixed order is outside of the plan's memory. */
static bool is_counted_output(const struct call_host *host, int i)
{
    return host->pool && plan_has_order(host->plan, host->item->frame) &&
           host->plan->values.items[host->item->out[i]].is_counted;
}

static bool is_computed(const struct kernel_call *call, int i)
{
    const struct call_host *host = call_host(call);
    const struct value *value = &host->plan->values.items[host->item->in[i]];
    const struct tensor *in = call->in[i];
    return !call->outputs && (!host->planned || value->is_given) &&
           host->plan->options.device->is_host && value->kind == VALUE_COMPUTED && !value->is_ref &&
           in->buffer && in->data == in->buffer->data;
}

bool kernel_share_input(struct kernel_call *call, int i, struct tensor *shared)
{
    const struct tensor *in = call->in[i];
    if (!is_computed(call, i) || buffer_is_read(in->buffer))
        return false;
    tensor_share(shared, in);
    return true;
}

/* Lets the output take over the memory of an input that the kernel may overwrite, of equal size.
 * The call owns a value that came from outside of the region; a value that the region made may be
 * read there without being held, if it has other uses. An outgoing value must be in outgoing
 * memory. */
static bool take_over(struct kernel_call *call, int i, const struct shape *shape,
                      const struct value *value)
{
    const struct call_host *host = call_host(call);
    const struct item *item = host->item;
    int from = item->output_from;
    if (i != item->output_over - 1 || !is_computed(call, from) ||
        host->plan->values.items[item->in[from]].n_uses != 1)
        return false;
    struct tensor *in = call->in[from];
    if (!buffer_is_sole(in->buffer) || in->layout || value->layout || in->type == STRING ||
        value->type == STRING || (int64_t)tensor_bytes(in) != shape_bytes(shape, value->type) ||
        (value->is_outgoing && outgoing_copies(host->plan->options.outgoing, in)))
        return false;
    *call->out[i] = (struct tensor){value->type, *shape, in->data, in->buffer, NULL};
    in->buffer = NULL;
    return true;
}

/* The output's memory in captured work, if nobody else holds that now; else new memory. */
static struct buffer *output_alloc(const struct call_host *host, int i, enum dtype type,
                                   size_t bytes)
{
    const struct tensor *kept = host->kept ? &host->kept[i] : NULL;
    int v = host->item->out[i];
    struct pool *pool = host->plan->values.items[v].on_device ? host->pool : host->plan->pools[0];
    if (!kept || !kept->buffer || !buffer_is_sole(kept->buffer) || tensor_bytes(kept) != bytes)
        return value_alloc(host->plan, v, pool, type, bytes);
    struct tensor shared;
    tensor_share(&shared, kept);
    return shared.buffer;
}

static struct tensor *alloc_output(struct kernel_call *call, int i, const struct shape *shape)
{
    struct call_host *host = call_host(call);
    struct tensor *out = call->out[i];
    if (host->planned && !is_counted_output(host, i))
        return shape_equal(&out->shape, shape) ? out : fail_shape(call, i, &out->shape, shape);
    int v = host->item->out[i];
    const struct value *value = &host->plan->values.items[v];
    if (!shape_compatible(&value->shape, shape))
        return fail_shape(call, i, &value->shape, shape);
    if (value->offset >= 0 || take_over(call, i, shape, value))
        return out;
    enum dtype type = value->type;
    int64_t bytes = shape_bytes(shape, type);
    struct buffer *buffer = bytes < 0 ? NULL : output_alloc(host, i, type, (size_t)bytes);
    return tensor_in_buffer(out, type, shape, buffer, call->err) ? NULL : out;
}

/* In test builds, fills new memory with NaN, so that nobody reads what another value left there. */
static void spoil(const struct kernel_call *call, const struct tensor *out, bool on_device)
{
    const struct device *device = call->device;
    bool is_own = (!on_device || device->is_host) && out->type != STRING;
    for (int k = 0; k < call->n_in; k++)
        is_own &= !call->in[k] || call->in[k]->data != out->data;
    if (is_own)
        spoil_memory(out->data,
                     out->layout ? device->layout->bytes(out->layout) : tensor_bytes(out));
}

struct tensor *kernel_alloc_output(struct kernel_call *call, int i, const struct shape *shape)
{
    const struct call_host *host = call_host(call);
    if (call->outputs)
        return call->outputs->alloc(call, i, shape);
    struct tensor *out = alloc_output(call, i, shape);
    if (out && SPOILS_MEMORY)
        spoil(call, out, host->plan->values.items[host->item->out[i]].on_device);
    return out;
}

/* Copies a variable's value that leaves the process to outgoing memory, unless the variable is
 * there. */
static bool copy_to_send(const struct call_host *host, int from, const struct tensor *in,
                         struct tensor *copy)
{
    const struct plan *plan = host->plan;
    bool is_variable = plan->values.items[host->item->in[from]].kind == VALUE_VARIABLE;
    if (!is_variable || !outgoing_copies(plan->options.outgoing, in))
        return false;
    struct buffer *buffer = outgoing_alloc(plan->options.outgoing, in->type, tensor_bytes(in));
    if (!buffer)
        return false;
    *copy = *in;
    copy->buffer = buffer;
    copy->data = memcpy(buffer->data, in->data, tensor_bytes(in));
    return true;
}

struct tensor *kernel_alias_output(struct kernel_call *call, int i, int from,
                                   const struct shape *shape)
{
    struct call_host *host = call_host(call);
    struct tensor *out = call->out[i];
    const struct tensor *in = call->in[from];
    if (call->outputs)
        return call->outputs->alias(call, i, from, shape);
    if (call->refs && call->node && call->node->outputs[i].is_ref)
        return out; /* the plan knows which variable it is */
    if (host->planned) {
        const struct shape *its = shape ? shape : &in->shape; /* a variable's may be any */
        if (!shape_equal(its, &out->shape))
            return fail_shape(call, i, &out->shape, its);
        if (in->buffer && is_counted_output(host, i)) {
            const struct shape planned = out->shape;
            tensor_share(out, in);
            out->shape = planned;
        } else {
            out->data = in->data;
        }
        return out;
    }
    bool is_variable = host->plan->values.items[host->item->in[from]].kind == VALUE_VARIABLE;
    bool leaves =
        host->plan->options.outgoing && host->plan->values.items[host->item->out[i]].is_outgoing;
    if (in->buffer && !(leaves && copy_to_send(host, from, in, out)))
        tensor_share(out, in);
    else if (!in->buffer && (host->plan->keeps_reads || !is_variable)) /* not written in place */
        *out = *in;
    else if (!in->buffer &&
             value_copy(call->device, output_alloc(host, i, in->type, tensor_bytes(in)), in, out,
                        call->err))
        return NULL;
    if (shape)
        out->shape = *shape;
    return out;
}

struct tensor *kernel_share_output(struct kernel_call *call, int i, const struct tensor *value)
{
    const struct call_host *host = call_host(call);
    const struct value *planned = &host->plan->values.items[host->item->out[i]];
    struct tensor *out = call->out[i];
    if (value->buffer && !call->outputs && (!host->planned || is_counted_output(host, i)) &&
        planned->offset < 0) {
        if (host->planned && !shape_equal(&out->shape, &value->shape))
            return fail_shape(call, i, &out->shape, &value->shape);
        if (!shape_compatible(&planned->shape, &value->shape)) /* who takes it does not check it */
            return fail_shape(call, i, &planned->shape, &value->shape);
        tensor_share(out, value);
        return out;
    }
    if (!(out = kernel_alloc_output(call, i, &value->shape)))
        return NULL;
    if (!planned->on_device)
        memcpy(out->data, value->data, tensor_bytes(value));
    else if (queue_copy(call->device, QUEUE_COMPUTE, out->data, value, call->err))
        return NULL;
    return out;
}

/* There is no pool while the plan is made. */
static struct buffer *alloc_on_device(const struct kernel_call *call, size_t bytes)
{
    struct pool *pool = call_host(call)->pool;
    return pool ? pool_alloc(pool, bytes) : device_alloc(call->device, bytes);
}

int kernel_keep_input(struct kernel_call *call, int i, struct tensor *kept)
{
    const struct call_host *host = call_host(call);
    const struct plan *plan = host->plan;
    const struct value *value = &plan->values.items[host->item->in[i]];
    const struct tensor *in = call->in[i];
    struct buffer *buffer = NULL;
    if (call->node && !node_keeps(call->node, i))
        return error_set(call->err, ERR_INTERNAL, "it is not declared that input %d is kept", i);
    /* the memory of a variable that is written in place is not counted */
    if (in->buffer && (value->kind != VALUE_VARIABLE || plan->options.device->is_host)) {
        if (!value->is_outgoing || !copy_to_send(host, i, in, kept))
            tensor_share(kept, in);
        return 0;
    }
    if (value->on_device)
        return value_copy(call->device, alloc_on_device(call, tensor_bytes(in)), in, kept,
                          call->err);
    if (value->is_outgoing)
        buffer = outgoing_alloc(plan->options.outgoing, in->type, tensor_bytes(in));
    return buffer ? value_copy(call->device, buffer, in, kept, call->err)
                  : tensor_copy(kept, in, call->err);
}

int kernel_take_input(struct kernel_call *call, int i, struct tensor *taken)
{
    const struct call_host *host = call_host(call);
    struct tensor *in = call->in[i];
    bool is_own = host->plan->values.items[host->item->in[i]].kind == VALUE_COMPUTED;
    if (!is_own || !in->buffer)
        return kernel_keep_input(call, i, taken);
    *taken = *in;
    in->buffer = NULL;
    return 0;
}

static void *keep_temporary(struct kernel_call *call, struct temporary temporary, size_t bytes)
{
    struct call_host *host = call_host(call);
    if (temporary.memory || temporary.buffer)
        vec_push(host->temporaries, temporary);
    else
        error_set(call->err, ERR_OS, "no memory for %zu bytes of scratch%s", bytes,
                  mem_limit_text());
    return temporary.buffer ? temporary.buffer->data : temporary.memory;
}

void *kernel_temporary(struct kernel_call *call, size_t bytes)
{
    return keep_temporary(call, (struct temporary){.memory = mem_try(bytes)}, bytes);
}

void *kernel_device_temporary(struct kernel_call *call, size_t bytes)
{
    if (call->device->is_host)
        return kernel_temporary(call, bytes);
    if (call_host(call)->is_captured) {
        error_set(call->err, ERR_INTERNAL, "what is captured has no temporary memory");
        return NULL;
    }
    return keep_temporary(call, (struct temporary){.buffer = alloc_on_device(call, bytes)}, bytes);
}
