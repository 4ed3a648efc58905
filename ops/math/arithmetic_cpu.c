/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of arithmetic. Integers wrap around, as two's complement does; C leaves that undefined for
 * signed types, hence the unsigned steps.
 */
#include <limits.h>
#include <math.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

#define FLOAT_LOOPS(op, ...)                                                                       \
    BINARY_LOOP(op##_float32, float, float, __VA_ARGS__)                                           \
    BINARY_LOOP(op##_float64, double, double, __VA_ARGS__)

/* T is the type of x and y, U its unsigned twin; TYPE tells functions apart. */
#define INT32_LOOP(op, expression)                                                                 \
    BINARY_LOOP(op##_int32, int32_t, int32_t, expression(int32_t, uint32_t, int32))
#define INT64_LOOP(op, expression)                                                                 \
    BINARY_LOOP(op##_int64, int64_t, int64_t, expression(int64_t, uint64_t, int64))
#define INT_LOOPS(op, expression) INT32_LOOP(op, expression) INT64_LOOP(op, expression)

#define INTEGER_DIVISION(T, name, minimum)                                                         \
    /* Toward zero. The one quotient that does not fit wraps around. */                            \
    static inline T divide_##name(T x, T y, int *flags)                                            \
    {                                                                                              \
        if (y == 0) {                                                                              \
            *flags |= LOOP_DIVIDED_BY_ZERO;                                                        \
            return 0;                                                                              \
        }                                                                                          \
        return x == minimum && y == -1 ? x : x / y;                                                \
    }                                                                                              \
    static inline T remainder_##name(T x, T y, int *flags)                                         \
    {                                                                                              \
        if (y == 0) {                                                                              \
            *flags |= LOOP_DIVIDED_BY_ZERO;                                                        \
            return 0;                                                                              \
        }                                                                                          \
        return y == -1 ? 0 : x % y;                                                                \
    }                                                                                              \
    static inline T floor_divide_##name(T x, T y, int *flags)                                      \
    {                                                                                              \
        T quotient = divide_##name(x, y, flags);                                                   \
        return y && remainder_##name(x, y, flags) && (x < 0) != (y < 0) ? quotient - 1 : quotient; \
    }
INTEGER_DIVISION(int32_t, int32, INT32_MIN)
INTEGER_DIVISION(int64_t, int64, INT64_MIN)

/* What uint64 has of its own: all else has the bits that int64 has. */
static inline uint64_t divide_uint64(uint64_t x, uint64_t y, int *flags)
{
    *flags |= y ? 0 : LOOP_DIVIDED_BY_ZERO;
    return y ? x / y : 0;
}

#define INTEGER_POWER(T, U, name)                                                                  \
    static inline T power_##name(T x, T y, int *flags)                                             \
    {                                                                                              \
        U base = (U)x, result = 1;                                                                 \
        if (y < 0) {                                                                               \
            *flags |= LOOP_NEGATIVE_POWER;                                                         \
            return 0;                                                                              \
        }                                                                                          \
        for (; y; y >>= 1, base *= base)                                                           \
            if (y & 1)                                                                             \
                result *= base;                                                                    \
        return (T)result;                                                                          \
    }
INTEGER_POWER(int32_t, uint32_t, int32)
INTEGER_POWER(int64_t, uint64_t, int64)

/* Through pointers that the compiler cannot see through: the vector variants of <math.h>, which it
 * would choose else, give bits that depend on the vector's length and on where a loop is cut. */
static float (*volatile power_float32)(float, float) = powf;
static double (*volatile power_float64)(double, double) = pow;

#define ADD(T, U, name) (T)((U)x + (U)y)
#define SUBTRACT(T, U, name) (T)((U)x - (U)y)
#define MULTIPLY(T, U, name) (T)((U)x * (U)y)
#define SQUARED_DIFFERENCE(T, U, name) (T)(((U)x - (U)y) * ((U)x - (U)y))
#define MAXIMUM(T, U, name) (x > y ? x : y)
#define MINIMUM(T, U, name) (x < y ? x : y)
#define DIVIDE(T, U, name) divide_##name(x, y, &flags)
#define FLOOR_DIVIDE(T, U, name) floor_divide_##name(x, y, &flags)
#define REMAINDER(T, U, name) remainder_##name(x, y, &flags)
#define POWER(T, U, name) power_##name(x, y, &flags)

FLOAT_LOOPS(add, x + y)
INT_LOOPS(add, ADD)
FLOAT_LOOPS(sub, x - y)
INT_LOOPS(sub, SUBTRACT)
FLOAT_LOOPS(mul, x *y)
INT_LOOPS(mul, MULTIPLY)
FLOAT_LOOPS(div, x / y)
INT_LOOPS(div, DIVIDE)
FLOAT_LOOPS(squared_difference, (x - y) * (x - y))
INT_LOOPS(squared_difference, SQUARED_DIFFERENCE)
/* A NaN on either side comes through: x if it is one, else y, since y is then not less. */
FLOAT_LOOPS(maximum, x > y || x != x ? x : y)
INT_LOOPS(maximum, MAXIMUM)
FLOAT_LOOPS(minimum, x < y || x != x ? x : y)
INT_LOOPS(minimum, MINIMUM)
BINARY_LOOP(floor_div_float32, float, float, floorf(x / y))
BINARY_LOOP(floor_div_float64, double, double, floor(x / y))
INT_LOOPS(floor_div, FLOOR_DIVIDE)
BINARY_LOOP(mod_float32, float, float, fmodf(x, y))
BINARY_LOOP(mod_float64, double, double, fmod(x, y))
INT_LOOPS(mod, REMAINDER)
BINARY_LOOP(pow_float32, float, float, power_float32(x, y))
BINARY_LOOP(pow_float64, double, double, power_float64(x, y))
INT_LOOPS(pow, POWER)

BINARY_LOOP(div_uint64, uint64_t, uint64_t, divide_uint64(x, y, &flags))
BINARY_LOOP(maximum_uint64, uint64_t, uint64_t, MAXIMUM(, , ))
BINARY_LOOP(minimum_uint64, uint64_t, uint64_t, MINIMUM(, , ))

#define ROWS(op, loop, grain)                                                                      \
    {#op, FLOAT32, loop##_float32, #loop "_float32", grain},                                       \
        {#op, FLOAT64, loop##_float64, #loop "_float64", grain},                                   \
        {#op, INT32, loop##_int32, #loop "_int32", grain},                                         \
    {                                                                                              \
#op, INT64, loop##_int64, #loop "_int64", grain                                            \
    }

/* By the loop of int64, or by one of its own. */
#define UINT64_ROW(op, loop, grain)                                                                \
    {                                                                                              \
#op, UINT64, loop, #loop, grain                                                            \
    }

const struct binary_row binary_arithmetic[] = {
    ROWS(Add, add, PARALLEL_GRAIN_MOVE),
    ROWS(Sub, sub, PARALLEL_GRAIN_MOVE),
    ROWS(Mul, mul, PARALLEL_GRAIN_MOVE),
    ROWS(Div, div, PARALLEL_GRAIN_MOVE),
    ROWS(FloorDiv, floor_div, PARALLEL_GRAIN_MOVE),
    ROWS(Mod, mod, PARALLEL_GRAIN_COMPUTE),
    ROWS(Maximum, maximum, PARALLEL_GRAIN_MOVE),
    ROWS(Minimum, minimum, PARALLEL_GRAIN_MOVE),
    ROWS(Pow, pow, PARALLEL_GRAIN_COMPUTE),
    ROWS(SquaredDifference, squared_difference, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(Add, add_int64, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(Sub, sub_int64, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(Mul, mul_int64, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(Div, div_uint64, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(FloorDiv, div_uint64, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(Maximum, maximum_uint64, PARALLEL_GRAIN_MOVE),
    UINT64_ROW(Minimum, minimum_uint64, PARALLEL_GRAIN_MOVE),
    {0},
};
