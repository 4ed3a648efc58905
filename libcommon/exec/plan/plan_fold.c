/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant folding: values that are the same in every step are computed when the plan is made.
 */
#include "base/memory.h"
#include "exec/device/queue.h"
#include "exec/plan/call.h"
#include "exec/plan/plan_steps.h"
#include "exec/step/device_step.h"
#include "exec/step/step.h"

/* Results larger than this are computed in every step rather than kept. */
#define FOLD_BYTES_MAX ((size_t)1 << 20)

/* A value made from one that may be dead must be dead with it, even where only the shape
 * matters. */
static bool foldable(const struct plan *plan, const struct item *item)
{
    const struct node *node = item->node;
    size_t bytes = 0;
    if (node->op->def->flags & (OP_STATEFUL | OP_CONTROL_FLOW | OP_SOURCE) || item->n_controls ||
        item->refs || !item->n_out || item->is_point || item->flow)
        return false;
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = &plan->values.items[item->in[i]];
        bool only_shape = plan_has_order(plan, item->frame) && node_has(node, OP_SHAPE_ONLY) &&
                          shape_is_known(&value->shape);
        if (!only_shape && (value->kind != VALUE_CONSTANT || value->item >= 0))
            return false;
    }
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        if (value->layout || value->type == STRING || !shape_is_known(&value->shape))
            return false;
        bytes += (size_t)shape_bytes(&value->shape, value->type);
    }
    return bytes <= FOLD_BYTES_MAX;
}

struct fold {
    struct call_host host;
    struct kernel_call call;
    struct step step;
    struct device_step on_device;
    struct tensor *tensors; /* inputs, then outputs */
    struct tensor **pointers;
    temporary_vec temporaries;
    struct arena memory;
};

static int fold_allocate(struct plan *plan, const struct item *item, struct fold *f,
                         struct error *err)
{
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = &plan->values.items[item->in[i]];
        f->tensors[i] = value->kind == VALUE_CONSTANT
                            ? value->constant
                            : tensor_borrow(value->type, &value->shape, NULL);
        f->pointers[i] = &f->tensors[i];
    }
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        struct tensor *t = f->pointers[item->n_in + i] = &f->tensors[item->n_in + i];
        *t = tensor_borrow(value->type, &value->shape, NULL);
        if (value->alias_of < 0 &&
            (value->on_device ? tensor_in_buffer(t, value->type, &value->shape,
                                                 device_alloc(f->call.device, tensor_bytes(t)), err)
                              : tensor_alloc(t, value->type, &value->shape, err)))
            return err->code;
    }
    return 0;
}

/* Copies values that were computed on the device to the host, where constants are. */
static int fold_fetch(struct plan *plan, const struct item *item, struct fold *f, struct error *err)
{
    struct device *device = f->call.device;
    for (int i = 0; i < item->n_out; i++) {
        struct tensor *t = &f->tensors[item->n_in + i], there = *t;
        if (!plan->values.items[item->out[i]].on_device)
            continue;
        if (tensor_alloc(t, there.type, &there.shape, err)) {
            *t = there;
            return err->code;
        }
        int code = device_read(device, t->data, there.data, tensor_bytes(&there), err);
        tensor_release(&there);
        if (code)
            return code;
    }
    return 0;
}

static int fold_run(struct plan *plan, struct item *item, struct fold *f)
{
    struct device *device = f->call.device;
    struct error *err = f->call.err, ignored = ERROR_INIT;
    struct buffer *scratch = item->scratch_bytes ? device_alloc(device, item->scratch_bytes) : NULL;
    if (item->scratch_bytes && !scratch)
        return ERR_OS;
    f->call.scratch = scratch ? scratch->data : NULL;
    bool is_on_device = false;
    for (int i = 0; i < item->n_out; i++)
        is_on_device |= plan->values.items[item->out[i]].on_device;
    int code = is_on_device ? device_step_begin(&f->on_device, device, &f->step, err) : 0;
    f->call.step_block = device_step_block(&f->on_device);
    if (!code)
        code = fold_allocate(plan, item, f, err);
    int result = code ? code : item->code->run(&f->call);
    if (!code)
        code =
            result == KERNEL_PENDING || result > 0 ? ERR_INTERNAL : fold_fetch(plan, item, f, err);
    device_step_end(&f->on_device);
    device_finish(device, &ignored);
    if (!code && device_step_fault(&f->on_device))
        code = ERR_DATA; /* set by enqueued work */
    if (scratch)
        scratch->free(scratch);
    return code;
}

/* A kernel that fails here is left to fail in the step, with the same message. */
void plan_fold(struct plan *plan, struct item *item)
{
    if (!foldable(plan, item))
        return;
    struct error err = ERROR_INIT;
    size_t n = (size_t)(item->n_in + item->n_out) + 1;
    struct fold f = {.host = {.planned = true, .plan = plan, .item = item}, .memory = ARENA_INIT};
    f.tensors = arena_array(&f.memory, n, sizeof *f.tensors);
    f.pointers = arena_array(&f.memory, n, sizeof *f.pointers);
    f.host.temporaries = &f.temporaries;
    f.call = item_call(&f.host, f.pointers);
    f.call.step = &f.step;
    f.call.threads = 1;
    f.call.err = &err;
    item->removed = !fold_run(plan, item, &f);
    for (int i = 0; i < item->n_out; i++) {
        struct value *value = &plan->values.items[item->out[i]];
        struct tensor *result = &f.tensors[item->n_in + i];
        if (!item->removed) {
            tensor_release(result);
            continue;
        }
        if (value->on_device) {
            value->on_device = false;
            value->alias_of = -1;
            value->root = item->out[i];
        }
        value->kind = VALUE_CONSTANT;
        value->constant = *result; /* an alias has no buffer of its own */
        value->item = -1;
    }
    temporaries_free(&f.temporaries);
    vec_release(&f.temporaries);
    device_step_release(&f.on_device);
    arena_release(&f.memory);
}
