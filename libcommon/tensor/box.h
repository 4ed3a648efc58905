/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxes: parts of a tensor, [first, first + size) along each axis.
 */
#ifndef TF_TENSOR_BOX_H
#define TF_TENSOR_BOX_H

#include "tensor/shape.h"

struct box {
    int rank;
    int64_t first[SHAPE_RANK_MAX], size[SHAPE_RANK_MAX];
};

/* Returns the intersection of two boxes of the same rank; its size is 0 along axes on which they do
 * not overlap. */
struct box box_meet(const struct box *a, const struct box *b);
int64_t box_count(const struct box *box); /* elements */

/* Copies the intersection between row-major tensors whose elements have `element` bytes. */
void box_copy(void *to, const struct box *to_box, const void *from, const struct box *from_box,
              size_t element);

/* Fills the intersection, in a tensor of bytes. */
void box_fill(uint8_t *to, const struct box *to_box, const struct box *part, uint8_t value);

#endif
