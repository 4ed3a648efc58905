/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of CountUpTo share on all devices.
 */
#ifndef TF_OPS_STATE_COUNT_UP_TO_H
#define TF_OPS_STATE_COUNT_UP_TO_H

#include "exec/device/kernel.h"

/* The state is the limit, an int64_t. */
int count_up_to_prepare(struct kernel_setup *setup);

/* That the variable is a scalar; 0, or an error. */
int count_up_to_check(struct kernel_call *call);

#endif
