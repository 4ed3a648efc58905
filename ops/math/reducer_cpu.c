/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/reducer_cpu.h"

#include <math.h>
#include <string.h>

/* T: elements and results. L: lanes within a block. A: accumulators between blocks. COMBINE(a, b)
 * is used with both in L and in A. */
#define REDUCER(name, T, L, A, IDENTITY, COMBINE)                                                  \
    static void name##_start(int64_t n, void *acc)                                                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((A *)acc)[i] = IDENTITY;                                                              \
    }                                                                                              \
    static void name##_run(int64_t n, const void *px, void *acc)                                   \
    {                                                                                              \
        const T *x = px;                                                                           \
        L lanes[REDUCER_LANES];                                                                    \
        A total = *(A *)acc;                                                                       \
        int64_t i = 0;                                                                             \
        for (int l = 0; l < REDUCER_LANES; l++)                                                    \
            lanes[l] = IDENTITY;                                                                   \
        for (; i + REDUCER_LANES <= n; i += REDUCER_LANES)                                         \
            for (int l = 0; l < REDUCER_LANES; l++)                                                \
                lanes[l] = COMBINE(lanes[l], (L)x[i + l]);                                         \
        for (int half = REDUCER_LANES / 2; half && n >= REDUCER_LANES; half /= 2)                  \
            for (int l = 0; l < half; l++)                                                         \
                lanes[l] = COMBINE(lanes[l], lanes[l + half]);                                     \
        total = n >= REDUCER_LANES ? COMBINE(total, (A)lanes[0]) : total;                          \
        for (; i < n; i++)                                                                         \
            total = COMBINE(total, (A)x[i]);                                                       \
        *(A *)acc = total;                                                                         \
    }                                                                                              \
    static void name##_rows(int64_t n_rows, int64_t stride, int64_t n, const void *px, void *pa)   \
    {                                                                                              \
        const T *x = px;                                                                           \
        A *acc = pa;                                                                               \
        L part[REDUCER_COLUMNS];                                                                   \
        for (int64_t c = 0; c < n; c++)                                                            \
            part[c] = x[c];                                                                        \
        for (int64_t r = 1; r < n_rows; r++)                                                       \
            for (int64_t c = 0; c < n; c++)                                                        \
                part[c] = COMBINE(part[c], (L)x[r * stride + c]);                                  \
        for (int64_t c = 0; c < n; c++)                                                            \
            acc[c] = COMBINE(acc[c], (A)part[c]);                                                  \
    }                                                                                              \
    static void name##_merge(int64_t n, void *pa, const void *po)                                  \
    {                                                                                              \
        A *acc = pa;                                                                               \
        const A *other = po;                                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            acc[i] = COMBINE(acc[i], other[i]);                                                    \
    }

#define FINISH(name, T, A, RESULT)                                                                 \
    static void name##_finish(int64_t n, const void *pa, int64_t count, void *po)                  \
    {                                                                                              \
        const A *acc = pa;                                                                         \
        T *out = po;                                                                               \
        (void)count;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = RESULT;                                                                       \
    }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
/* A NaN in either operand propagates. */
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define LARGER_INT(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER_INT(a, b) ((a) < (b) ? (a) : (b))

#define PLAIN(name, T, L, A, IDENTITY, COMBINE)                                                    \
    REDUCER(name, T, L, A, IDENTITY, COMBINE)                                                      \
    FINISH(name, T, A, (T)acc[i])

PLAIN(sum_float32, float, float, double, 0, PLUS)
PLAIN(sum_float64, double, double, double, 0, PLUS)
PLAIN(sum_int32, int32_t, uint32_t, uint32_t, 0, PLUS)
PLAIN(sum_int64, int64_t, uint64_t, uint64_t, 0, PLUS)
PLAIN(prod_float32, float, double, double, 1, TIMES)
PLAIN(prod_float64, double, double, double, 1, TIMES)
PLAIN(prod_int32, int32_t, uint32_t, uint32_t, 1, TIMES)
PLAIN(prod_int64, int64_t, uint64_t, uint64_t, 1, TIMES)
PLAIN(max_float32, float, float, float, -INFINITY, LARGER)
PLAIN(max_float64, double, double, double, -INFINITY, LARGER)
PLAIN(max_int32, int32_t, int32_t, int32_t, INT32_MIN, LARGER_INT)
PLAIN(max_int64, int64_t, int64_t, int64_t, INT64_MIN, LARGER_INT)
PLAIN(min_float32, float, float, float, INFINITY, SMALLER)
PLAIN(min_float64, double, double, double, INFINITY, SMALLER)
PLAIN(min_int32, int32_t, int32_t, int32_t, INT32_MAX, SMALLER_INT)
PLAIN(min_int64, int64_t, int64_t, int64_t, INT64_MAX, SMALLER_INT)
PLAIN(max_uint64, uint64_t, uint64_t, uint64_t, 0, LARGER_INT)
PLAIN(min_uint64, uint64_t, uint64_t, uint64_t, UINT64_MAX, SMALLER_INT)
PLAIN(all, uint8_t, uint8_t, uint8_t, 1, AND)
PLAIN(any, uint8_t, uint8_t, uint8_t, 0, OR)

/* Sums of integers that cannot overflow for any count. */
typedef __int128 int128_t;
typedef unsigned __int128 uint128_t;
REDUCER(mean_int32, int32_t, int64_t, int64_t, 0, PLUS)
REDUCER(mean_int64, int64_t, int128_t, int128_t, 0, PLUS)
REDUCER(mean_uint64, uint64_t, uint128_t, uint128_t, 0, PLUS)
FINISH(mean_int32, int32_t, int64_t, (int32_t)(acc[i] / count))
FINISH(mean_int64, int64_t, int128_t, (int64_t)(acc[i] / count))
FINISH(mean_uint64, uint64_t, uint128_t, (uint64_t)(acc[i] / (uint128_t)count))
FINISH(mean_float32, float, double, (float)(acc[i] / (double)count))
FINISH(mean_float64, double, double, acc[i] / (double)count)

#define ROW(op, TYPE, name, base, A, needs)                                                        \
    {                                                                                              \
#op, TYPE, #name, sizeof(A), base##_start, base##_run, base##_rows, base##_merge,          \
            name##_finish, needs                                                                   \
    }
#define ROWS(op, name, F32, F64, I32, I64)                                                         \
    ROW(op, FLOAT32, name##_float32, name##_float32, F32, false),                                  \
        ROW(op, FLOAT64, name##_float64, name##_float64, F64, false),                              \
        ROW(op, INT32, name##_int32, name##_int32, I32, false),                                    \
        ROW(op, INT64, name##_int64, name##_int64, I64, false)

static const struct reducer reducers[] = {
    ROWS(Sum, sum, double, double, uint32_t, uint64_t),
    ROWS(Prod, prod, double, double, uint32_t, uint64_t),
    ROWS(Max, max, float, double, int32_t, int64_t),
    ROWS(Min, min, float, double, int32_t, int64_t),
    ROW(Mean, FLOAT32, mean_float32, sum_float32, double, false),
    ROW(Mean, FLOAT64, mean_float64, sum_float64, double, false),
    ROW(Mean, INT32, mean_int32, mean_int32, int64_t, true),
    ROW(Mean, INT64, mean_int64, mean_int64, int128_t, true),
    ROW(Sum, UINT64, sum_int64, sum_int64, uint64_t, false), /* the same bits */
    ROW(Prod, UINT64, prod_int64, prod_int64, uint64_t, false),
    ROW(Max, UINT64, max_uint64, max_uint64, uint64_t, false),
    ROW(Min, UINT64, min_uint64, min_uint64, uint64_t, false),
    ROW(Mean, UINT64, mean_uint64, mean_uint64, uint128_t, true),
    ROW(All, BOOL, all, all, uint8_t, false),
    ROW(Any, BOOL, any, any, uint8_t, false),
};

const struct reducer *reducer_find(const char *op, enum dtype type)
{
    for (size_t i = 0; i < sizeof reducers / sizeof *reducers; i++)
        if (reducers[i].type == type && !strcmp(reducers[i].op, op))
            return &reducers[i];
    return NULL;
}
