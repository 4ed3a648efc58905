/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels that write rows of variables share on all devices.
 */
#ifndef TF_OPS_STATE_SCATTER_H
#define TF_OPS_STATE_SCATTER_H

#include "exec/device/kernel.h"

/* That updates are rows of the variable, one for each index. */
int scatter_check_shapes(struct kernel_call *call);

#endif
