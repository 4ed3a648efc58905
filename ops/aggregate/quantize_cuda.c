/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of quantized gradients.
 */
#include "exec/state/variable.h"
#include "ops/aggregate/gradient_code_cuda.h"
#include "ops/aggregate/quantize.h"
#include "ops/device/kernel_cuda.h"

_Static_assert((int)CUDA_CODE_ONE_BIT == CODE_ONE_BIT && (int)CUDA_CODE_UNIFORM == CODE_UNIFORM &&
                   (int)CUDA_CODE_THRESHOLD == CODE_THRESHOLD && (int)CUDA_CODE_TOP == CODE_TOP,
               "kinds of codes");

static struct cuda_code code_of(const struct kernel_call *call, int64_t groups)
{
    const struct gradient_code *code = call->state;
    return (struct cuda_code){.kind = (enum cuda_code_kind)code->kind,
                              .bits = code->bits,
                              .group = code->group,
                              .keep = code->keep,
                              .row = gradient_code_bytes(code),
                              .threshold = code->threshold,
                              .groups = groups};
}

static int quantize_run(struct kernel_call *call)
{
    struct quantize_call q;
    if (quantize_describe(call, &q))
        return call->err->code;
    struct cuda_encode launch = {.code = code_of(call, q.groups),
                                 .gradient = call->in[0]->data,
                                 .residual = call->in[1]->data,
                                 .rows = call->out[0]->data};
    if (!q.groups)
        return KERNEL_DONE;
    launch.residual += q.first * launch.code.group;
    return cuda_launched(call, cuda_encode(&launch, cuda_compute(call)));
}

static int dequantize_run(struct kernel_call *call)
{
    struct dequantize_call d;
    if (dequantize_describe(call, &d))
        return call->err->code;
    struct cuda_decode launch = {.code = code_of(call, d.groups),
                                 .n = d.n,
                                 .rows = call->in[0]->data,
                                 .mean = call->out[0]->data,
                                 .fault = cuda_fault_of(call, 0)};
    if (!d.groups)
        return KERNEL_DONE;
    return cuda_launched(call, cuda_decode(&launch, cuda_compute(call)));
}

static int residual_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    struct quantize_call q;
    int code = KERNEL_DONE;
    if (residual_describe(call, &q))
        return call->err->code;
    struct cuda_lose launch = {.code = code_of(call, q.groups),
                               .rows = call->in[2]->data,
                               .gradient = call->in[1]->data,
                               .residual = variable->value.data,
                               .fault = cuda_fault_of(call, 2)};
    if (q.groups) {
        launch.residual += q.first * launch.code.group;
        code = cuda_launched(call, cuda_lose(&launch, cuda_compute(call)));
    }
    if (code > 0)
        return code;
    variable_written(variable);
    return kernel_alias_output(call, 0, 0, NULL) ? code : call->err->code;
}

const struct kernel_code kernel_cuda_quantize_gradient = {.prepare = quantize_prepare,
                                                          .run = quantize_run};
const struct kernel_code kernel_cuda_dequantize_gradient = {.prepare = quantize_prepare,
                                                            .run = dequantize_run};
const struct kernel_code kernel_cuda_apply_residual = {.prepare = quantize_prepare,
                                                       .run = residual_run};
