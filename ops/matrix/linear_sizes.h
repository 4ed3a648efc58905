/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of linear algebra of any device share: the sizes of a problem, and what shape
 * inference could not see of them.
 */
#ifndef TF_OPS_MATRIX_LINEAR_SIZES_H
#define TF_OPS_MATRIX_LINEAR_SIZES_H

#include "exec/device/kernel.h"

struct linear_flags {
    bool adjoint, lower; /* false where the op has none */
    bool scalars;        /* the op makes a number of each matrix */
};

struct linear_sizes {
    int n, columns; /* of each matrix; of the second operand, 0 if there is none */
    int64_t matrices;
    struct shape result;
};

struct linear_flags linear_flags_of(const struct node *node);

/* Finds the sizes of operands with the shapes `a` and `b` (NULL: there is none), which fit. False:
 * matrices are too large. */
bool linear_sizes_for(struct linear_flags flags, const struct shape *a, const struct shape *b,
                      struct linear_sizes *sizes);

/* Finds the sizes of the call's one or two inputs; ERR_DATA if they do not fit, or are too large.
 * */
int linear_sizes_of(struct kernel_call *call, struct linear_flags flags,
                    struct linear_sizes *sizes);

#endif
