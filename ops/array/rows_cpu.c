/* SPDX-License-Identifier: Apache-2.0
 *
 * Each thread scans all indices and processes those of its own rows (row modulo threads). So a
 * row's updates keep their order, and the bits do not depend on the number of threads. Rows of
 * float32 to which many values are added have separate wide sums.
 */
#include "ops/array/rows.h"

#include <string.h>

#include "ops/array/heavy_rows.h"
#include "ops/math/accumulate.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/wide_sums.h"

#define PARALLEL_BYTES (1 << 18)

static void set_bytes(void *to, const void *from, int64_t n)
{
    memcpy(to, from, (size_t)n);
}

struct rows_update {
    accumulate_loop *row; /* NULL: float32 is added or subtracted */
    float sign;           /* for float32 */
    char *table;
    const char *values;
    const struct tensor *indices;
    int64_t n, length; /* of a row, in elements, or in bytes for SET */
    size_t row_bytes;
    struct heavy_rows heavy;
    struct wide_sums sums; /* of the heavy rows, by number */
};

enum heavy { HEAVY_NONE, HEAVY_SOME, HEAVY_ALL };

/* Callers pass a constant `heavy`. All that is read per value is copied to locals, as the bytes
 * written might alias anything. */
static inline void add_rows(const struct rows_update *u, int64_t part, int64_t parts,
                            enum heavy heavy)
{
    const bool wide = u->indices->type == INT64;
    const void *indices = u->indices->data;
    const float *from = (const float *)(const void *)u->values, sign = u->sign;
    float *table = (float *)(void *)u->table;
    const int64_t n = u->n, length = u->length;
    uint8_t *state = u->sums.state;
    for (int64_t i = 0; i < n; i++, from += length) {
        int64_t index = wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
        if (parts > 1 && index % parts != part)
            continue;
        float *to = table + index * length;
        if (length == 1)
            *to += sign * *from;
        else
            for (int64_t j = 0; j < length; j++)
                to[j] += sign * from[j];
        int64_t number = heavy == HEAVY_ALL    ? index
                         : heavy == HEAVY_SOME ? heavy_rows_number(&u->heavy, index)
                                               : -1;
        if (number >= 0 && wide_sums_count(&state[number]))
            wide_sums_spill(&u->sums, number, to);
    }
}

static void do_part(void *context, int part, int parts)
{
    const struct rows_update *u = context;
    if (u->row) {
        const int32_t *i32 = u->indices->data;
        const int64_t *i64 = u->indices->data;
        bool wide = u->indices->type == INT64;
        for (int64_t i = 0; i < u->n; i++) {
            int64_t index = wide ? i64[i] : i32[i];
            if (parts == 1 || index % parts == part)
                u->row(u->table + (size_t)index * u->row_bytes,
                       u->values + (size_t)i * u->row_bytes, u->length);
        }
    } else if (u->heavy.all)
        add_rows(u, part, parts, HEAVY_ALL);
    else if (u->heavy.n)
        add_rows(u, part, parts, HEAVY_SOME);
    else
        add_rows(u, part, parts, HEAVY_NONE);
}

int rows_update(struct kernel_call *call, enum rows_op op, struct tensor *table,
                const struct tensor *indices, const struct tensor *values)
{
    size_t bytes = tensor_bytes(values);
    if (!bytes)
        return 0;
    bool adds_floats = op != ROWS_SET && table->type == FLOAT32;
    struct rows_update u = {.row = adds_floats      ? NULL
                                   : op == ROWS_SET ? set_bytes
                                   : op == ROWS_ADD ? accumulate_add(table->type)
                                                    : accumulate_subtract(table->type),
                            .sign = op == ROWS_SUB ? -1 : 1,
                            .table = table->data,
                            .values = values->data,
                            .indices = indices,
                            .n = tensor_count(indices)};
    u.row_bytes = bytes / (size_t)u.n;
    u.length = (int64_t)(op == ROWS_SET ? u.row_bytes : u.row_bytes / dtype_bytes(table->type));
    if (adds_floats && (heavy_rows_find(call, &u.heavy, indices, table->shape.dims[0]) ||
                        (u.heavy.n && wide_sums_begin(call, &u.sums, u.heavy.n, u.length))))
        return call->err->code;
    int threads = bytes < PARALLEL_WORTH(PARALLEL_BYTES) ? 1 : call->threads;
    if (threads == 1)
        do_part(&u, 0, 1);
    else
        team_run(threads, do_part, &u);
    for (int64_t k = 0; k < u.heavy.n; k++)
        wide_sums_end(&u.sums, k,
                      (float *)(void *)u.table + (u.heavy.all ? k : u.heavy.rows[k]) * u.length);
    return 0;
}
