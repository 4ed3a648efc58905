/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons of two arrays, and the logic of booleans.
 */
#include "ops/math/binary_cuda.cuh"
#include "ops/math/elementwise_ops.h"

template <typename T> DEVICE_INLINE bool is_equal(T x, T y)
{
    return x == y;
}

/* Compares complex numbers. */
DEVICE_INLINE bool is_equal(float2 x, float2 y)
{
    return x.x == y.x && x.y == y.y;
}

#define EQUALS(x, y) is_equal(x, y)
#define OP(name, loop, element)                                                                    \
    struct name {                                                                                  \
        template <typename T> static __device__ __forceinline__ bool of(T x, T y, uint16_t &)      \
        {                                                                                          \
            return element;                                                                        \
        }                                                                                          \
    };
namespace
{
ORDER_OPS(OP)
EQUALITY_OPS(OP)
LOGIC_OPS(OP)
} // namespace

#define ROWS_REAL(op, ...) REALS_ROWS(op, bool)
#define ROWS_BOOL(op, ...) ROW(op, CUDA_BOOL, bool, bool)
#define ROWS_COMPLEX(op, ...) ROW(op, CUDA_COMPLEX64, float2, bool)

/* clang-format off */
static const element_row<cuda_binary_launcher> rows[] = {
    ORDER_OPS(ROWS_REAL)
    EQUALITY_OPS(ROWS_REAL)
    EQUALITY_OPS(ROWS_BOOL)
    EQUALITY_OPS(ROWS_COMPLEX)
    LOGIC_OPS(ROWS_BOOL)
};
/* clang-format on */

cuda_binary_launcher *find_comparison(const char *op, cuda_type type)
{
    return find_launcher(rows, op, type);
}
