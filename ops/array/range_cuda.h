/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic progressions: element i is start + i * delta, computed in the wide type, in which
 * integers wrap around.
 */
#ifndef TF_OPS_ARRAY_RANGE_CUDA_H
#define TF_OPS_ARRAY_RANGE_CUDA_H

#include "ops/device/launch_cuda.h"

struct cuda_range {
    enum cuda_type type; /* a real one */
    int64_t n;
    const void *start, *delta; /* one each, on the host; read before the launcher returns */
    void *out;
};

CUDA_C int cuda_range(const struct cuda_range *call, struct CUstream_st *stream);

#endif
