/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized gradients on CUDA, with the rows of ops/aggregate/gradient_code.h. Means and deviations
 * are summed in float64, in the block's order; all else has the CPU's bits.
 */
#ifndef TF_OPS_AGGREGATE_GRADIENT_CODE_CUDA_H
#define TF_OPS_AGGREGATE_GRADIENT_CODE_CUDA_H

#include "ops/aggregate/gradient_code.h"
#include "ops/device/launch_cuda.h"

/* Faults are for rows with an index outside their group. */

CUDA_C int cuda_encode(const struct coded_gradients *call, struct CUstream_st *stream);
CUDA_C int cuda_decode(const struct coded_gradients *call, const struct cuda_fault *fault,
                       struct CUstream_st *stream);

/* residual = residual + gradient - decoded rows, unless the step has failed or a fault is found:
 * then the residual is unchanged. */
CUDA_C int cuda_lose(const struct coded_gradients *call, const struct cuda_fault *fault,
                     struct CUstream_st *stream);

#endif
