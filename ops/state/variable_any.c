/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/kernel.h"
#include "exec/state/variable.h"

/* The planner finds the variable in the store, so nothing is left to do in a step. */
static int variable_run(struct kernel_call *call)
{
    (void)call;
    return KERNEL_DONE;
}

static int is_initialized_run(struct kernel_call *call)
{
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!out)
        return call->err->code;
    *(bool *)out->data = call->refs[0]->initialized;
    return KERNEL_DONE;
}

const struct kernel_code kernel_variable = {.run = variable_run};
const struct kernel_code kernel_is_variable_initialized = {.run = is_initialized_run};
