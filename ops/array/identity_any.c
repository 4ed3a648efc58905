/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose output is their input's memory.
 */
#include "exec/device/kernel.h"

static int alias_prepare(struct kernel_setup *setup)
{
    setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

static int alias_run(struct kernel_call *call)
{
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_identity = {.prepare = alias_prepare, .run = alias_run};
