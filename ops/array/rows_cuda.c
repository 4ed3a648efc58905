/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of rows by number. Indices are checked on the device.
 */
#include "ops/array/launchers_cuda.h"

#include "ops/array/strided.h"
#include "ops/array/strided_kernels.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"

static struct cuda_indices indices_of(const struct tensor *t)
{
    return (struct cuda_indices){
        .type = cuda_type_of(t->type), .n = tensor_count(t), .data = t->data};
}

/* ---- Gather ---- */

static int gather_run(struct kernel_call *call)
{
    const struct tensor *params = call->in[0];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    struct cuda_gather launch = {.element_bytes = (int)dtype_bytes(params->type),
                                 .rows = params->shape.dims[0],
                                 .columns = shape_count_of(&params->shape, 1, params->shape.rank),
                                 .indices = indices_of(call->in[1]),
                                 .table = params->data,
                                 .out = out->data,
                                 .fault = cuda_fault_of(call, 1)};
    if (!launch.indices.n)
        return KERNEL_DONE;
    return cuda_launched(call, cuda_gather(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_gather = {.run = gather_run};

/* ---- UnsortedSegmentSum: rows that are added to zeros ---- */

static int segments_prepare(struct kernel_setup *setup)
{
    int64_t n = setup->shapes_known ? shape_count(&setup->in_types[1].shape) : 0;
    setup->scratch_bytes = n ? cuda_scatter_scratch(n) : 0;
    return 0;
}

static int segments_run(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 2, 3);
    if (!out)
        return call->err->code;
    int code = strided_fill_bits(call, out, 0);
    if (code > 0 || !tensor_count(call->in[1]))
        return code;
    struct cuda_scatter launch = {.op = CUDA_SCATTER_ADD,
                                  .type = cuda_type_of(out->type),
                                  .rows = out->shape.dims[0],
                                  .columns = shape_count_of(&out->shape, 1, out->shape.rank),
                                  .indices = indices_of(call->in[1]),
                                  .values = call->in[0]->data,
                                  .table = out->data,
                                  .fault = cuda_fault_of(call, 1)};
    launch.scratch = cuda_scratch(call, cuda_scatter_scratch(launch.indices.n));
    if (!launch.scratch)
        return call->err->code;
    return cuda_launched(call, cuda_scatter(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_unsorted_segment_sum = {.prepare = segments_prepare,
                                                             .run = segments_run};

/* ---- OneHot ---- */

static int one_hot_run(struct kernel_call *call)
{
    struct tensor *out = result_outputs_sized(call, 1, 2);
    int at;
    if (!out || !tensor_count(out))
        return call->err->code;
    shape_axis(*(const int64_t *)call->state, out->shape.rank, &at);
    struct cuda_one_hot launch = {.element_bytes = (int)dtype_bytes(out->type),
                                  .depth = out->shape.dims[at],
                                  .inner = shape_count_of(&out->shape, at + 1, out->shape.rank),
                                  .indices = indices_of(call->in[0]),
                                  .on = call->in[2]->data,
                                  .off = call->in[3]->data,
                                  .out = out->data};
    launch.outer = launch.indices.n / launch.inner;
    return cuda_launched(call, cuda_one_hot(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_one_hot = {.prepare = prepare_axis, .run = one_hot_run};
