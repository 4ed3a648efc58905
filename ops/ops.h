/* SPDX-License-Identifier: Apache-2.0
 *
 * The op set of the process: the registry that every tool knows, and the table of kernels; those of
 * the toolkit, and custom ones.
 */
#ifndef TF_OPS_OPS_H
#define TF_OPS_OPS_H

#include "exec/device/kernel.h"
#include "graph/op.h"

/* The registry of all ops; made at the first call, shared by the process, never freed.
 * Thread-safe. */
const struct registry *ops_registry(void);

/* The table of all kernels of all devices, as data: which exist, not their code. */
const struct kernel_table *ops_kernels(void);

/* Adds ops, and kernels for them, that live as long as the process: custom ops (user/user.h). Call
 * it before there are graphs or threads. ERR_INTERNAL as of registry_add. */
int ops_add(const struct op_def *const *defs, size_t n, const struct kernel_table *more,
            struct error *err);

#endif
