/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/accumulate.h"

#include <stddef.h>

/* Integers are unsigned here, so that they wrap around. */
#define LOOPS(name, type)                                                                          \
    static void add_##name(void *to, const void *from, int64_t n)                                  \
    {                                                                                              \
        type *y = to;                                                                              \
        const type *x = from;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += x[i];                                                                          \
    }                                                                                              \
    static void subtract_##name(void *to, const void *from, int64_t n)                             \
    {                                                                                              \
        type *y = to;                                                                              \
        const type *x = from;                                                                      \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] -= x[i];                                                                          \
    }

LOOPS(float32, float)
LOOPS(float64, double)
LOOPS(int32, uint32_t)
LOOPS(int64, uint64_t)

accumulate_loop *accumulate_add(enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return add_float32;
    case FLOAT64:
        return add_float64;
    case INT32:
        return add_int32;
    case INT64:
        return add_int64;
    default:
        return NULL;
    }
}

accumulate_loop *accumulate_subtract(enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return subtract_float32;
    case FLOAT64:
        return subtract_float64;
    case INT32:
        return subtract_int32;
    case INT64:
        return subtract_int64;
    default:
        return NULL;
    }
}
