/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/kernel.h"

static int noop_run(struct kernel_call *call)
{
    (void)call;
    return KERNEL_DONE;
}

const struct kernel_code kernel_noop = {.run = noop_run};
