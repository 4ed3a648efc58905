/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of RandomShuffle and Multinomial.
 */
#include "ops/array/launchers_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/random/launchers_cuda.h"

static int prepare(struct kernel_setup *setup, size_t scratch)
{
    setup->scratch_bytes = scratch;
    return random_prepare(setup);
}

/* ---- RandomShuffle ---- */

static int64_t row_count(const struct shape *shape)
{
    return shape->rank ? shape->dims[0] : 1;
}

/* Memory for an order, and for the numbers drawn. */
static size_t shuffle_scratch(const struct shape *shape)
{
    return 2 * (size_t)row_count(shape) * sizeof(int64_t);
}

static int shuffle_prepare(struct kernel_setup *setup)
{
    const struct shape *shape = &setup->in_types[0].shape;
    return prepare(setup, shape_is_known(shape) ? shuffle_scratch(shape) : 0);
}

static int shuffle_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_nonempty(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    int64_t n = row_count(&in->shape);
    int64_t *order = cuda_scratch(call, shuffle_scratch(&in->shape));
    if (!order)
        return call->err->code;
    struct cuda_shuffle launch = {.place = cuda_random_place_of(call), .n = n, .order = order};
    launch.scratch = order + n;
    int code = cuda_launched(call, cuda_shuffle(&launch, cuda_compute(call)));
    if (code != KERNEL_ENQUEUED)
        return code;
    struct cuda_gather gather = {.element_bytes = (int)dtype_bytes(in->type),
                                 .rows = n,
                                 .columns = tensor_count(in) / n,
                                 .indices = {CUDA_INT64, n, order},
                                 .table = in->data,
                                 .out = out->data};
    return cuda_launched(call, cuda_gather(&gather, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_random_shuffle = {.prepare = shuffle_prepare,
                                                       .run = shuffle_run};

/* ---- Multinomial ---- */

static size_t multinomial_scratch(const struct shape *logits)
{
    return (size_t)shape_count(logits) * sizeof(double);
}

static int multinomial_prepare(struct kernel_setup *setup)
{
    const struct shape *logits = &setup->in_types[0].shape;
    return prepare(setup, shape_is_known(logits) ? multinomial_scratch(logits) : 0);
}

static int multinomial_run(struct kernel_call *call)
{
    const struct tensor *logits = call->in[0];
    struct tensor *out = multinomial_output(call);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct cuda_multinomial launch = {.place = cuda_random_place_of(call),
                                      .type = cuda_type_of(logits->type),
                                      .rows = out->shape.dims[0],
                                      .classes = logits->shape.dims[1],
                                      .samples = out->shape.dims[1],
                                      .logits = logits->data,
                                      .out = out->data,
                                      .fault = cuda_fault_of(call, 0)};
    launch.scratch = cuda_scratch(call, multinomial_scratch(&logits->shape));
    if (!launch.scratch)
        return call->err->code;
    return cuda_launched(call, cuda_multinomial(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_multinomial = {.prepare = multinomial_prepare,
                                                    .run = multinomial_run};
