/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of arrays. Blocks that stay in the first cache, so that the sum passes memory once however
 * many arrays there are; strips of fixed length inside, which compilers make vectors of.
 */
#include <string.h>

#include "exec/device/narrow.h"
#include "exec/step/collective.h"

#define BLOCK 1024 /* elements */
#define VECTOR_BYTES 64

/* to = a + b, where `to` may be either; unsigned arithmetic where integers wrap around. The
 * compiler's vectors: a loop alone stays scalar without an option for it. */
#define DEFINE_ADD(name, type)                                                                     \
    typedef type vector_##name __attribute__((vector_size(VECTOR_BYTES)));                         \
    static void add_##name(void *sum, const void *first, const void *second, int64_t n)            \
    {                                                                                              \
        type *to = sum;                                                                            \
        const type *a = first, *b = second;                                                        \
        const int64_t lanes = VECTOR_BYTES / sizeof(type);                                         \
        vector_##name x, y;                                                                        \
        int64_t i = 0;                                                                             \
        for (; i + lanes <= n; i += lanes) {                                                       \
            memcpy(&x, a + i, sizeof x);                                                           \
            memcpy(&y, b + i, sizeof y);                                                           \
            x += y;                                                                                \
            memcpy(to + i, &x, sizeof x);                                                          \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            to[i] = (type)(a[i] + b[i]);                                                           \
    }
DEFINE_ADD(float, float)
DEFINE_ADD(double, double)
DEFINE_ADD(8, uint8_t)
DEFINE_ADD(16, uint16_t)
DEFINE_ADD(32, uint32_t)
DEFINE_ADD(64, uint64_t)
#undef DEFINE_ADD

#define DEFINE_DIVIDE(name, type)                                                                  \
    static void divide_##name(type *to, type divisor, int64_t n)                                   \
    {                                                                                              \
        const int64_t lanes = VECTOR_BYTES / sizeof(type);                                         \
        vector_##name x;                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + lanes <= n; i += lanes) {                                                       \
            memcpy(&x, to + i, sizeof x);                                                          \
            x /= divisor;                                                                          \
            memcpy(to + i, &x, sizeof x);                                                          \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            to[i] /= divisor;                                                                      \
    }
DEFINE_DIVIDE(float, float)
DEFINE_DIVIDE(double, double)
#undef DEFINE_DIVIDE

typedef void add_function(void *sum, const void *first, const void *second, int64_t n);

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

static void sum_block(const struct collective_terms *terms, void *sum, int64_t from, int64_t count)
{
    double total[BLOCK]; /* of the widest type: `sum` may be an array that is still to be read */
    size_t bytes = dtype_bytes(terms->type), at = (size_t)from * bytes;
    add_function *add = add_of(terms->type);
    char *to = (char *)sum + at;
    const char *first = (const char *)terms->values[0] + at;
    if (terms->n == 1 && to != first)
        memcpy(to, first, (size_t)count * bytes);
    for (int k = 1; k < terms->n; k++)
        add(k == terms->n - 1 ? (void *)to : total, k == 1 ? first : (const char *)total,
            (const char *)terms->values[k] + at, count);
    if (terms->divisor && terms->type == FLOAT32)
        divide_float((float *)sum + from, (float)terms->divisor, count);
    else if (terms->divisor)
        divide_double((double *)sum + from, terms->divisor, count);
}

/* 16-bit floats */
static void sum_narrow_block(const struct collective_terms *terms, void *sum, int64_t from,
                             int64_t count)
{
    float total[BLOCK], value[BLOCK];
    widen_floats(terms->type, (const uint16_t *)terms->values[0] + from, total, count);
    for (int k = 1; k < terms->n; k++) {
        widen_floats(terms->type, (const uint16_t *)terms->values[k] + from, value, count);
        add_float(total, total, value, count);
    }
    if (terms->divisor)
        divide_float(total, (float)terms->divisor, count);
    narrow_floats(terms->type, total, (uint16_t *)sum + from, count);
}

bool collective_can_add(enum collective_kind kind, enum dtype type)
{
    return collective_divides(kind) ? dtype_is_floating(type)
                                    : (DTYPES_REAL & DTYPE_BIT(type)) != 0;
}

void collective_sum(const struct collective_terms *terms, void *sum, void *copy, int64_t count)
{
    bool narrow = terms->type == FLOAT16 || terms->type == BFLOAT16;
    size_t bytes = dtype_bytes(terms->type);
    for (int64_t from = 0; from < count; from += BLOCK) {
        int64_t length = count - from < BLOCK ? count - from : BLOCK;
        if (narrow)
            sum_narrow_block(terms, sum, from, length);
        else
            sum_block(terms, sum, from, length);
        if (copy)
            memcpy((char *)copy + (size_t)from * bytes, (const char *)sum + (size_t)from * bytes,
                   (size_t)length * bytes);
    }
}
