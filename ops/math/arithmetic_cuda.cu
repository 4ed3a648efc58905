/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of two arrays.
 */
#include "ops/math/arithmetic_ops_cuda.cuh"
#include "ops/math/binary_cuda.cuh"

#define ROWS(op, loop, types, ...) types##_ROWS(op, void)

/* clang-format off */
static const cuda_binary_row rows[] = {
    BINARY_OPS(ROWS)
    ACTIVATION_MASK_GRADS(ROWS)
    ACTIVATION_CURVE_GRADS(ROWS)
};
/* clang-format on */

extern "C" int cuda_arithmetic(const struct cuda_binary *call, struct CUstream_st *stream)
{
    return launch_row(rows, call, stream);
}
