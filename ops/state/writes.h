/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the kernels that write variables on all devices.
 */
#ifndef TF_OPS_STATE_WRITES_H
#define TF_OPS_STATE_WRITES_H

#include "exec/device/kernel.h"
#include "exec/state/variable.h"

/* ---- whole variables ---- */

/* Prepares Assign, whose state is whether the value's shape is checked. */
int assign_prepare(struct kernel_setup *setup);
enum variable_write assign_how(const struct kernel_call *call);

/* Returns whether the variable is assigned its own memory, perhaps with another shape, which it
 * then gets: nothing needs to be copied. */
bool assign_itself(struct kernel_call *call);

/* AssignAdd, AssignSub: the variable, ready to be changed in place; NULL with call->err set. */
struct variable *assign_begin_update(struct kernel_call *call);

/* Marks the variable as written, and makes it the output. `result`: run's return value. */
int assign_finish(struct kernel_call *call, int result);

/* ---- CountUpTo ---- */

/* The state is the limit, an int64_t. */
int count_up_to_prepare(struct kernel_setup *setup);

#endif
