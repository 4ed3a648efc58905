/* SPDX-License-Identifier: Apache-2.0
 *
 * CheckNumerics: floats are looked at, and not changed.
 */
#ifndef TF_OPS_ARRAY_CHECK_NUMERICS_CUDA_H
#define TF_OPS_ARRAY_CHECK_NUMERICS_CUDA_H

#include "ops/device/launch_cuda.h"

/* FAULT_NOT_FINITE of the first NaN or infinity. */
struct cuda_check_numerics {
    enum cuda_type type; /* a floating one */
    int64_t n;
    const void *x;
    struct cuda_fault fault;
};

CUDA_C int cuda_check_numerics(const struct cuda_check_numerics *call, struct CUstream_st *stream);

#endif
