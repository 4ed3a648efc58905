/* SPDX-License-Identifier: Apache-2.0
 *
 * The k largest elements of rows, in order: NaN is the largest, of equals the one that comes first.
 */
#ifndef TF_OPS_NN_TOP_K_CUDA_H
#define TF_OPS_NN_TOP_K_CUDA_H

#include <stdbool.h>

#include "ops/device/launch_cuda.h"

struct cuda_top_k {
    enum cuda_type type; /* a number */
    int64_t rows, n, k;
    const void *x;
    void *values;
    int32_t *indices;
};

/* Whether fewer than k elements of a row are larger than that of its target; not where the target
 * is none of them, or an element is not finite. */
struct cuda_in_top_k {
    enum cuda_type type; /* of the predictions: a float */
    int64_t rows, n, k;
    const void *predictions, *targets;
    bool wide_targets; /* of int64; else of int32 */
    bool *out;
};

CUDA_C int cuda_top_k(const struct cuda_top_k *call, struct CUstream_st *stream);
CUDA_C int cuda_in_top_k(const struct cuda_in_top_k *call, struct CUstream_st *stream);

#endif
