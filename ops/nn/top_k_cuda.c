/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of TopKV2 and InTopK.
 */
#include "ops/nn/launchers_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/nn/checks.h"

static int top_k_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    struct cuda_top_k launch = {.type = cuda_type_of(x->type), .x = x->data};
    struct tensor *values, *indices;
    if (top_k_check(call, &launch.n, &launch.k) || top_k_outputs(call, launch.k, &values, &indices))
        return call->err->code;
    if (!tensor_count(values))
        return KERNEL_DONE;
    launch.rows = tensor_count(values) / launch.k;
    launch.values = values->data;
    launch.indices = indices->data;
    return cuda_launched(call, cuda_top_k(&launch, cuda_compute(call)));
}

static int in_top_k_run(struct kernel_call *call)
{
    const struct tensor *predictions = call->in[0], *targets = call->in[1];
    if (in_top_k_check(call))
        return call->err->code;
    struct tensor *out = kernel_alloc_nonempty(call, 0, &targets->shape);
    if (!out)
        return call->err->code;
    struct cuda_in_top_k launch = {.type = cuda_type_of(predictions->type),
                                   .rows = predictions->shape.dims[0],
                                   .n = predictions->shape.dims[1],
                                   .k = *(const int64_t *)call->state,
                                   .predictions = predictions->data,
                                   .targets = targets->data,
                                   .wide_targets = targets->type == INT64,
                                   .out = out->data};
    return cuda_launched(call, cuda_in_top_k(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_top_k = {.run = top_k_run};
const struct kernel_code kernel_cuda_in_top_k = {.prepare = in_top_k_prepare, .run = in_top_k_run};
