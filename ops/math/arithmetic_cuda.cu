/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of two arrays.
 */
#include "ops/math/arithmetic_ops_cuda.cuh"
#include "ops/math/binary_cuda.cuh"

#define ROWS_REAL(op, ...) REAL_ROWS(op, void)
#define ROWS_SIGNED(op, ...) SIGNED_ROWS(op, void)
#define ROWS_WORD(op, ...) FLOAT_ROWS(op, void) WORD_ROWS(op, void)
#define ROWS_FLOAT(op, ...) FLOAT_ROWS(op, void)

/* clang-format off */
static const cuda_binary_row rows[] = {
    BINARY_REAL_OPS(ROWS_REAL)
    BINARY_SIGNED_OPS(ROWS_SIGNED)
    BINARY_WORD_OPS(ROWS_WORD)
    BINARY_GRADIENTS(ROWS_FLOAT)
    BINARY_MASKS(ROWS_REAL)
    BINARY_SLOPES(ROWS_FLOAT)
};
/* clang-format on */

extern "C" int cuda_arithmetic(const struct cuda_binary *call, struct CUstream_st *stream)
{
    return launch_row(rows, call, stream);
}
