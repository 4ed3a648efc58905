/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of one tensor. Elementary functions are our own vector code for float32, <math.h> for
 * float64.
 */
#include <string.h>
#include <tgmath.h>

#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/vmath.h"
#include "ops/nn/activation_math.h"

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

/* Called through opaque pointers: otherwise the compiler would use vector variants of <math.h>,
 * whose bits depend on the vector length and on how a loop is split. */
#define HIDE(function) static double (*volatile hidden_##function)(double) = function;
ELEMENT_FUNCTIONS(HIDE)
#define FUNCTION(name) _Generic(x, float : vmath_##name, double : hidden_##name)

#define ANGLE_BLOCK 256

/* Large angles are rare: they are computed again, one by one. `out` may be `x`, hence the copy. */
static int angles(int64_t n, const float *x, float *out, uint64_t quadrants, float (*exact)(float))
{
    float block[ANGLE_BLOCK];
    for (int64_t start = 0; start < n; start += ANGLE_BLOCK) {
        int64_t m = n - start < ANGLE_BLOCK ? n - start : ANGLE_BLOCK;
        memcpy(block, x + start, sizeof *block * (size_t)m);
        int large = 0;
#pragma omp simd reduction(| : large)
        for (int64_t i = 0; i < m; i++) {
            large |= !(fabsf(block[i]) < VMATH_ANGLE_MAX);
            out[start + i] = vmath_sin_quadrant(block[i], quadrants);
        }
        for (int64_t i = 0; large && i < m; i++)
            if (!(fabsf(block[i]) < VMATH_ANGLE_MAX))
                out[start + i] = exact(block[i]);
    }
    return 0;
}

enum { QUADRANTS_sin, QUADRANTS_cos }; /* added to x to make it a sine */
#define ANGLES_LOOPS(form, name, floats, integers)                                                 \
    static int name##_float32(int64_t n, const void *x, void *out)                                 \
    {                                                                                              \
        return angles(n, x, out, QUADRANTS_##name, name##f);                                       \
    }                                                                                              \
    UNARY_LOOP(name##_float64, double, double, hidden_##name(x))

OPS_OF_ONE(UNARY_LOOPS)
UNARY_LOOP_TO(is_nan_float32, float, float, uint8_t, x != x)
UNARY_LOOP_TO(is_nan_float64, double, double, uint8_t, x != x)
UNARY_LOOP(logical_not, uint8_t, uint8_t, !x)

/* clang-format off */
static const struct unary_row rows[] = {
    OPS_OF_ONE(ELEMENT_ROWS)
    FLOATS_ROWS(IsNan, is_nan, MOVE)
    ELEMENT_ROW(LogicalNot, BOOL, logical_not, MOVE)
};
/* clang-format on */

const struct unary_row *unary_find(const char *op, enum dtype type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type && !strcmp(rows[i].op, op))
            return &rows[i];
    return NULL;
}
