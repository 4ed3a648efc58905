/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/state/launchers_cuda.h"

#include "exec/state/variable.h"
#include "ops/device/kernel_cuda.h"
#include "ops/state/writes.h"

static int run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    if (count_up_to_check(call))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!out || variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, call->err))
        return call->err->code;
    struct cuda_count_up_to launch = {.type = cuda_type_of(out->type),
                                      .limit = *(const int64_t *)call->state,
                                      .value = variable->value.data,
                                      .out = out->data,
                                      .fault = cuda_fault_of(call, 0)};
    int code = cuda_launched(call, cuda_count_up_to(&launch, cuda_compute(call)));
    if (code == KERNEL_ENQUEUED)
        variable_written(variable);
    return code;
}

const struct kernel_code kernel_cuda_count_up_to = {.prepare = count_up_to_prepare, .run = run};
