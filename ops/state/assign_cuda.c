/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels that write whole variables. Whether the step has failed by then is looked at on
 * the device; what the host does, it does in any case.
 */
#include "ops/state/launchers_cuda.h"

#include "ops/device/kernel_cuda.h"
#include "ops/state/writes.h"

/* The value goes where the variable's is. `fault`: that of the step; NULL if nothing is lost. */
static int write_value(struct kernel_call *call, const struct fault *fault)
{
    const struct tensor *value = call->in[1];
    struct cuda_assign launch = {.op = (enum cuda_assign_op)call->form,
                                 .type = cuda_type_of(value->type),
                                 .n = tensor_count(value),
                                 .from = value->data,
                                 .to = call->refs[0]->value.data,
                                 .fault = fault};
    int code = KERNEL_DONE;
    if (launch.n)
        code = cuda_launched(call, cuda_assign(&launch, cuda_compute(call)));
    return code > 0 ? code : assign_finish(call, code);
}

/* Memory that the variable did not have before is filled even in a step that has failed. */
static int assign_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    const void *before = variable->value.data;
    if (assign_itself(call))
        return assign_finish(call, KERNEL_DONE);
    if (variable_prepare_write(variable, &call->in[1]->shape, assign_how(call), call->err))
        return call->err->code;
    bool is_kept = variable->value.data == before;
    return write_value(call, is_kept ? cuda_step_fault(call) : NULL);
}

static int update_run(struct kernel_call *call)
{
    return assign_begin_update(call) ? write_value(call, cuda_step_fault(call)) : call->err->code;
}

const struct kernel_code kernel_cuda_assign = {
    .prepare = assign_prepare, .run = assign_run, .form = CUDA_ASSIGN};
const struct kernel_code kernel_cuda_assign_add = {.run = update_run, .form = CUDA_ASSIGN_ADD};
const struct kernel_code kernel_cuda_assign_sub = {.run = update_run, .form = CUDA_ASSIGN_SUB};
