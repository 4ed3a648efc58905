/* SPDX-License-Identifier: Apache-2.0
 *
 * Each thread goes through all indices and takes those of the rows that are its own (row modulo
 * threads): a row's updates keep their order, so the bits do not depend on the number of threads.
 */
#include "ops/array/rows.h"

#include <inttypes.h>
#include <string.h>

#include "ops/math/accumulate.h"
#include "ops/math/worth_cpu.h"

#define PARALLEL_BYTES (1 << 18)

static int fail_at(struct kernel_call *call, const struct tensor *indices, int64_t i, int64_t n)
{
    int64_t value = tensor_get_int64(indices, i);
    struct shape at = {.rank = indices->shape.rank};
    for (int d = at.rank - 1; d >= 0; d--) {
        at.dims[d] = i % indices->shape.dims[d];
        i /= indices->shape.dims[d];
    }
    return kernel_fail(call, "index %" PRId64 " at %s is outside [0, %" PRId64 ")", value,
                       shape_text(&at), n);
}

int rows_check(struct kernel_call *call, const struct tensor *indices, int64_t n)
{
    int64_t count = tensor_count(indices);
    const int32_t *i32 = indices->data;
    const int64_t *i64 = indices->data;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = indices->type == INT64 ? i64[i] : i32[i];
        if (index < 0 || index >= n)
            return fail_at(call, indices, i, n);
    }
    return 0;
}

static void set_bytes(void *to, const void *from, int64_t n)
{
    memcpy(to, from, (size_t)n);
}

static accumulate_loop *find_update(enum rows_op op, enum dtype type)
{
    if (op == ROWS_SET)
        return set_bytes;
    return op == ROWS_ADD ? accumulate_add(type) : accumulate_subtract(type);
}

struct update {
    accumulate_loop *row;
    char *table;
    const char *values;
    const struct tensor *indices;
    int64_t n, length; /* of a row, in elements, or in bytes to set */
    size_t row_bytes;
};

static void update_part(const struct update *u, int64_t part, int64_t parts)
{
    const int32_t *i32 = u->indices->data;
    const int64_t *i64 = u->indices->data;
    bool wide = u->indices->type == INT64;
    for (int64_t i = 0; i < u->n; i++) {
        int64_t index = wide ? i64[i] : i32[i];
        if (parts == 1 || index % parts == part)
            u->row(u->table + (size_t)index * u->row_bytes, u->values + (size_t)i * u->row_bytes,
                   u->length);
    }
}

void rows_update(struct kernel_call *call, enum rows_op op, struct tensor *table,
                 const struct tensor *indices, const struct tensor *values)
{
    size_t bytes = tensor_bytes(values);
    if (!bytes)
        return;
    struct update u = {.row = find_update(op, table->type),
                       .table = table->data,
                       .values = values->data,
                       .indices = indices,
                       .n = tensor_count(indices)};
    u.row_bytes = bytes / (size_t)u.n;
    u.length = (int64_t)(op == ROWS_SET ? u.row_bytes : u.row_bytes / dtype_bytes(table->type));
    int threads = call->threads;
    if (threads == 1 || bytes < PARALLEL_WORTH(PARALLEL_BYTES)) {
        update_part(&u, 0, 1);
        return;
    }
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        update_part(&u, t, threads);
}
