/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise kernels: one kernel per form (x, or x and y), and a table of loops per op and type.
 * To add an op: its loops and their rows in one of the tables.
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

struct unary_row {
    const char *op;
    enum dtype type; /* of the input */
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

#define BINARY_LOOP(name, input, output, ...)                                                      \
    static int name(int64_t n, const void *px, const void *py, void *po, enum binary_mode mode)    \
    {                                                                                              \
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

#define UNARY_LOOP(name, input, output, ...)                                                       \
    static int name(int64_t n, const void *px, void *po)                                           \
    {                                                                                              \
        const input *xs = px;                                                                      \
        output *out = po;                                                                          \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                        \
        {                                                                                          \
            input x = xs[i];                                                                       \
            out[i] = __VA_ARGS__;                                                                  \
        }                                                                                          \
        return 0;                                                                                  \
    }

#endif
