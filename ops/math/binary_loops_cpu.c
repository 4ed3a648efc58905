/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of two tensors. Integers wrap around in two's complement; C leaves this undefined for
 * signed types, hence the unsigned arithmetic.
 */
#include <complex.h>
#include <limits.h>
#include <string.h>
#include <tgmath.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/vmath.h"
#include "ops/nn/activation_math.h"

/* Toward zero. The one quotient that does not fit wraps around. */
#define INTEGER_DIVISION(T, U, wide, name, minimum)                                                \
    static inline T divide_##name(T x, T y, int *flags)                                            \
    {                                                                                              \
        T by = y == 0 || (y == -1 && x == minimum) ? 1 : y;                                        \
        *flags |= y ? 0 : LOOP_DIVIDED_BY_ZERO;                                                    \
        return (T)((wide)x / (wide)by);                                                            \
    }                                                                                              \
    static inline T floor_mod_##name(T x, T y, int *flags)                                         \
    {                                                                                              \
        T rest = (T)((U)x - (U)divide_##name(x, y, flags) * (U)y);                                 \
        return rest && (rest < 0) != (y < 0) ? rest + y : rest;                                    \
    }                                                                                              \
    static inline T floor_divide_##name(T x, T y, int *flags)                                      \
    {                                                                                              \
        T quotient = divide_##name(x, y, flags), rest = (T)((U)x - (U)quotient * (U)y);            \
        return (T)((U)quotient - (rest && (rest < 0) != (y < 0)));                                 \
    }
/* A double holds the quotient of two int32 exactly enough to truncate it, and is vector code. */
INTEGER_DIVISION(int32_t, uint32_t, double, int32, INT32_MIN)
INTEGER_DIVISION(int64_t, uint64_t, int64_t, int64, INT64_MIN)

/* As in NumPy. The remainder is exact, and the quotient is computed from it: x / y may round up to
 * an integer when it is just below one. */
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
FLOAT_DIVISION(float, any_float32)
FLOAT_DIVISION(double, float64)

/* In double precision the quotient of two float32 does not round to an integer, and its product
 * with y is exact, up to here. */
static inline bool divides_exactly(double quotient, float y)
{
    return fabs(quotient) < 0x1p22 && fabsf(y) < INFINITY;
}

static inline float floor_mod_float32(float x, float y)
{
    double quotient = floor((double)x / (double)y);
    float rest = (float)((double)x - quotient * (double)y);
    if (!divides_exactly(quotient, y))
        return floor_mod_any_float32(x, y);
    return rest == 0 ? copysignf(rest, y) : rest;
}

static inline float floor_divide_float32(float x, float y)
{
    double quotient = floor((double)x / (double)y);
    return divides_exactly(quotient, y) ? (float)quotient : floor_divide_any_float32(x, y);
}

/* uint64 has no negative powers. */
#define floor_divide_uint64 divide_uint64
#define power_uint64 power_int64
static inline uint64_t divide_uint64(uint64_t x, uint64_t y, int *flags)
{
    *flags |= y ? 0 : LOOP_DIVIDED_BY_ZERO;
    return y ? x / y : 0;
}

static inline uint64_t floor_mod_uint64(uint64_t x, uint64_t y, int *flags)
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

#define power_float32 vmath_pow
/* Called through an opaque pointer: otherwise the compiler would use vector variants of <math.h>,
 * whose bits depend on the vector length and on how a loop is split. */
static double (*volatile power_float64)(double, double) = pow;

#define CHECKED(function)                                                                          \
    _Generic(x, int32_t                                                                            \
             : function##_int32, int64_t                                                           \
             : function##_int64, uint64_t                                                          \
             : function##_uint64)(x, y, &flags)
#define EQUALS(x, y) ((x) == (y))

#define COMPARE_LOOPS(op, name, element) REALS_LOOPS(COMPARE, name, element, element)
#define OTHER_LOOPS(op, name, element)                                                             \
    COMPARE_LOOP(name##_complex64, float complex, float complex, element)                          \
    COMPARE_LOOP(name##_bool, uint8_t, uint8_t, element)
#define LOGIC_LOOP(op, name, element) BINARY_LOOP(name, uint8_t, uint8_t, element)
OPS_OF_TWO(BINARY_LOOPS)
ORDER_OPS(COMPARE_LOOPS)
EQUALITY_OPS(COMPARE_LOOPS)
EQUALITY_OPS(OTHER_LOOPS)
LOGIC_OPS(LOGIC_LOOP)

#define COMPARE_ROWS(op, name, element) REALS_ROWS(op, name, MOVE)
#define OTHER_ROWS(op, name, element)                                                              \
    ELEMENT_ROW(op, COMPLEX64, name##_complex64, MOVE)                                             \
    ELEMENT_ROW(op, BOOL, name##_bool, MOVE)
#define LOGIC_ROW(op, name, element) ELEMENT_ROW(op, BOOL, name, MOVE)
/* clang-format off */
static const struct binary_row rows[] = {
    OPS_OF_TWO(ELEMENT_ROWS)
    ORDER_OPS(COMPARE_ROWS)
    EQUALITY_OPS(COMPARE_ROWS)
    EQUALITY_OPS(OTHER_ROWS)
    LOGIC_OPS(LOGIC_ROW)
};
/* clang-format on */

const struct binary_row *binary_find(const char *op, enum dtype type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type && !strcmp(rows[i].op, op))
            return &rows[i];
    return NULL;
}
