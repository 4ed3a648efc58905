/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise kernels: one kernel per form (x, or x and y), and a table of loops per op and type,
 * made of the lists of elementwise_ops.h.
 */
#ifndef TF_OPS_MATH_ELEMENTWISE_CPU_H
#define TF_OPS_MATH_ELEMENTWISE_CPU_H

#include "exec/device/kernel.h"
#include "ops/math/elementwise_ops.h"

/* Computes n elements. Returns flags, 0 on success. `out` is `x` or does not overlap it. */
typedef int unary_loop(int64_t n, const void *x, void *out);

enum binary_mode {
    BINARY_BOTH,     /* both operands advance */
    BINARY_SCALAR_X, /* x is one element */
    BINARY_SCALAR_Y,
};

typedef int binary_loop(int64_t n, const void *x, const void *y, void *out, enum binary_mode mode);

enum loop_flag { /* errors that a loop found */
                 LOOP_DIVIDED_BY_ZERO = 1,
                 LOOP_NEGATIVE_POWER = 2,
};

/* Elements of a narrow type are computed in a wide one, in blocks of this length. */
#define ELEMENT_BLOCK_LENGTH 512
#define ELEMENT_BLOCK(name) _Alignas(64) char name[ELEMENT_BLOCK_LENGTH * sizeof(int64_t)]

struct unary_row {
    const char *op;
    enum dtype type; /* of the input, or the wide type it is computed in */
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

/* Returns the row of an op for that type; NULL: there is none. */
const struct binary_row *binary_find(const char *op, enum dtype type);
const struct unary_row *unary_find(const char *op, enum dtype type);

/* A loop contains the element expression of a list; `flags |=` records errors. */
#define ELEMENT_TYPES(input, twin)                                                                 \
    typedef input T __attribute__((unused));                                                       \
    typedef twin U __attribute__((unused));
#define BINARY_LOOP_TO(name, input, twin, output, ...)                                             \
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

#define UNARY_LOOP_TO(name, input, twin, output, ...)                                              \
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

#define UNARY_LOOP(name, input, twin, ...) UNARY_LOOP_TO(name, input, twin, input, __VA_ARGS__)
#define BINARY_LOOP(name, input, twin, ...) BINARY_LOOP_TO(name, input, twin, input, __VA_ARGS__)
#define COMPARE_LOOP(name, input, twin, ...) BINARY_LOOP_TO(name, input, twin, uint8_t, __VA_ARGS__)

/* Turn a line of a list into loops of a form, and table rows, by its types. <tgmath.h> has one name
 * for float and double. */
#define FLOATS_LOOPS(form, name, floats, integers)                                                 \
    form##_LOOP(name##_float32, float, float, floats)                                              \
        form##_LOOP(name##_float64, double, double, floats)
#define WORDS_LOOPS(form, name, floats, integers)                                                  \
    FLOATS_LOOPS(form, name, floats, integers)                                                     \
    form##_LOOP(name##_int32, int32_t, uint32_t, integers)                                         \
        form##_LOOP(name##_int64, int64_t, uint64_t, integers)
#define SIGNED_LOOPS WORDS_LOOPS
#define REALS_LOOPS(form, name, floats, integers)                                                  \
    WORDS_LOOPS(form, name, floats, integers)                                                      \
    form##_LOOP(name##_uint64, uint64_t, uint64_t, integers)
#define UNARY_LOOPS(op, name, types, grain, floats, integers)                                      \
    types##_LOOPS(UNARY, name, floats, integers)
#define BINARY_LOOPS(op, name, types, grain, floats, integers)                                     \
    types##_LOOPS(BINARY, name, floats, integers)
#define ELEMENT_ROW(op, type, loop, grain) {#op, type, loop, #loop, PARALLEL_GRAIN_##grain},
#define FLOATS_ROWS(op, name, grain)                                                               \
    ELEMENT_ROW(op, FLOAT32, name##_float32, grain)                                                \
    ELEMENT_ROW(op, FLOAT64, name##_float64, grain)
#define ANGLES_ROWS FLOATS_ROWS
#define WORDS_ROWS(op, name, grain)                                                                \
    FLOATS_ROWS(op, name, grain)                                                                   \
    ELEMENT_ROW(op, INT32, name##_int32, grain)                                                    \
    ELEMENT_ROW(op, INT64, name##_int64, grain)
#define SIGNED_ROWS WORDS_ROWS
#define REALS_ROWS(op, name, grain)                                                                \
    WORDS_ROWS(op, name, grain)                                                                    \
    ELEMENT_ROW(op, UINT64, name##_uint64, grain)
#define ELEMENT_ROWS(op, name, types, grain, ...) types##_ROWS(op, name, grain)

/* The function of a list for the type of x. */
#define BY_FLOAT(function) _Generic(x, float : function##_float32, double : function##_float64)

#endif
