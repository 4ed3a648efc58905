/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "exec/device/kernel.h"
#include "exec/device/step_block.h"

static int check_run(struct kernel_call *call)
{
    int64_t bad = tensor_find_not_finite(call->in[0]);
    if (bad < 0)
        return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
    double value = tensor_get_float64(call->in[0], bad);
    return kernel_fault(call, &(struct fault){.code = FAULT_NOT_FINITE,
                                              .at = bad,
                                              .value = isnan(value) ? 0
                                                       : value > 0  ? 1
                                                                    : -1});
}

const struct kernel_code kernel_check_numerics = {.prepare = kernel_prepare_alias,
                                                  .run = check_run};
