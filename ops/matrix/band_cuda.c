/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/kernel_cuda.h"
#include "ops/matrix/launchers_cuda.h"

static int prepare(struct kernel_setup *setup)
{
    kernel_offer_reuse(setup, 0);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct band band;
    struct tensor *out = band_output(call, &band);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct cuda_band launch = {.element_bytes = (int)dtype_bytes(in->type),
                               .n = tensor_count(in),
                               .band = band,
                               .x = in->data,
                               .y = out->data};
    return cuda_launched(call, cuda_band(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_band = {.prepare = prepare, .run = run};
