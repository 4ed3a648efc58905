/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "ops/array/args.h"

/* ---- Where ---- */

#define WHERE_BLOCK 4096

/* Finds whether each element is nonzero. */
#define NONZERO(name, type, ...)                                                                   \
    static void name(const void *px, int64_t n, uint8_t *flags)                                    \
    {                                                                                              \
        const type *x = px;                                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            flags[i] = (__VA_ARGS__);                                                              \
    }

NONZERO(nonzero_float32, float, x[i] != 0)
NONZERO(nonzero_float64, double, x[i] != 0)
NONZERO(nonzero_half, uint16_t, (x[i] & 0x7fff) != 0) /* float16 and bfloat16: -0.0 is 0 */
NONZERO(nonzero_complex64, float, x[2 * i] != 0 || x[2 * i + 1] != 0)
NONZERO(nonzero_8, uint8_t, x[i] != 0)
NONZERO(nonzero_16, uint16_t, x[i] != 0)
NONZERO(nonzero_32, uint32_t, x[i] != 0)
NONZERO(nonzero_64, uint64_t, x[i] != 0)

/* Sets the flags of the next elements, from `first` on; returns their number, 0 at the end. */
static int64_t next_flags(const struct tensor *in, int64_t first, uint8_t flags[WHERE_BLOCK])
{
    static void (*const loops[])(const void *x, int64_t n, uint8_t *flags) = {
        [FLOAT32] = nonzero_float32, [FLOAT64] = nonzero_float64,
        [FLOAT16] = nonzero_half,    [BFLOAT16] = nonzero_half,
        [INT8] = nonzero_8,          [UINT8] = nonzero_8,
        [INT16] = nonzero_16,        [UINT16] = nonzero_16,
        [INT32] = nonzero_32,        [UINT32] = nonzero_32,
        [INT64] = nonzero_64,        [UINT64] = nonzero_64,
        [BOOL] = nonzero_8,          [COMPLEX64] = nonzero_complex64};
    int64_t n = tensor_count(in) - first;
    n = n < WHERE_BLOCK ? n : WHERE_BLOCK;
    loops[in->type]((const char *)in->data + (size_t)first * dtype_bytes(in->type), n, flags);
    return n;
}

static int where_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    uint8_t flags[WHERE_BLOCK];
    int64_t found = 0;
    for (int64_t first = 0, n; (n = next_flags(in, first, flags)); first += n)
        for (int64_t i = 0; i < n; i++)
            found += flags[i];
    struct shape shape = shape_matrix(found, in->shape.rank);
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    int64_t *row = out->data, index[SHAPE_RANK_MAX] = {0};
    for (int64_t first = 0, n; (n = next_flags(in, first, flags)); first += n)
        for (int64_t i = 0; i < n; i++) {
            for (int d = 0; flags[i] && d < in->shape.rank; d++)
                *row++ = index[d];
            /* Steps to the next element in row-major order. */
            for (int d = in->shape.rank - 1; d >= 0 && ++index[d] == in->shape.dims[d]; d--)
                index[d] = 0;
        }
    return KERNEL_DONE;
}

const struct kernel_code kernel_where = {.run = where_run};

/* ---- Unique ---- */

/* Returns an element's bits, normalized so that equal elements have equal bits. */
static uint64_t key_of(const struct tensor *x, int64_t i)
{
    uint64_t key = 0;
    size_t item = dtype_bytes(x->type);
    memcpy(&key, (const char *)x->data + (size_t)i * item, item);
    if (dtype_is_floating(x->type) && key << (65 - 8 * item) == 0)
        return 0; /* -0.0: only the sign bit */
    return key;
}

/* Open addressing; a slot holds 1 + the index of an element of y, 0 if it is free. */
struct unique_table {
    uint64_t *slots, mask;
    int64_t *first; /* y[k] = x[first[k]] */
    int64_t n;
};

static int64_t find_or_add(struct unique_table *table, const struct tensor *x, int64_t i)
{
    uint64_t key = key_of(x, i), at = hash_bytes(&key, sizeof key, 0) & table->mask;
    bool nan = dtype_is_floating(x->type) && isnan(tensor_get_float64(x, i));
    for (; table->slots[at]; at = (at + 1) & table->mask)
        if (!nan && key_of(x, table->first[table->slots[at] - 1]) == key)
            return (int64_t)table->slots[at] - 1;
    table->first[table->n] = i;
    table->slots[at] = (uint64_t)++table->n;
    return table->n - 1;
}

static int unique_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    struct unique_table table;
    if (x->shape.rank != 1)
        return kernel_fail(call, "x must be a vector, not %s", shape_text(&x->shape));
    int64_t n = tensor_count(x);
    struct tensor *idx = kernel_alloc_output(call, 1, &x->shape);
    if (!idx)
        return call->err->code;
    uint64_t capacity = 8;
    while (capacity < (uint64_t)n * 2)
        capacity *= 2;
    table.mask = capacity - 1;
    table.n = 0;
    table.slots = kernel_temporary(call, capacity * sizeof *table.slots);
    table.first = kernel_temporary(call, ((size_t)n + 1) * sizeof *table.first);
    if (!table.slots || !table.first)
        return call->err->code;
    memset(table.slots, 0, capacity * sizeof *table.slots);
    if (idx->type == INT32 && n > INT32_MAX)
        return kernel_fail(call, "%" PRId64 " elements: ask for out_idx int64", n);
    for (int64_t i = 0; i < n; i++)
        tensor_set_int64(idx, i, find_or_add(&table, x, i));
    struct shape shape = shape_vector(table.n);
    struct tensor *y = kernel_alloc_output(call, 0, &shape);
    if (!y)
        return call->err->code;
    size_t item = dtype_bytes(x->type);
    for (int64_t k = 0; k < table.n; k++)
        memcpy((char *)y->data + (size_t)k * item,
               (const char *)x->data + (size_t)table.first[k] * item, item);
    return KERNEL_DONE;
}

const struct kernel_code kernel_unique = {.run = unique_run};
