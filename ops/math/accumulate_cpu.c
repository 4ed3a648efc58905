/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/accumulate.h"

#include <stddef.h>

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
    enum dtype type;
    accumulate_loop *add, *subtract;
} loops[] = {
#define ROW(type, name)                                                                            \
    {                                                                                              \
        type, add_##name, subtract_##name                                                          \
    }
    ROW(FLOAT32, float32), ROW(FLOAT64, float64), ROW(FLOAT16, float16), ROW(BFLOAT16, bfloat16),
    ROW(INT8, int8),       ROW(INT16, int16),     ROW(INT32, int32),     ROW(INT64, int64),
    ROW(UINT8, int8),      ROW(UINT16, int16),    ROW(UINT32, int32),    ROW(UINT64, int64),
};

accumulate_loop *accumulate_add(enum dtype type)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (loops[i].type == type)
            return loops[i].add;
    return NULL;
}

accumulate_loop *accumulate_subtract(enum dtype type)
{
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (loops[i].type == type)
            return loops[i].subtract;
    return NULL;
}
