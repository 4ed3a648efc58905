/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice arithmetic shared by declarations and kernels.
 */
#ifndef TF_OPS_ARRAY_SLICE_H
#define TF_OPS_ARRAY_SLICE_H

#include "graph/graph.h"

/* StridedSlice: the masks of its node, and what it does to each dimension of its input. */
struct slice_masks {
    int64_t begin, end, ellipsis, new_axis, shrink_axis;
};

struct strided_range {
    int rank; /* of the input */
    int64_t start[SHAPE_RANK_MAX], step[SHAPE_RANK_MAX];
    struct shape
        count;        /* elements taken in each dimension: the result before new and shrunk axes */
    struct shape out; /* the result */
};

struct slice_masks slice_masks_of(const struct node *node);

#define SLICE_SPEC_MAX (2 * SHAPE_RANK_MAX)

/* The request: n <= SLICE_SPEC_MAX elements each in begin, end and strides, which are NULL if
 * unknown. */
struct slice_spec {
    struct slice_masks masks;
    int n;
    const int64_t *begin, *end, *strides;
};

/* Unknown dimensions of `in` give unknown counts; its rank is known. */
int slice_resolve_strided(const struct shape *in, const struct slice_spec *spec,
                          struct strided_range *range, struct error *err);

#endif
