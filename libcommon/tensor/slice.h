/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a larger variable a tensor is.
 */
#ifndef TF_TENSOR_SLICE_H
#define TF_TENSOR_SLICE_H

#include <stdbool.h>

#include "tensor/box.h"

struct slice_axis {
    int64_t size, first; /* that the whole has along it; where the part begins */
};

struct variable_slice { /* a box of a larger variable: rows of it, or parts along other axes, too */
    const char *of;     /* its name; NULL: it is whole */
    int64_t rows, first;                    /* that the whole has; which of them its first one is */
    struct slice_axis axes[SHAPE_RANK_MAX]; /* those behind the first; size 0: all along it */
};

bool variable_slice_equal(const struct variable_slice *a, const struct variable_slice *b);

/* The box of the whole that a value of that shape is, and the whole's shape. */
struct box variable_slice_box(const struct variable_slice *slice, const struct shape *shape,
                              struct shape *whole);

#endif
