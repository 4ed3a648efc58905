/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of one tensor that take an instruction or a few per element.
 */
#include <math.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

UNARY_LOOP(neg_float32, float, float, -x)
UNARY_LOOP(neg_float64, double, double, -x)
UNARY_LOOP(neg_int32, int32_t, int32_t, (int32_t) - (uint32_t)x)
UNARY_LOOP(neg_int64, int64_t, int64_t, (int64_t) - (uint64_t)x)
UNARY_LOOP(abs_float32, float, float, fabsf(x))
UNARY_LOOP(abs_float64, double, double, fabs(x))
UNARY_LOOP(abs_int32, int32_t, int32_t, x < 0 ? (int32_t) - (uint32_t)x : x)
UNARY_LOOP(abs_int64, int64_t, int64_t, x < 0 ? (int64_t) - (uint64_t)x : x)
UNARY_LOOP(square_float32, float, float, x *x)
UNARY_LOOP(square_float64, double, double, x *x)
UNARY_LOOP(square_int32, int32_t, int32_t, (int32_t)((uint32_t)x *(uint32_t)x))
UNARY_LOOP(square_int64, int64_t, int64_t, (int64_t)((uint64_t)x *(uint64_t)x))
/* A NaN and a zero are their own sign. */
UNARY_LOOP(sign_float32, float, float, x > 0 ? 1.0f : x < 0 ? -1.0f : x)
UNARY_LOOP(sign_float64, double, double, x > 0 ? 1.0 : x < 0 ? -1.0 : x)
UNARY_LOOP(sign_int32, int32_t, int32_t, (x > 0) - (x < 0))
UNARY_LOOP(sign_int64, int64_t, int64_t, (x > 0) - (x < 0))
UNARY_LOOP(sqrt_float32, float, float, sqrtf(x))
UNARY_LOOP(sqrt_float64, double, double, sqrt(x))
UNARY_LOOP(rsqrt_float32, float, float, 1.0f / sqrtf(x))
UNARY_LOOP(rsqrt_float64, double, double, 1.0 / sqrt(x))
UNARY_LOOP(reciprocal_float32, float, float, 1.0f / x)
UNARY_LOOP(reciprocal_float64, double, double, 1.0 / x)
UNARY_LOOP(floor_float32, float, float, floorf(x))
UNARY_LOOP(floor_float64, double, double, floor(x))
UNARY_LOOP(ceil_float32, float, float, ceilf(x))
UNARY_LOOP(ceil_float64, double, double, ceil(x))
UNARY_LOOP(round_float32, float, float, rintf(x))
UNARY_LOOP(round_float64, double, double, rint(x))
UNARY_LOOP(round_int32, int32_t, int32_t, x)
UNARY_LOOP(round_int64, int64_t, int64_t, x)
UNARY_LOOP(is_nan_float32, float, uint8_t, x != x)
UNARY_LOOP(is_nan_float64, double, uint8_t, x != x)
UNARY_LOOP(logical_not, uint8_t, uint8_t, !x)

#define ROW(op, loop, TYPE, type)                                                                  \
    {                                                                                              \
#op, TYPE, loop##_##type, #loop "_" #type, PARALLEL_GRAIN_MOVE                             \
    }
#define FLOAT_ROWS(op, loop) ROW(op, loop, FLOAT32, float32), ROW(op, loop, FLOAT64, float64)
#define ROWS(op, loop)                                                                             \
    FLOAT_ROWS(op, loop), ROW(op, loop, INT32, int32), ROW(op, loop, INT64, int64)

const struct unary_row unary_simple[] = {
    ROWS(Neg, neg),
    ROWS(Abs, abs),
    ROWS(Square, square),
    ROWS(Sign, sign),
    ROWS(Round, round),
    FLOAT_ROWS(Sqrt, sqrt),
    FLOAT_ROWS(Rsqrt, rsqrt),
    FLOAT_ROWS(Reciprocal, reciprocal),
    FLOAT_ROWS(Floor, floor),
    FLOAT_ROWS(Ceil, ceil),
    FLOAT_ROWS(IsNan, is_nan),
    {"Square", UINT64, square_int64, "square_int64", PARALLEL_GRAIN_MOVE}, /* the same bits */
    {"LogicalNot", BOOL, logical_not, "logical_not", PARALLEL_GRAIN_MOVE},
    {0},
};
