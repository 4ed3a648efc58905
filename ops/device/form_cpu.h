/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels shared by several ops that differ only in a table entry.
 */
#ifndef TF_OPS_DEVICE_FORM_CPU_H
#define TF_OPS_DEVICE_FORM_CPU_H

#include "exec/device/kernel.h"

/* Finds the entry for the node's op in an array whose elements begin with the op's name, a const
 * char *. NULL with the error set: the op has a row in the list of kernels, but no entry. */
#define FORM_FIND(setup, forms) FORM_FIND_OP(setup, (setup)->node->op->def->name, forms)
/* The same for another op, which the node's op consists of. */
#define FORM_FIND_OP(setup, op, forms)                                                             \
    form_find(setup, op, forms, sizeof(forms) / sizeof *(forms), sizeof *(forms))
const void *form_find(struct kernel_setup *setup, const char *op, const void *forms, size_t n,
                      size_t bytes);

#endif
