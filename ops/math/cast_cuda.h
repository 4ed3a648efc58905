/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast between any two real types, or booleans. Floats that an integer type has no room for become
 * its nearest value, NaN zero; integers lose their upper bits; what is not zero is true.
 */
#ifndef TF_OPS_MATH_CAST_CUDA_H
#define TF_OPS_MATH_CAST_CUDA_H

#include "ops/device/launch_cuda.h"

struct cuda_cast {
    enum cuda_type from, to;
    int64_t n;
    const void *x;
    void *y; /* overlaps x nowhere */
};

CUDA_C int cuda_cast(const struct cuda_cast *call, struct CUstream_st *stream);

#endif
