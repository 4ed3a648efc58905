/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the declarations and kernels of matrix products on all devices: shapes and sizes.
 */
#ifndef TF_OPS_MATRIX_PRODUCT_H
#define TF_OPS_MATRIX_PRODUCT_H

#include "exec/device/kernel.h"

struct infer;

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
struct product_sizes product_sizes_of(const struct product_flags *flags, const struct shape *a,
                                      const struct shape *b);

/* For shape functions: finds the shape of the product of two inputs, matrices, which are transposed
 * by transpose_a and transpose_b. */
int product_shape(struct infer *infer, int left, int right, struct shape *shape);

#endif
