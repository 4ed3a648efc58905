/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the kernels of linear algebra on all devices: the sizes of a problem.
 */
#ifndef TF_OPS_MATRIX_LINEAR_SIZES_H
#define TF_OPS_MATRIX_LINEAR_SIZES_H

#include "exec/device/kernel.h"

struct linear_flags {
    bool adjoint, lower; /* false if the op lacks the flag */
};

struct linear_sizes {
    int n, columns;            /* of each matrix; of the second operand, 0 without one */
    int64_t matrices, results; /* results: elements of the output */
};

struct linear_flags linear_flags_of(const struct node *node);

/* Finds the sizes of operands with the matching shapes `a` and `b` (NULL: none). False: matrices
 * are too large. */
bool linear_sizes_for(const struct shape *a, const struct shape *b, const struct shape *result,
                      struct linear_sizes *sizes);

/* Makes the output, and finds the sizes of the call's one or two inputs. NULL with call->err set:
 * they do not fit, or are too large. */
struct tensor *linear_output(struct kernel_call *call, struct linear_sizes *sizes);

#endif
