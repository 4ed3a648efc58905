/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of elementary functions: our own vector code for float32, <math.h> for float64.
 */
#include "ops/math/elementwise_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/vmath.h"

/* X(op, function): vmath_FUNCTION of float32, FUNCTION of float64 */
#define VECTOR_OPS(X)                                                                              \
    X(Exp, exp)                                                                                    \
    X(Log, log)                                                                                    \
    X(Log1p, log1p)                                                                                \
    X(Tanh, tanh)                                                                                  \
    X(Sigmoid, sigmoid)                                                                            \
    X(Erf, erf)

#define VECTOR_LOOP(op, name) UNARY_LOOP(name##_float32, float, float, vmath_##name(x))
VECTOR_OPS(VECTOR_LOOP)

#define ANGLE_BLOCK 256

/* Large angles are rare: they are done again, one by one. `out` may be `x`, hence the copy. */
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

static int sin_float32(int64_t n, const void *x, void *out)
{
    return angles(n, x, out, 0, sinf);
}

static int cos_float32(int64_t n, const void *x, void *out)
{
    return angles(n, x, out, 1, cosf);
}

/* The function is hidden from the compiler, which would else put the vector variants of <math.h> in
 * its place: their bits depend on the vector's length and on where a loop is cut. */
static int map(int64_t n, const double *x, double *out, double (*function)(double))
{
    double (*volatile hidden)(double) = function;
    for (int64_t i = 0; i < n; i++)
        out[i] = hidden(x[i]);
    return 0;
}

#define MAP(op, function)                                                                          \
    static int function##_float64(int64_t n, const void *x, void *out)                             \
    {                                                                                              \
        return map(n, x, out, function);                                                           \
    }

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x >= 0 ? 1 : e) / (1 + e);
}

VECTOR_OPS(MAP)
MAP(Sin, sin)
MAP(Cos, cos)

/* clang-format off */
#define ROWS(op, function) FLOAT_ROWS(op, function, COMPUTE)
const struct unary_row unary_transcendental[] = {
    VECTOR_OPS(ROWS)
    ROWS(Sin, sin)
    ROWS(Cos, cos)
    {0},
};
/* clang-format on */
