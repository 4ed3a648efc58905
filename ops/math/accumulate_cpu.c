/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/accumulate.h"

#include "tensor/narrow_private.h"

/* Integers are unsigned here, so that they wrap around. */
#define LOOPS(name, type)                                                                          \
    static void add_##name(void *to, const void *from, int64_t n)                                  \
    {                                                                                              \
        type *y = to;                                                                              \
        const type *x = from;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (type)(y[i] + x[i]);                                                            \
    }                                                                                              \
    static void subtract_##name(void *to, const void *from, int64_t n)                             \
    {                                                                                              \
        type *y = to;                                                                              \
        const type *x = from;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (type)(y[i] - x[i]);                                                            \
    }

/* 16 bits: a block at a time in float32, rounded once. */
#define HALF_BLOCK 256
#define HALF_LOOP(name, type, sign)                                                                \
    static void name(void *to, const void *from, int64_t n)                                        \
    {                                                                                              \
        float y[HALF_BLOCK], x[HALF_BLOCK];                                                        \
        for (int64_t at = 0, m; at < n; at += m) {                                                 \
            m = n - at < HALF_BLOCK ? n - at : HALF_BLOCK;                                         \
            widen_array(type, (const uint16_t *)to + at, y, m);                                    \
            widen_array(type, (const uint16_t *)from + at, x, m);                                  \
            for (int64_t i = 0; i < m; i++)                                                        \
                y[i] += sign x[i];                                                                 \
            narrow_array(type, y, (uint16_t *)to + at, m);                                         \
        }                                                                                          \
    }
#define HALF_LOOPS(name, type) HALF_LOOP(add_##name, type, +) HALF_LOOP(subtract_##name, type, -)

LOOPS(float32, float)
LOOPS(float64, double)
LOOPS(int8, uint8_t)
LOOPS(int16, uint16_t)
LOOPS(int32, uint32_t)
LOOPS(int64, uint64_t)
HALF_LOOPS(float16, FLOAT16)
HALF_LOOPS(bfloat16, BFLOAT16)

static const struct {
    accumulate_loop *add, *subtract;
} loops[32] = {/* by type */
#define ROW(name)                                                                                  \
    {                                                                                              \
        add_##name, subtract_##name                                                                \
    }
               [FLOAT32] = ROW(float32),   [FLOAT64] = ROW(float64), [FLOAT16] = ROW(float16),
               [BFLOAT16] = ROW(bfloat16), [INT8] = ROW(int8),       [INT16] = ROW(int16),
               [INT32] = ROW(int32),       [INT64] = ROW(int64),     [UINT8] = ROW(int8),
               [UINT16] = ROW(int16),      [UINT32] = ROW(int32),    [UINT64] = ROW(int64)};

accumulate_loop *accumulate_add(enum dtype type)
{
    return loops[type].add;
}

accumulate_loop *accumulate_subtract(enum dtype type)
{
    return loops[type].subtract;
}
