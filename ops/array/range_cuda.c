/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/launchers_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"

static int run(struct kernel_call *call)
{
    struct tensor *out = result_outputs(call, 0, 3);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct cuda_range launch = {.type = cuda_type_of(out->type),
                                .n = tensor_count(out),
                                .start = call->in[0]->data,
                                .delta = call->in[2]->data,
                                .out = out->data};
    return cuda_launched(call, cuda_range(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_range = {.run = run};
