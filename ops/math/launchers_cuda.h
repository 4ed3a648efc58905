/* SPDX-License-Identifier: Apache-2.0
 *
 * The launchers of the .cu files of mathematics, and their arguments.
 */
#ifndef TF_OPS_MATH_LAUNCHERS_CUDA_H
#define TF_OPS_MATH_LAUNCHERS_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "ops/device/launch_cuda.h"
#include "ops/math/broadcast.h"

/* ---- elementwise ----
 *
 * Element-wise ops of one array, or of two with broadcasting. A result may be an input that is not
 * broadcast; otherwise they may not overlap. */

struct cuda_unary {
    int64_t n;
    const void *x;
    void *y; /* of the same type; for IsNan: booleans */
};

struct cuda_binary {
    struct broadcast walk;
    const void *x, *y;
    void *out;               /* of the same type; for comparisons: booleans */
    struct cuda_fault fault; /* FAULT_DIVISION, FAULT_POWER of integers */
};

typedef int cuda_unary_launcher(const struct cuda_unary *call, struct CUstream_st *stream);
typedef int cuda_binary_launcher(const struct cuda_binary *call, struct CUstream_st *stream);

/* Return the launcher of an op ("Sqrt", "FloorDiv") for elements of that type; if CUDA has none,
 * one that returns CUDA_INVALID_VALUE. */
CUDA_C cuda_unary_launcher *cuda_unary(const char *op, enum cuda_type type);
CUDA_C cuda_binary_launcher *cuda_binary(const char *op, enum cuda_type type);

/* ---- fused ----
 *
 * Several element-wise ops in one pass over memory, with the same bits as one by one. */

#define CUDA_FUSED_STEPS 16
#define CUDA_FUSED_INPUTS (CUDA_FUSED_STEPS + 1) /* the most that binary ops can take */

struct cuda_fused_step {
    int16_t op;         /* from cuda_fused_op */
    int8_t operands[2]; /* inputs, then results of earlier steps; -1: none */
};

struct cuda_fusion {
    enum cuda_type type; /* float32 or float64 */
    int n_in, n_steps;
    int64_t n;
    struct cuda_fused_step steps[CUDA_FUSED_STEPS];
    const void *in[CUDA_FUSED_INPUTS];
    bool stands[CUDA_FUSED_INPUTS]; /* the input is one element for all */
    void *out;                      /* may be an input that is not a single element */
};

/* Returns the number of an op with that many operands; -1: there is none of that name. */
CUDA_C int cuda_fused_op(const char *name, int operands);

CUDA_C int cuda_fused(const struct cuda_fusion *call, struct CUstream_st *stream);

/* ---- select ----
 *
 * Select and Fill: elements are moved by size, regardless of type. */

/* Inputs of the walk: condition, t, e. `out` may be t or e if that is not broadcast. */
struct cuda_select {
    int element_bytes; /* 1, 2, 4 or 8 */
    struct broadcast walk;
    const void *condition, *t, *e;
    void *out;
};

struct cuda_fill {
    int element_bytes;
    int64_t n;
    const void *value; /* one element, on the device; NULL: the first bytes of `bits` */
    void *out;
    uint64_t bits;
};

CUDA_C int cuda_select(const struct cuda_select *call, struct CUstream_st *stream);
CUDA_C int cuda_fill(const struct cuda_fill *call, struct CUstream_st *stream);

/* ---- cast ----
 *
 * Cast between any two real types, or booleans. Floats outside an integer type's range become its
 * nearest value, NaN becomes zero; integers lose their upper bits; nonzero is true. */

struct cuda_cast {
    enum cuda_type from, to;
    int64_t n;
    const void *x;
    void *y; /* does not overlap x */
};

CUDA_C int cuda_cast(const struct cuda_cast *call, struct CUstream_st *stream);

/* ---- addn ----
 *
 * The sum of many arrays, in their order. Elements of 16 bits are added in float32 and
 * rounded once. */

#define CUDA_ADDN_INPUTS 128

struct cuda_addn {
    enum cuda_type type; /* a real one */
    int64_t n;           /* elements of each */
    void *out;           /* may be an input */
    int n_in;            /* >= 1 */
    const void *in[CUDA_ADDN_INPUTS];
};

CUDA_C int cuda_addn(const struct cuda_addn *call, struct CUstream_st *stream);

/* ---- reduce ----
 *
 * Reductions, in an order that only the shape determines. float32 and shorter add in float64.
 */

#define CUDA_REDUCE_RANK (2 * CUDA_RANK_MAX) /* a tile has two dimensions of each */

enum cuda_reduction {
    CUDA_SUM,
    CUDA_PROD,
    CUDA_MAX,
    CUDA_MIN,
    CUDA_MEAN,
    CUDA_ALL, /* of booleans */
    CUDA_ANY,
    CUDA_L2_LOSS, /* of floats */
    N_CUDA_REDUCTIONS,
};

struct cuda_reduce {
    enum cuda_reduction op;
    enum cuda_type type;
    int rank; /* of x; at most CUDA_RANK_MAX dimensions are reduced, and as many kept */
    int64_t dims[CUDA_REDUCE_RANK];
    bool reduced[CUDA_REDUCE_RANK];
    const void *x;
    void *y;       /* the kept dimensions, row-major */
    void *scratch; /* cuda_reduce_scratch bytes, aligned to 8 */
};

/* Finds "Sum", "L2Loss", ...; N_CUDA_REDUCTIONS: CUDA has none of that name. */
CUDA_C enum cuda_reduction cuda_reduction_of(const char *op);

CUDA_C size_t cuda_reduce_scratch(const struct cuda_reduce *call);

/* Returns CUDA_INVALID_VALUE for the mean of no integers. */
CUDA_C int cuda_reduce(const struct cuda_reduce *call, struct CUstream_st *stream);

/* ---- lines ----
 *
 * Along an axis: ArgMax and ArgMin, Cumsum and Cumprod. */

/* An array seen as [outer, n, inner]: outer * inner lines of n elements, `inner` apart. */
struct cuda_lines {
    int64_t outer, n, inner;
};

struct cuda_arg {
    bool max;
    bool narrow; /* positions are int32; else int64 */
    enum cuda_type type;
    struct cuda_lines lines; /* n >= 1 */
    const void *x;
    void *y; /* [outer, inner] */
};

struct cuda_scan {
    bool product, exclusive, reverse;
    enum cuda_type type;
    struct cuda_lines lines;
    const void *x;
    void *y; /* may be x */
};

/* Of equal elements the first one wins; a NaN wins over numbers. */
CUDA_C int cuda_arg(const struct cuda_arg *call, struct CUstream_st *stream);
/* float32 and shorter types are accumulated in float64. */
CUDA_C int cuda_scan(const struct cuda_scan *call, struct CUstream_st *stream);

#endif
