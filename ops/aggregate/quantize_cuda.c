/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of quantized gradients.
 */
#include "exec/state/variable.h"
#include "ops/aggregate/gradient_code_cuda.h"
#include "ops/aggregate/quantize.h"
#include "ops/device/kernel_cuda.h"

static int quantize_run(struct kernel_call *call)
{
    struct coded_gradients q;
    if (quantize_describe(call, &q))
        return call->err->code;
    return q.groups ? cuda_launched(call, cuda_encode(&q, cuda_compute(call))) : KERNEL_DONE;
}

static int dequantize_run(struct kernel_call *call)
{
    struct coded_gradients q;
    struct cuda_fault fault = cuda_fault_of(call, 0);
    if (dequantize_describe(call, &q))
        return call->err->code;
    return q.groups ? cuda_launched(call, cuda_decode(&q, &fault, cuda_compute(call)))
                    : KERNEL_DONE;
}

static int residual_run(struct kernel_call *call)
{
    struct coded_gradients q;
    struct cuda_fault fault = cuda_fault_of(call, 2);
    int code = KERNEL_DONE;
    if (residual_describe(call, &q))
        return call->err->code;
    if (q.groups)
        code = cuda_launched(call, cuda_lose(&q, &fault, cuda_compute(call)));
    if (code > 0)
        return code;
    variable_written(call->refs[0]);
    return kernel_alias_output(call, 0, 0, NULL) ? code : call->err->code;
}

const struct kernel_code kernel_cuda_quantize_gradient = {.prepare = quantize_prepare,
                                                          .run = quantize_run};
const struct kernel_code kernel_cuda_dequantize_gradient = {.prepare = quantize_prepare,
                                                            .run = dequantize_run};
const struct kernel_code kernel_cuda_apply_residual = {.prepare = quantize_prepare,
                                                       .run = residual_run};
