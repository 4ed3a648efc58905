/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of arithmetic. Integers wrap around, as two's complement does; C leaves that undefined for
 * signed types, hence the unsigned steps.
 */
#include <limits.h>
#include <tgmath.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"

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
    static inline T floor_mod_##name(T x, T y, int *flags)                                         \
    {                                                                                              \
        if (y == 0) {                                                                              \
            *flags |= LOOP_DIVIDED_BY_ZERO;                                                        \
            return 0;                                                                              \
        }                                                                                          \
        T rest = y == -1 ? 0 : x % y;                                                              \
        return rest && (rest < 0) != (y < 0) ? rest + y : rest;                                    \
    }                                                                                              \
    static inline T floor_divide_##name(T x, T y, int *flags)                                      \
    {                                                                                              \
        T quotient = divide_##name(x, y, flags);                                                   \
        return y && floor_mod_##name(x, y, flags) && (x < 0) != (y < 0) ? quotient - 1 : quotient; \
    }
INTEGER_DIVISION(int32_t, int32, INT32_MIN)
INTEGER_DIVISION(int64_t, int64, INT64_MIN)

/* As NumPy has them. The rest is exact, and the quotient made of it: x / y rounds to a whole number
 * where it lies just below one. */
#define FLOAT_DIVISION(T, name)                                                                    \
    static inline T floor_mod_##name(T x, T y)                                                     \
    {                                                                                              \
        T rest = fmod(x, y);                                                                       \
        if (y == 0)                                                                                \
            return rest;                                                                           \
        if (rest == 0)                                                                             \
            return copysign(rest, y);                                                              \
        return (rest < 0) != (y < 0) ? rest + y : rest;                                            \
    }                                                                                              \
    static inline T floor_divide_##name(T x, T y)                                                  \
    {                                                                                              \
        T rest = fmod(x, y), quotient = (x - rest) / y;                                            \
        if (y == 0)                                                                                \
            return x / y;                                                                          \
        if (rest != 0 && (rest < 0) != (y < 0))                                                    \
            quotient -= 1;                                                                         \
        if (quotient == 0)                                                                         \
            return copysign(quotient, x / y);                                                      \
        T whole = floor(quotient);                                                                 \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;                                      \
    }
FLOAT_DIVISION(float, float32)
FLOAT_DIVISION(double, float64)

/* What uint64 has of its own: all else has the bits that int64 has. */
static inline uint64_t divide_uint64(uint64_t x, uint64_t y, int *flags)
{
    *flags |= y ? 0 : LOOP_DIVIDED_BY_ZERO;
    return y ? x / y : 0;
}

static inline uint64_t remainder_uint64(uint64_t x, uint64_t y, int *flags)
{
    *flags |= y ? 0 : LOOP_DIVIDED_BY_ZERO;
    return y ? x % y : 0;
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

#define BY_TYPE(function) _Generic(x, int32_t : function##_int32, int64_t : function##_int64)
#define BY_FLOAT(function) _Generic(x, float : function##_float32, double : function##_float64)
#define POWER _Generic(x, float : power_float32, double : power_float64)

/* clang-format off */
#define REAL_OPS(X)                                                                                \
    X(Add, add, MOVE, x + y, (T)((U)x + (U)y))                                                     \
    X(Sub, sub, MOVE, x - y, (T)((U)x - (U)y))                                                     \
    X(Mul, mul, MOVE, x * y, (T)((U)x * (U)y))                                                     \
    X(Div, div, MOVE, x / y, BY_TYPE(divide)(x, y, &flags))                                        \
    X(FloorDiv, floor_div, COMPUTE, BY_FLOAT(floor_divide)(x, y),                                  \
      BY_TYPE(floor_divide)(x, y, &flags))                                                         \
    X(Mod, mod, COMPUTE, BY_FLOAT(floor_mod)(x, y), BY_TYPE(floor_mod)(x, y, &flags))              \
    /* A NaN on either side comes through: x if it is one, else y, since y is then not less. */    \
    X(Maximum, maximum, MOVE, x > y || x != x ? x : y, x > y ? x : y)                              \
    X(Minimum, minimum, MOVE, x < y || x != x ? x : y, x < y ? x : y)                              \
    X(Pow, pow, COMPUTE, POWER(x, y), BY_TYPE(power)(x, y, &flags))                                \
    X(SquaredDifference, squared_difference, MOVE, (x - y) * (x - y),                              \
      (T)(((U)x - (U)y) * ((U)x - (U)y)))
/* clang-format on */

REAL_OPS(BINARY_REAL_LOOPS)
BINARY_LOOP(div_uint64, uint64_t, uint64_t, divide_uint64(x, y, &flags))
BINARY_LOOP(mod_uint64, uint64_t, uint64_t, remainder_uint64(x, y, &flags))
BINARY_LOOP(maximum_uint64, uint64_t, uint64_t, x > y ? x : y)
BINARY_LOOP(minimum_uint64, uint64_t, uint64_t, x < y ? x : y)

/* clang-format off */
const struct binary_row binary_arithmetic[] = {
    REAL_OPS(REAL_ROWS)
    ELEMENT_ROW(Add, UINT64, add_int64, MOVE) /* the same bits */
    ELEMENT_ROW(Sub, UINT64, sub_int64, MOVE)
    ELEMENT_ROW(Mul, UINT64, mul_int64, MOVE)
    ELEMENT_ROW(Div, UINT64, div_uint64, MOVE)
    ELEMENT_ROW(FloorDiv, UINT64, div_uint64, MOVE)
    ELEMENT_ROW(Mod, UINT64, mod_uint64, COMPUTE)
    ELEMENT_ROW(Maximum, UINT64, maximum_uint64, MOVE)
    ELEMENT_ROW(Minimum, UINT64, minimum_uint64, MOVE)
    {0},
};
/* clang-format on */
