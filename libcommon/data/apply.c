/* SPDX-License-Identifier: Apache-2.0
 *
 * From rows as they were read to what is fed: casts, standardizing, scaling, one-hot, shape.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/column.h"
#include "data/convert.h"

#define BLOCK 1024

/* Mean and deviation of each of the `width` elements of a row. */
struct moments {
    double *mean, *deviation;
    int64_t width;
};

/* Two passes, so that a large mean does not eat the deviation. A constant column keeps deviation 1:
 * it becomes 0. */
static void moments_take(struct moments *moments, const struct tensor *raw, int64_t width)
{
    int64_t rows = raw->shape.dims[0];
    double *row = mem_array((size_t)width, sizeof *row);
    moments->width = width;
    moments->mean = mem_array((size_t)width, sizeof *moments->mean);
    moments->deviation = mem_array((size_t)width, sizeof *moments->deviation);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t r = 0; r < rows; r++) {
            convert_load(raw, r * width, width, row);
            for (int64_t i = 0; i < width; i++) {
                double from_mean = row[i] - moments->mean[i];
                if (pass)
                    moments->deviation[i] += from_mean * from_mean / (double)rows;
                else
                    row[i] = moments->mean[i] + from_mean / (double)(r + 1);
            }
            if (!pass)
                memcpy(moments->mean, row, (size_t)width * sizeof *row);
        }
    }
    for (int64_t i = 0; i < width; i++)
        moments->deviation[i] = moments->deviation[i] > 0 ? sqrt(moments->deviation[i]) : 1;
    mem_free(row);
}

static void moments_release(struct moments *moments)
{
    mem_free(moments->mean);
    mem_free(moments->deviation);
}

static int convert_all(const struct data_column *column, const struct tensor *raw,
                       const struct moments *moments, struct tensor *fed, struct error *err)
{
    double values[BLOCK];
    int64_t count = tensor_count(raw),
            row_width = count / (raw->shape.dims[0] ? raw->shape.dims[0] : 1);
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t n = count - first < BLOCK ? count - first : BLOCK, bad;
        convert_load(raw, first, n, values);
        for (int64_t i = 0; i < n && moments->width; i++) {
            int64_t k = (first + i) % moments->width;
            values[i] = (values[i] - moments->mean[k]) / moments->deviation[k];
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

static int cast(const struct data_column *column, struct tensor *raw, enum dtype type,
                struct tensor *fed, struct error *err)
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
    struct moments moments = {0};
    int64_t rows = raw->shape.dims[0];
    if (column->standardize && rows)
        moments_take(&moments, raw, tensor_count(raw) / rows);
    code = convert_all(column, raw, &moments, fed, err);
    moments_release(&moments);
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

int data_column_apply(const struct data_column *column, struct tensor *raw, struct tensor *fed,
                      struct error *err)
{
    enum dtype type = column->type;
    if (type == DTYPE_INVALID)
        type = data_column_computes(column) && !dtype_is_floating(raw->type) ? FLOAT32 : raw->type;
    *fed = (struct tensor)TENSOR_INIT;
    int code =
        column->onehot ? one_hot(column, raw, type, fed, err) : cast(column, raw, type, fed, err);
    if (!code)
        code = reshape(column, fed, err);
    tensor_release(raw);
    if (code) {
        tensor_release(fed);
        error_prefix(err, "'%s': ", column->name);
    }
    return code;
}
