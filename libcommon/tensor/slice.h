/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes which part of a larger variable a tensor is.
 */
#ifndef TF_TENSOR_SLICE_H
#define TF_TENSOR_SLICE_H

#include <stdbool.h>

#include "tensor/box.h"

struct slice_axis {
    int64_t size, first; /* the whole's size along this axis; the part's offset */
};

struct variable_slice {  /* a box of a larger variable: rows, or parts along other axes, too */
    const char *of;      /* its name; NULL: not a part */
    int64_t rows, first; /* of the whole; the part's first row */
    struct slice_axis axes[SHAPE_RANK_MAX]; /* the axes after the first; size 0: all of it */
};

bool variable_slice_equal(const struct variable_slice *a, const struct variable_slice *b);

/* Returns the box of the whole that a value of this shape is, and the whole's shape. */
struct box variable_slice_box(const struct variable_slice *slice, const struct shape *shape,
                              struct shape *whole);

#endif
