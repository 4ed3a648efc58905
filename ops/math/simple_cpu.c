/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of one tensor that take an instruction or a few per element.
 */
#include <tgmath.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

/* clang-format off */
#define FLOAT_OPS(X)                                                                               \
    X(Sqrt, sqrt, MOVE, sqrt(x))                                                                   \
    X(Rsqrt, rsqrt, MOVE, 1 / sqrt(x))                                                             \
    X(Reciprocal, reciprocal, MOVE, 1 / x)                                                         \
    X(Floor, floor, MOVE, floor(x))                                                                \
    X(Ceil, ceil, MOVE, ceil(x))
#define REAL_OPS(X)                                                                                \
    X(Neg, neg, MOVE, -x, (T)(0 - (U)x))                                                           \
    X(Abs, abs, MOVE, fabs(x), x < 0 ? (T)(0 - (U)x) : x)                                          \
    X(Square, square, MOVE, x * x, (T)((U)x * (U)x))                                               \
    X(Sign, sign, MOVE, x > 0 ? 1 : x < 0 ? -1 : x, (x > 0) - (x < 0)) /* NaN and 0: their own */  \
    X(Round, round, MOVE, rint(x), x)
/* clang-format on */

FLOAT_OPS(UNARY_FLOAT_LOOPS)
REAL_OPS(UNARY_REAL_LOOPS)
UNARY_LOOP(is_nan_float32, float, uint8_t, x != x)
UNARY_LOOP(is_nan_float64, double, uint8_t, x != x)
UNARY_LOOP(logical_not, uint8_t, uint8_t, !x)

/* clang-format off */
const struct unary_row unary_simple[] = {
    FLOAT_OPS(FLOAT_ROWS)
    REAL_OPS(REAL_ROWS)
    FLOAT_ROWS(IsNan, is_nan, MOVE)
    ELEMENT_ROW(Square, UINT64, square_int64, MOVE) /* the same bits */
    ELEMENT_ROW(LogicalNot, BOOL, logical_not, MOVE)
    {0},
};
/* clang-format on */
