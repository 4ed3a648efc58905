/* SPDX-License-Identifier: Apache-2.0
 *
 * The op set of the toolkit: the registry of what every tool knows, and the table of kernels.
 */
#ifndef TF_OPS_OPS_H
#define TF_OPS_OPS_H

#include "exec/device/kernel.h"
#include "graph/op.h"

/* All built-in ops; made at the first call, shared by the whole process, never freed. Thread-safe.
 */
const struct registry *ops_registry(void);

/* All built-in kernels of all devices, as data: which exist, not their code. */
const struct kernel_table *ops_kernels(void);

#endif
