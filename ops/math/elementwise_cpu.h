/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise kernels: one kernel per form (x, or x and y), and a table of loops per op and type.
 * To add an op: a line in one of the lists, which are made loops and tables of them.
 */
#ifndef TF_OPS_MATH_ELEMENTWISE_CPU_H
#define TF_OPS_MATH_ELEMENTWISE_CPU_H

#include "exec/device/kernel.h"

/* n elements. Returns flags, 0 when all is well. `out` is `x` or overlaps it nowhere. */
typedef int unary_loop(int64_t n, const void *x, void *out);

enum binary_mode {
    BINARY_BOTH,     /* both operands advance */
    BINARY_SCALAR_X, /* x stands still */
    BINARY_SCALAR_Y,
};

typedef int binary_loop(int64_t n, const void *x, const void *y, void *out, enum binary_mode mode);

enum loop_flag { /* what a loop met */
                 LOOP_DIVIDED_BY_ZERO = 1,
                 LOOP_NEGATIVE_POWER = 2,
};

/* Elements of a narrow type are computed in a wide one, so many at a time. */
#define ELEMENT_BLOCK_LENGTH 512
#define ELEMENT_BLOCK(name) _Alignas(64) char name[ELEMENT_BLOCK_LENGTH * sizeof(int64_t)]

struct unary_row {
    const char *op;
    enum dtype type; /* of the input, or that it is widened to */
    unary_loop *loop;
    const char *name; /* in plans */
    int64_t grain;
};

struct binary_row {
    const char *op;
    enum dtype type;
    binary_loop *loop;
    const char *name;
    int64_t grain;
};

/* The tables, each ending in a row without an op. */
extern const struct binary_row binary_arithmetic[], binary_compare[], binary_gradients[];
extern const struct unary_row unary_simple[], unary_transcendental[];

/* The row of an op for that type, in any of them; NULL: there is none. */
const struct binary_row *binary_find(const char *op, enum dtype type);
const struct unary_row *unary_find(const char *op, enum dtype type);

/* A loop is written as what becomes of an element x, or of x and y; `flags |=` says what was met.
 * In it T is the type of x, and U its unsigned twin: in these integers wrap around. */
#define ELEMENT_TYPES(input, twin)                                                                 \
    typedef input T __attribute__((unused));                                                       \
    typedef twin U __attribute__((unused));
#define BINARY_LOOP(name, input, output, ...)                                                      \
    BINARY_LOOP_AS(name, input, input, output, __VA_ARGS__)
#define BINARY_LOOP_AS(name, input, twin, output, ...)                                             \
    static int name(int64_t n, const void *px, const void *py, void *po, enum binary_mode mode)    \
    {                                                                                              \
        ELEMENT_TYPES(input, twin)                                                                 \
        const input *xs = px, *ys = py;                                                            \
        output *out = po;                                                                          \
        int flags = 0;                                                                             \
        if (mode == BINARY_BOTH) {                                                                 \
            _Pragma("omp simd reduction(|: flags)") for (int64_t i = 0; i < n; i++)                \
            {                                                                                      \
                input x = xs[i], y = ys[i];                                                        \
                out[i] = __VA_ARGS__;                                                              \
            }                                                                                      \
        } else if (mode == BINARY_SCALAR_X) {                                                      \
            input x = xs[0];                                                                       \
            _Pragma("omp simd reduction(|: flags)") for (int64_t i = 0; i < n; i++)                \
            {                                                                                      \
                input y = ys[i];                                                                   \
                out[i] = __VA_ARGS__;                                                              \
            }                                                                                      \
        } else {                                                                                   \
            input y = ys[0];                                                                       \
            _Pragma("omp simd reduction(|: flags)") for (int64_t i = 0; i < n; i++)                \
            {                                                                                      \
                input x = xs[i];                                                                   \
                out[i] = __VA_ARGS__;                                                              \
            }                                                                                      \
        }                                                                                          \
        return flags;                                                                              \
    }

#define UNARY_LOOP(name, input, output, ...) UNARY_LOOP_AS(name, input, input, output, __VA_ARGS__)
#define UNARY_LOOP_AS(name, input, twin, output, ...)                                              \
    static int name(int64_t n, const void *px, void *po)                                           \
    {                                                                                              \
        ELEMENT_TYPES(input, twin)                                                                 \
        const input *xs = px;                                                                      \
        output *out = po;                                                                          \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                        \
        {                                                                                          \
            input x = xs[i];                                                                       \
            out[i] = __VA_ARGS__;                                                                  \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* Ops in lists, each a line X(op, loop, grain, floats, integers) with the element of either, are
 * made loops (LOOPS) and rows of a table (ROWS) by these. <tgmath.h> has one name for float and
 * double. */
#define FLOAT_LOOPS(form, name, ...)                                                               \
    form##_LOOP(name##_float32, float, float, __VA_ARGS__)                                         \
        form##_LOOP(name##_float64, double, double, __VA_ARGS__)
#define INTEGER_LOOPS(form, name, ...)                                                             \
    form##_LOOP_AS(name##_int32, int32_t, uint32_t, int32_t, __VA_ARGS__)                          \
        form##_LOOP_AS(name##_int64, int64_t, uint64_t, int64_t, __VA_ARGS__)
#define UNARY_FLOAT_LOOPS(op, name, grain, ...) FLOAT_LOOPS(UNARY, name, __VA_ARGS__)
#define BINARY_FLOAT_LOOPS(op, name, grain, ...) FLOAT_LOOPS(BINARY, name, __VA_ARGS__)
#define UNARY_REAL_LOOPS(op, name, grain, floats, integers)                                        \
    FLOAT_LOOPS(UNARY, name, floats) INTEGER_LOOPS(UNARY, name, integers)
#define BINARY_REAL_LOOPS(op, name, grain, floats, integers)                                       \
    FLOAT_LOOPS(BINARY, name, floats) INTEGER_LOOPS(BINARY, name, integers)
#define ELEMENT_ROW(op, type, loop, grain) {#op, type, loop, #loop, PARALLEL_GRAIN_##grain},
#define FLOAT_ROWS(op, name, grain, ...)                                                           \
    ELEMENT_ROW(op, FLOAT32, name##_float32, grain)                                                \
    ELEMENT_ROW(op, FLOAT64, name##_float64, grain)
#define REAL_ROWS(op, name, grain, ...)                                                            \
    FLOAT_ROWS(op, name, grain)                                                                    \
    ELEMENT_ROW(op, INT32, name##_int32, grain)                                                    \
    ELEMENT_ROW(op, INT64, name##_int64, grain)

#endif
