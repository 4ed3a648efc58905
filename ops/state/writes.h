/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels that write variables share on all devices.
 */
#ifndef TF_OPS_STATE_WRITES_H
#define TF_OPS_STATE_WRITES_H

#include "exec/device/kernel.h"
#include "exec/state/variable.h"

/* ---- whole ones ---- */

/* The state of Assign: whether the value's shape is checked. */
int assign_prepare(struct kernel_setup *setup);
enum variable_write assign_how(const struct kernel_call *call);

/* Returns whether the variable is assigned its own memory, perhaps seen with another shape, which
 * it has then: nothing is to be copied. */
bool assign_itself(struct kernel_call *call);

/* AssignAdd, AssignSub: the variable, ready to be changed in place; NULL with call->err set. */
struct variable *assign_begin_update(struct kernel_call *call);

/* The variable has its value, and is the output. `result`: what run is to return then. */
int assign_finish(struct kernel_call *call, int result);

/* ---- CountUpTo ---- */

/* The state is the limit, an int64_t. */
int count_up_to_prepare(struct kernel_setup *setup);

/* Checks that the variable is a scalar; returns 0, or an error. */
int count_up_to_check(struct kernel_call *call);

/* ---- rows ---- */

/* Checks that updates are rows of the variable, one for each index. */
int scatter_check_shapes(struct kernel_call *call);

#endif
