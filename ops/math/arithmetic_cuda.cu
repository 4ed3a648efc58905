/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of two arrays.
 */
#include "ops/math/arithmetic_ops_cuda.cuh"
#include "ops/math/binary_cuda.cuh"

#define ROWS(op, loop, types, ...) types##_ROWS(op, void)

/* clang-format off */
static const element_row<cuda_binary_launcher> rows[] = {
    OPS_OF_TWO(ROWS)
};
/* clang-format on */

extern "C" cuda_binary_launcher *cuda_binary(const char *op, enum cuda_type type)
{
    cuda_binary_launcher *launch = find_launcher(rows, op, type);
    launch = launch ? launch : find_comparison(op, type);
    return launch ? launch : [](const struct cuda_binary *, struct CUstream_st *) {
        return CUDA_INVALID_VALUE;
    };
}
