/* SPDX-License-Identifier: Apache-2.0
 *
 * LearnedUnigramCandidateSampler: its counts are a variable, to which the true classes are added
 * after drawing. On a device with memory of its own, the counts are copied to the host, which draws
 * and adds, and are copied back.
 */
#include "base/container_of.h"
#include "base/memory.h"
#include "exec/device/fault.h"
#include "exec/device/queue.h"
#include "exec/state/variable.h"
#include "ops/random/candidate.h"

static void learn(const struct kernel_call *call, int64_t *counts)
{
    const int64_t *classes = call->in[1]->data;
    for (int64_t i = 0; i < tensor_count(call->in[1]); i++)
        counts[classes[i]]++;
}

/* ---- counts in the memory of a device ---- */

struct learned_draw {
    struct event_waiter waiter;
    struct kernel_call *call;
    struct tensor counts; /* on the host */
    struct fault fault;   /* the fault that made them garbage, if any */
};

static void drawing_free(struct learned_draw *drawing)
{
    tensor_release(&drawing->counts);
    mem_free(drawing);
}

/* Fetches the step block's error flag as it is after the kernels so far. It is copied first, as
 * later kernels may write to it meanwhile. */
static int fetch_counts(struct learned_draw *drawing)
{
    struct kernel_call *call = drawing->call;
    struct device *device = call->device;
    const struct tensor *counts = &call->refs[0]->value;
    size_t bytes = sizeof drawing->fault;
    if (tensor_alloc(&drawing->counts, counts->type, &counts->shape, call->err) ||
        device->memory->copy(device, QUEUE_COMPUTE, call->scratch, &call->step_block->fault, bytes,
                             call->err))
        return call->err->code;
    queue_follow(device, QUEUE_OUT, QUEUE_COMPUTE);
    if (device->memory->copy(device, QUEUE_OUT, &drawing->fault, call->scratch, bytes, call->err))
        return call->err->code;
    return queue_copy(device, QUEUE_OUT, drawing->counts.data, counts, call->err);
}

static int draw(struct learned_draw *drawing, const struct error *failure)
{
    struct kernel_call *call = drawing->call;
    if (failure) {
        *call->err = *failure;
        return failure->code;
    }
    if (drawing->fault.code)
        return fault_report(&drawing->fault, call->err);
    if (candidate_sample_counted(call, &drawing->counts))
        return call->err->code;
    learn(call, drawing->counts.data);
    struct variable *variable = call->refs[0];
    struct device *device = call->device;
    if (variable_prepare_write(variable, &drawing->counts.shape, VARIABLE_OVERWRITE, call->err))
        return call->err->code;
    queue_follow(device, QUEUE_IN, QUEUE_COMPUTE);
    int code = queue_copy(device, QUEUE_IN, variable->value.data, &drawing->counts, call->err);
    queue_follow(device, QUEUE_COMPUTE, QUEUE_IN);
    queue_keep(device, QUEUE_IN, &drawing->counts);
    if (!code)
        variable_written(variable);
    return code;
}

static void fetched(struct event_waiter *waiter, const struct error *failure)
{
    struct learned_draw *drawing = CONTAINER_OF(waiter, struct learned_draw, waiter);
    struct kernel_call *call = drawing->call;
    int code = draw(drawing, failure);
    drawing_free(drawing);
    kernel_done(call, code);
}

/* ---- the kernel ---- */

static int prepare(struct kernel_setup *setup)
{
    candidate_new(setup, 0);
    if (!setup->device->is_host)
        setup->scratch_bytes = sizeof(struct fault);
    return 0;
}

static int run(struct kernel_call *call)
{
    if (!call->device->is_host) {
        struct learned_draw *drawing = mem_alloc(sizeof *drawing);
        *drawing =
            (struct learned_draw){.waiter.done = fetched, .call = call, .counts = TENSOR_INIT};
        int code = fetch_counts(drawing);
        if (code) {
            drawing_free(drawing);
            return code;
        }
        queue_notify_end(call->device, QUEUE_OUT, &drawing->waiter);
        return KERNEL_PENDING;
    }
    struct variable *variable = call->refs[0];
    struct shape shape = variable->value.shape;
    if (candidate_sample_counted(call, &variable->value) ||
        variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err))
        return call->err->code;
    learn(call, variable->value.data);
    variable_written(variable);
    return KERNEL_DONE;
}

const struct kernel_code kernel_learned_unigram_candidates = {.prepare = prepare, .run = run};
