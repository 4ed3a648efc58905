/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of AddN. A 16-bit sum of more than CUDA_ADDN_INPUTS inputs is rounded once per
 * launch.
 */
#include "ops/math/launchers_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"

/* The output may overwrite an input of the first launch, which reads before it writes. */
static int prepare(struct kernel_setup *setup)
{
    if (setup->n_in == 1) {
        setup->out[0].forward = FORWARD_ALIAS;
        return 0;
    }
    kernel_offer_reuse(setup, 0);
    kernel_offer_reuse(setup, 1);
    return 0;
}

static int run(struct kernel_call *call)
{
    if (call->n_in == 1)
        return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || !tensor_count(out))
        return call->err->code;
    /* Adds as many inputs as fit in a launch; the next launch continues from the sum so far. */
    struct cuda_addn launch = {
        .type = cuda_type_of(out->type), .n = tensor_count(out), .out = out->data};
    int code = KERNEL_ENQUEUED;
    for (int next = 0; next < call->n_in && code == KERNEL_ENQUEUED;) {
        launch.n_in = 0;
        if (next)
            launch.in[launch.n_in++] = out->data;
        while (next < call->n_in && launch.n_in < CUDA_ADDN_INPUTS)
            launch.in[launch.n_in++] = call->in[next++]->data;
        code = cuda_launched(call, cuda_addn(&launch, cuda_compute(call)));
    }
    return code;
}

const struct kernel_code kernel_cuda_addn = {.prepare = prepare, .run = run};
