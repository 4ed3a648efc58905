/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of TopKV2 and InTopK.
 */
#include "ops/nn/launchers_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/nn/checks.h"

static int top_k_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    const struct tensor *values = top_k_outputs(call);
    if (!values || !tensor_count(values))
        return call->err->code;
    int last = x->shape.rank - 1;
    struct cuda_top_k launch = {.type = cuda_type_of(x->type),
                                .rows = tensor_count(x) / x->shape.dims[last],
                                .n = x->shape.dims[last],
                                .k = values->shape.dims[last],
                                .x = x->data,
                                .values = values->data,
                                .indices = call->out[1]->data};
    return cuda_launched(call, cuda_top_k(&launch, cuda_compute(call)));
}

static int in_top_k_run(struct kernel_call *call)
{
    const struct tensor *predictions = call->in[0], *targets = call->in[1];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
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
