/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized gradients on CUDA, with the rows of ops/aggregate/gradient_code.h. Means and deviations
 * are summed in float64, in the block's order; all else has the CPU's bits.
 */
#ifndef TF_OPS_AGGREGATE_GRADIENT_CODE_CUDA_H
#define TF_OPS_AGGREGATE_GRADIENT_CODE_CUDA_H

#include "ops/device/launch_cuda.h"

/* The kinds are in the order of enum gradient_code_kind. */
enum cuda_code_kind { CUDA_CODE_ONE_BIT, CUDA_CODE_UNIFORM, CUDA_CODE_THRESHOLD, CUDA_CODE_TOP };

struct cuda_code {
    enum cuda_code_kind kind;
    int bits;
    int64_t group, keep, row; /* elements of a group, elements kept, bytes of its row */
    float threshold;
    int64_t groups;
};

/* Encodes the sums of a gradient and a residual as rows. */
struct cuda_encode {
    struct cuda_code code;
    const float *gradient, *residual;
    uint8_t *rows;
};

/* The mean of n members' gradients, `code.groups` groups each, added in their order. */
struct cuda_decode {
    struct cuda_code code;
    int64_t n;
    const uint8_t *rows; /* member by member */
    float *mean;
    struct cuda_fault fault; /* for a row with an index outside its group */
};

/* residual = residual + gradient - decoded rows, unless the step has failed. */
struct cuda_lose {
    struct cuda_code code;
    const uint8_t *rows;
    const float *gradient;
    float *residual;
    struct cuda_fault fault; /* as above; then the residual is unchanged */
};

CUDA_C int cuda_encode(const struct cuda_encode *call, struct CUstream_st *stream);
CUDA_C int cuda_decode(const struct cuda_decode *call, struct CUstream_st *stream);
CUDA_C int cuda_lose(const struct cuda_lose *call, struct CUstream_st *stream);

#endif
