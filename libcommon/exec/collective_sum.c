/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of arrays. Blocks that stay in the first cache, so that the sum passes memory once however
 * many arrays there are; strips of fixed length inside, which compilers make vectors of.
 */
#include <string.h>

#include "exec/collective.h"

#define BLOCK 1024 /* elements */
#define STRIP 16

/* sum += value; unsigned arithmetic where integers wrap around. */
#define DEFINE_ADD(name, type)                                                                     \
    static void add_##name(void *sum, const void *value, int64_t n)                                \
    {                                                                                              \
        type *restrict to = sum;                                                                   \
        const type *restrict from = value;                                                         \
        int64_t i = 0;                                                                             \
        for (; i + STRIP <= n; i += STRIP)                                                         \
            for (int k = 0; k < STRIP; k++)                                                        \
                to[i + k] = (type)(to[i + k] + from[i + k]);                                       \
        for (; i < n; i++)                                                                         \
            to[i] = (type)(to[i] + from[i]);                                                       \
    }
DEFINE_ADD(float, float)
DEFINE_ADD(double, double)
DEFINE_ADD(8, uint8_t)
DEFINE_ADD(16, uint16_t)
DEFINE_ADD(32, uint32_t)
DEFINE_ADD(64, uint64_t)
#undef DEFINE_ADD

typedef void add_function(void *sum, const void *value, int64_t n);

static add_function *add_of(enum dtype type)
{
    if (type == FLOAT32)
        return add_float;
    if (type == FLOAT64)
        return add_double;
    switch (dtype_bytes(type)) {
    case 1:
        return add_8;
    case 2:
        return add_16;
    case 4:
        return add_32;
    default:
        return add_64;
    }
}

static void sum_block(enum dtype type, const void *const *values, int n, void *sum, int64_t from,
                      int64_t count)
{
    size_t bytes = dtype_bytes(type), at = (size_t)from * bytes;
    char *to = (char *)sum + at;
    if (to != (const char *)values[0] + at)
        memcpy(to, (const char *)values[0] + at, (size_t)count * bytes);
    for (int k = 1; k < n; k++)
        add_of(type)(to, (const char *)values[k] + at, count);
}

/* ---- 16-bit floats ---- */

static void widen(enum dtype type, const uint16_t *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = type == FLOAT16 ? float16_to_float32(from[i]) : bfloat16_to_float32(from[i]);
}

static void sum_narrow_block(enum dtype type, const void *const *values, int n, void *sum,
                             int64_t from, int64_t count)
{
    float total[BLOCK], value[BLOCK];
    uint16_t *to = (uint16_t *)sum + from;
    widen(type, (const uint16_t *)values[0] + from, total, count);
    for (int k = 1; k < n; k++) {
        widen(type, (const uint16_t *)values[k] + from, value, count);
        add_float(total, value, count);
    }
    for (int64_t i = 0; i < count; i++)
        to[i] = type == FLOAT16 ? float32_to_float16(total[i]) : float32_to_bfloat16(total[i]);
}

bool collective_has_sum(enum dtype type)
{
    return (DTYPES_REAL & DTYPE_BIT(type)) != 0;
}

void collective_sum(enum dtype type, const void *const *values, int n, void *sum, int64_t count)
{
    bool narrow = type == FLOAT16 || type == BFLOAT16;
    for (int64_t from = 0; from < count; from += BLOCK) {
        int64_t length = count - from < BLOCK ? count - from : BLOCK;
        if (narrow)
            sum_narrow_block(type, values, n, sum, from, length);
        else
            sum_block(type, values, n, sum, from, length);
    }
}
