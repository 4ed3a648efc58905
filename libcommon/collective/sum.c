/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of arrays, in blocks that fit into the first-level cache: the sum of any number of arrays
 * passes over memory once. Loops work on vectors of fixed length.
 */
#include "collective/sum.h"

#include <string.h>

#include "base/memory.h"
#include "tensor/narrow.h"

#define BLOCK 1024 /* elements */
#define VECTOR_BYTES 64

/* to = a + b or a scaled, where `to` may be an operand; unsigned where integers wrap around. Uses
 * the compiler's vector types, as a plain loop stays scalar without an option. `take` sets y to the
 * second operands of a vector, `one` is that of an element. */
#define DEFINE_LOOP(name, type, second, take, operator, one)                                       \
    static void name(void *result, const void *first, second, int64_t n)                           \
    {                                                                                              \
        typedef type vector __attribute__((vector_size(VECTOR_BYTES)));                            \
        type *to = result;                                                                         \
        const type *a = first;                                                                     \
        const int64_t lanes = VECTOR_BYTES / sizeof(type);                                         \
        vector x, y;                                                                               \
        int64_t i = 0;                                                                             \
        for (; i + lanes <= n; i += lanes) {                                                       \
            memcpy(&x, a + i, sizeof x);                                                           \
            take;                                                                                  \
            x = x operator y;                                                                      \
            memcpy(to + i, &x, sizeof x);                                                          \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            to[i] = (type)(a[i] operator one);                                                     \
    }
#define DEFINE_ADD(name, type)                                                                     \
    DEFINE_LOOP(name, type, const void *b, memcpy(&y, (const type *)b + i, sizeof y), +,           \
                ((const type *)b)[i])
#define DEFINE_SCALE(name, type, operator)                                                         \
    DEFINE_LOOP(name, type, type by, y = (vector){0} + by, operator, by)
DEFINE_ADD(add_float, float)
DEFINE_ADD(add_double, double)
DEFINE_ADD(add_8, uint8_t)
DEFINE_ADD(add_16, uint16_t)
DEFINE_ADD(add_32, uint32_t)
DEFINE_ADD(add_64, uint64_t)
DEFINE_SCALE(multiply_float, float, *)
DEFINE_SCALE(divide_float, float, /)
DEFINE_SCALE(multiply_double, double, *)
DEFINE_SCALE(divide_double, double, /)

/* A division by a power of two multiplies by its reciprocal, which is exact and faster. */
static void divide(enum dtype type, void *values, int divisor, int64_t n)
{
    bool inverts = !(divisor & (divisor - 1));
    if (type == FLOAT64 && inverts)
        multiply_double(values, values, 1.0 / divisor, n);
    else if (type == FLOAT64)
        divide_double(values, values, divisor, n);
    else if (inverts)
        multiply_float(values, values, 1.0f / (float)divisor, n);
    else
        divide_float(values, values, (float)divisor, n);
}

typedef void add_function(void *sum, const void *first, const void *second, int64_t n);

static void sum_block(const struct collective_terms *terms, void *sum, int64_t from, int64_t count)
{
    double total[BLOCK]; /* of the widest type; `sum` may be an array that is still to be read */
    size_t bytes = dtype_bytes(terms->type), at = (size_t)from * bytes;
    static add_function *const by_bytes[] = {[1] = add_8, [2] = add_16, [4] = add_32, [8] = add_64};
    add_function *add = terms->type == FLOAT32   ? add_float
                        : terms->type == FLOAT64 ? add_double
                                                 : by_bytes[bytes];
    char *to = (char *)sum + at;
    const char *first = (const char *)terms->values[0] + at;
    if (terms->n == 1 && to != first)
        memcpy(to, first, (size_t)count * bytes);
    for (int k = 1; k < terms->n; k++)
        add(k == terms->n - 1 ? (void *)to : total, k == 1 ? first : (const char *)total,
            (const char *)terms->values[k] + at, count);
    if (terms->divisor)
        divide(terms->type, to, terms->divisor, count);
}

/* Adds 16-bit floats. */
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
        divide(FLOAT32, total, terms->divisor, count);
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

void collective_sum_tensors(const struct tensor *values, int n, int divisor, struct tensor *sum)
{
    const void **data = mem_array((size_t)n, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = values[k].data;
    const struct collective_terms terms = {sum->type, data, n, divisor};
    collective_sum(&terms, sum->data, NULL, tensor_count(sum));
    mem_free(data);
}
