/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the kernels of MatMul and BatchMatMul on all devices: the sizes of a product, and the
 * checks that shape inference could not make.
 */
#ifndef TF_OPS_MATRIX_PRODUCT_H
#define TF_OPS_MATRIX_PRODUCT_H

#include "exec/device/kernel.h"

struct product_flags {
    bool transpose_a, transpose_b;
};

struct product_sizes {
    struct product_flags flags;
    int64_t m, n, k, batches;
};

/* Reads the flags, whose names differ between the ops. */
static inline struct product_flags product_flags_of(const struct node *node, const char *flag_a,
                                                    const char *flag_b)
{
    return (struct product_flags){node_bool(node, flag_a), node_bool(node, flag_b)};
}

/* Returns the sizes of two shapes that are known to fit. */
struct product_sizes product_sizes_by(const struct product_flags *flags, const struct shape *a,
                                      const struct shape *b);

/* Finds the sizes of two of the call's inputs; ERR_DATA if they do not fit. */
int product_sizes_of(struct kernel_call *call, int left, int right,
                     const struct product_flags *flags, struct product_sizes *sizes);

/* Returns the output's shape, if the first input has the shape `a`. */
struct shape product_shape(const struct product_sizes *sizes, const struct shape *a);

#endif
