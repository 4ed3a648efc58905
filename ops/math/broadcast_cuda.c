/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/broadcast_cuda.h"

#include "tensor/shape.h"

void cuda_broadcast_plan(struct cuda_broadcast *walk, const struct shape *out,
                         const struct shape *const *inputs, int n)
{
    walk->rank = out->rank;
    for (int i = 0; i < out->rank; i++)
        walk->dims[i] = out->dims[i];
    for (int i = 0; i < n; i++) {
        /* An input's dimensions align with the output's last ones; along dimensions of 1 it
         * stays. */
        const struct shape *shape = inputs[i];
        int64_t strides[SHAPE_RANK_MAX];
        int first = walk->rank - shape->rank;
        shape_strides(shape, strides);
        for (int j = 0; j < walk->rank; j++) {
            bool advances = j >= first && shape->dims[j - first] != 1;
            walk->strides[i][j] = advances ? strides[j - first] : 0;
        }
    }
}
