/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/broadcast_cuda.h"

#include "tensor/shape.h"

/* An input's dimensions are the last ones of the output; where it has one element it stands still.
 */
static void walk_input(struct cuda_broadcast *walk, int input, const struct shape *shape)
{
    int64_t strides[SHAPE_RANK_MAX];
    int first = walk->rank - shape->rank;
    shape_strides(shape, strides);
    for (int i = 0; i < walk->rank; i++) {
        bool advances = i >= first && shape->dims[i - first] != 1;
        walk->strides[input][i] = advances ? strides[i - first] : 0;
    }
}

void cuda_broadcast_plan(struct cuda_broadcast *walk, const struct shape *out,
                         const struct shape *const *inputs, int n)
{
    walk->rank = out->rank;
    for (int i = 0; i < out->rank; i++)
        walk->dims[i] = out->dims[i];
    for (int i = 0; i < n; i++)
        walk_input(walk, i, inputs[i]);
}
