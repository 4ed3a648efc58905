/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows as they were read to what is fed: casts, standardizing, scaling, one-hot, shape.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/column.h"
#include "data/convert.h"

#define BLOCK 1024

/* Whether element `at` is missing. Asked of all elements in their order. */
static bool take_gap(const struct data_gaps *gaps, size_t *next, int64_t at)
{
    bool is_gap = gaps && *next < gaps->at.n && gaps->at.items[*next] == at;
    *next += is_gap;
    return is_gap;
}

static int add_value(struct fitted *f, int64_t i, double value, int64_t *counts, struct error *err)
{
    if (!isfinite(value))
        return error_set(err, ERR_DATA, "is %g, which has no mean", value);
    f->mean[i] += (value - f->mean[i]) / (double)++counts[i];
    return 0;
}

/* Rows as they were read, and which of their elements were not. */
struct read_rows {
    const struct tensor *raw;
    const struct data_gaps *gaps;
};

/* Two passes, so that a large mean does not eat the deviation. `counts` has how many values there
 * are of each element then; `row` is room for one. */
static int add_rows(struct fitted *f, const struct read_rows *read, bool is_second, double *row,
                    int64_t *counts, struct error *err)
{
    size_t next = 0;
    for (int64_t r = 0; r < f->rows; r++) {
        convert_load(read->raw, r * f->width, f->width, row);
        for (int64_t i = 0; i < f->width; i++) {
            double from_mean = row[i] - f->mean[i];
            if (take_gap(read->gaps, &next, r * f->width + i))
                continue;
            if (is_second)
                f->deviation[i] += from_mean * from_mean / (double)counts[i];
            else if (add_value(f, i, row[i], counts, err))
                return error_prefix(err, "row %" PRId64 " of the rows selected ", r + 1);
        }
    }
    return 0;
}

/* Mean and deviation of each element of a row; the memory is the arena's. A constant column keeps
 * deviation 1: it becomes 0. */
static int fit(struct fitted *f, const struct read_rows *read, struct arena *arena,
               struct error *err)
{
    const struct tensor *raw = read->raw;
    f->rows = raw->shape.dims[0];
    f->width = tensor_count(raw) / f->rows;
    size_t n = (size_t)f->width;
    double *row = arena_array(arena, n, sizeof *row);
    int64_t *counts = arena_array(arena, n, sizeof *counts);
    f->mean = arena_array(arena, n, sizeof *f->mean);
    f->deviation = arena_array(arena, n, sizeof *f->deviation);
    for (int pass = 0; pass < 2; pass++)
        if (add_rows(f, read, pass, row, counts, err))
            return err->code;
    for (int64_t i = 0; i < f->width; i++) {
        if (!counts[i])
            return error_set(err, ERR_DATA, "none of the rows selected has a value%s",
                             f->width > 1 ? " in one of the columns" : "");
        f->deviation[i] = f->deviation[i] > 0 ? sqrt(f->deviation[i]) : 1;
    }
    return 0;
}

static int check_width(const struct fitted *f, const struct tensor *raw, struct error *err)
{
    int64_t width = tensor_count(raw) / raw->shape.dims[0];
    if (width == f->width)
        return 0;
    return error_set(err, ERR_DATA,
                     "%s was fitted to rows of %" PRId64 " elements, not of %" PRId64,
                     f->prep->path, f->width, width);
}

/* By what the column is standardized: what was fitted before, or is fitted now. *f is NULL if it is
 * not. */
static int find_moments(const struct data_column *column, const struct read_rows *read,
                        struct fitted *own, struct arena *arena, const struct fitted **f,
                        struct error *err)
{
    const struct tensor *raw = read->raw;
    *f = NULL;
    if (!column->standardize || !raw->shape.dims[0])
        return 0;
    if (column->prep) {
        *f = column->prep;
        return check_width(*f, raw, err);
    }
    struct fitted *to = column->fit ? column->fit : own;
    *f = to;
    return fit(to, read, column->fit ? &to->prep->arena : arena, err);
}

static int convert_all(const struct data_column *column, const struct tensor *raw,
                       const struct fitted *f, const struct data_gaps *gaps, struct tensor *fed,
                       struct error *err)
{
    double values[BLOCK];
    size_t next = 0;
    int64_t count = tensor_count(raw),
            row_width = count / (raw->shape.dims[0] ? raw->shape.dims[0] : 1);
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t n = count - first < BLOCK ? count - first : BLOCK, bad;
        convert_load(raw, first, n, values);
        for (int64_t i = 0; f && i < n; i++) {
            int64_t k = (first + i) % f->width;
            bool is_mean = take_gap(gaps, &next, first + i) && gaps->are_means;
            values[i] = is_mean ? 0 : (values[i] - f->mean[k]) / f->deviation[k];
        }
        if (column->scale != 1 || column->offset != 0)
            for (int64_t i = 0; i < n; i++)
                values[i] = values[i] * column->scale + column->offset;
        if (convert_store(fed, first, n, values, &bad, err))
            return error_prefix(
                err, "row %" PRId64 " of the rows selected: ", (first + bad) / row_width + 1);
    }
    return 0;
}

static int cast(const struct data_column *column, struct tensor *raw, const struct data_gaps *gaps,
                enum dtype type, struct tensor *fed, struct error *err)
{
    if (raw->type == type && !data_column_computes(column)) {
        *fed = *raw;
        *raw = (struct tensor)TENSOR_INIT;
        return 0;
    }
    if (raw->type == STRING || type == STRING)
        return error_set(err, ERR_DATA, "no cast from %s to %s", dtype_name(raw->type),
                         dtype_name(type));
    int code = tensor_alloc(fed, type, &raw->shape, err);
    if (code)
        return code;
    struct arena arena = ARENA_INIT;
    struct fitted own = {0};
    const struct fitted *f;
    const struct read_rows read = {raw, gaps};
    code = find_moments(column, &read, &own, &arena, &f, err);
    if (!code)
        code = convert_all(column, raw, f, gaps, fed, err);
    arena_release(&arena);
    return code;
}

/* [rows, ...] of whole numbers to [rows, ..., onehot]. */
static int one_hot(const struct data_column *column, const struct tensor *raw, enum dtype type,
                   struct tensor *fed, struct error *err)
{
    struct shape shape = raw->shape;
    int64_t count = tensor_count(raw);
    if (shape.rank == SHAPE_RANK_MAX)
        return error_set(err, ERR_DATA, "one-hot of %s has too many dimensions",
                         shape_text(&shape));
    shape.dims[shape.rank++] = column->onehot;
    int code = tensor_alloc(fed, type, &shape, err);
    if (code)
        return code;
    memset(fed->data, 0, tensor_bytes(fed));
    double on = column->scale + column->offset;
    for (int64_t i = 0; i < count * column->onehot && column->offset != 0; i++)
        tensor_set_float64(fed, i, column->offset);
    for (int64_t i = 0; i < count; i++) {
        double v;
        convert_load(raw, i, 1, &v);
        if (!(v >= 0 && v < (double)column->onehot && v == __builtin_trunc(v)))
            return error_set(err, ERR_DATA,
                             "row %" PRId64 " of the rows selected: %.17g is not in [0, %" PRId64
                             ") for onehot",
                             i / (count / shape.dims[0]) + 1, v, column->onehot);
        tensor_set_float64(fed, i * column->onehot + (int64_t)v, on);
    }
    return 0;
}

static int reshape(const struct data_column *column, struct tensor *fed, struct error *err)
{
    if (column->shape.rank == SHAPE_UNKNOWN)
        return 0;
    struct shape shape = column->shape, row = fed->shape;
    memmove(row.dims, row.dims + 1, (size_t)--row.rank * sizeof *row.dims);
    if (shape_count(&shape) != shape_count(&row))
        return error_set(err, ERR_DATA, "a row is %s, which shape=%s does not hold",
                         shape_text(&row), shape_text(&shape));
    memmove(shape.dims + 1, shape.dims, (size_t)shape.rank++ * sizeof *shape.dims);
    shape.dims[0] = fed->shape.dims[0];
    fed->shape = shape;
    return 0;
}

int data_column_apply(const struct data_column *column, struct tensor *raw,
                      const struct data_gaps *gaps, struct tensor *fed, struct error *err)
{
    enum dtype type = column->type;
    if (type == DTYPE_INVALID)
        type = data_column_computes(column) && !dtype_is_floating(raw->type) ? FLOAT32 : raw->type;
    *fed = (struct tensor)TENSOR_INIT;
    int code = column->onehot ? one_hot(column, raw, type, fed, err)
                              : cast(column, raw, gaps, type, fed, err);
    if (!code)
        code = reshape(column, fed, err);
    tensor_release(raw);
    if (code) {
        tensor_release(fed);
        error_prefix(err, "'%s': ", column->name);
    }
    return code;
}
