/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, in an order that the shape alone decides. float32 and shorter are added in float64.
 */
#ifndef TF_OPS_MATH_REDUCE_CUDA_H
#define TF_OPS_MATH_REDUCE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/device/launch_cuda.h"

#define CUDA_REDUCE_RANK (2 * CUDA_RANK_MAX) /* a tile has two dimensions of each */

enum cuda_reduction {
    CUDA_SUM,
    CUDA_PROD,
    CUDA_MAX,
    CUDA_MIN,
    CUDA_MEAN,
    CUDA_ALL, /* of booleans */
    CUDA_ANY,
    CUDA_L2_LOSS, /* of floats */
    N_CUDA_REDUCTIONS,
};

struct cuda_reduce {
    enum cuda_reduction op;
    enum cuda_type type;
    int rank; /* of x; at most CUDA_RANK_MAX dimensions are reduced, and as many kept */
    int64_t dims[CUDA_REDUCE_RANK];
    bool reduced[CUDA_REDUCE_RANK];
    const void *x;
    void *y;       /* what is kept, row-major */
    void *scratch; /* cuda_reduce_scratch bytes, at a multiple of 8 */
};

/* "Sum", "L2Loss"; N_CUDA_REDUCTIONS: CUDA has none of the name. */
CUDA_C enum cuda_reduction cuda_reduction_of(const char *op);

CUDA_C size_t cuda_reduce_scratch(const struct cuda_reduce *call);

/* The mean of no integers is CUDA_INVALID_VALUE. */
CUDA_C int cuda_reduce(const struct cuda_reduce *call, struct CUstream_st *stream);

#endif
