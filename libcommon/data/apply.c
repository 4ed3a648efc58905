/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns rows as read into rows as fed: missing values, arithmetic, one-hot, flags, shape.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "data/column.h"
#include "data/convert.h"
#include "data/fit.h"

#define BLOCK 1024 /* approximate number of elements converted at once */

/* A column being converted. */
struct passage {
    const struct data_column *column;
    const struct tensor *raw;
    const struct data_gaps *gaps; /* NULL: none */
    size_t next_gap;              /* index of the next gap */
    int64_t width;                /* elements of a row as read, ... */
    int64_t fed_width;            /* ... and as fed */
    double *values;               /* of some rows; computed with in place */
    double *fed;                  /* the same rows as fed */
    bool *missing;                /* of `values` */
};

/* Fits the column to these rows. */
static int fit(const struct data_column *column, struct tensor *raw, const struct data_gaps *gaps,
               struct error *err)
{
    bool *missing = NULL;
    size_t count = (size_t)tensor_count(raw);
    if (gaps && gaps->at.n) {
        if (!(missing = mem_try(count)))
            return error_set(err, ERR_OS, "no memory for %zu elements", count);
        memset(missing, 0, count);
        for (size_t i = 0; i < gaps->at.n; i++)
            missing[gaps->at.items[i]] = true;
    }
    int code = fit_rows(column, raw, missing, err);
    mem_free(missing);
    return code;
}

/* Replaces missing elements by the fitted value. */
static void impute(const struct data_column *column, struct tensor *raw,
                   const struct data_gaps *gaps)
{
    const struct fit *f = column->fitted;
    for (size_t i = 0; f && f->impute && column->impute && gaps && i < gaps->at.n; i++) {
        int64_t at = gaps->at.items[i];
        tensor_set_float64(raw, at, f->figures[FIGURE_FILL][at % f->width]);
    }
}

/* Returns the width of the one-hot of an id in field k of a row. */
static int64_t ids_of(const struct data_column *column, int64_t k)
{
    return column->reading == READ_HASH ? column->buckets
                                        : (int64_t)column->fitted->categories[k].texts.n;
}

static int64_t fed_width(const struct data_column *column, int64_t width)
{
    int64_t fed = column->onehot_of_ids ? 0 : width;
    for (int64_t k = 0; column->onehot_of_ids && k < width; k++)
        fed += ids_of(column, k);
    return fed + (column->flag ? width : 0);
}

/* ---- arithmetic ---- */

static int compute(const struct passage *p, int64_t first, int64_t rows, struct error *err)
{
    const struct data_column *column = p->column;
    int64_t n = rows * p->width;
    if (column->balance) { /* an unseen category has weight 1 */
        const struct fit *f = column->fitted;
        for (int64_t i = 0; i < n; i++)
            p->values[i] = p->values[i] < (double)f->categories[0].texts.n
                               ? f->weights[(int64_t)p->values[i]]
                               : 1;
    }
    for (int64_t i = 0; column->log1p && i < n; i++) {
        if (p->values[i] <= -1)
            return error_set(err, ERR_DATA,
                             "row %" PRId64 " of the rows selected: log1p of %.17g does not exist",
                             first + i / p->width + 1, p->values[i]);
        p->values[i] = log1p(p->values[i]);
    }
    if (column->norm) {
        double *const *figures = p->column->fitted->figures;
        bool are_means = p->gaps && p->gaps->are_means;
        for (int64_t k = 0; k < p->width; k++) {
            double shift, unit;
            if (p->column->norm == NORM_STANDARDIZE) {
                shift = figures[FIGURE_MEAN][k];
                unit = figures[FIGURE_DEVIATION][k];
            } else {
                shift = figures[FIGURE_MIN][k];
                unit = figures[FIGURE_MAX][k] - shift;
                unit = unit > 0 ? unit : 1;
            }
            for (int64_t i = k; i < rows * p->width; i += p->width)
                p->values[i] = are_means && p->missing[i] ? 0 : (p->values[i] - shift) / unit;
        }
    }
    if (column->scale != 1 || column->offset != 0)
        for (int64_t i = 0; i < n; i++)
            p->values[i] = p->values[i] * column->scale + column->offset;
    return 0;
}

/* ---- rows ---- */

static int convert_block(struct passage *p, int64_t first, int64_t rows, struct tensor *fed,
                         struct error *err)
{
    int64_t bad, n = rows * p->width, end = (first + rows) * p->width;
    bool spreads = p->column->onehot_of_ids || p->column->flag;
    convert_load(p->raw, first * p->width, n, p->values);
    memset(p->missing, 0, (size_t)n);
    for (; p->gaps && p->next_gap < p->gaps->at.n && p->gaps->at.items[p->next_gap] < end;
         p->next_gap++)
        p->missing[p->gaps->at.items[p->next_gap] - first * p->width] = true;
    if (compute(p, first, rows, err))
        return err->code;
    for (int64_t r = 0; spreads && r < rows; r++) {
        /* Set a row's elements as fed: values, or zeros with a one among them; then flags. */
        const double *values = p->values + r * p->width;
        double *to = p->fed + r * p->fed_width;
        const struct data_column *column = p->column;
        memset(to, 0, (size_t)p->fed_width * sizeof *to);
        for (int64_t k = 0; k < p->width; k++) {
            int64_t ids = column->onehot_of_ids ? ids_of(column, k) : 1;
            if (!column->onehot_of_ids)
                *to = values[k];
            else if ((int64_t)values[k] < ids)
                to[(int64_t)values[k]] = 1;
            to += ids;
        }
        for (int64_t k = 0; column->flag && k < p->width; k++)
            to[k] = (p->missing + r * p->width)[k];
    }
    if (convert_store(fed, first * p->fed_width, rows * p->fed_width, spreads ? p->fed : p->values,
                      &bad, err))
        return error_prefix(
            err, "row %" PRId64 " of the rows selected: ", first + bad / p->fed_width + 1);
    return 0;
}

static int convert(const struct data_column *column, struct tensor *raw,
                   const struct data_gaps *gaps, enum dtype type, struct tensor *fed,
                   struct error *err)
{
    if (raw->type == type && !data_column_computes(column)) {
        *fed = *raw;
        *raw = (struct tensor)TENSOR_INIT;
        return 0;
    }
    if (raw->type == STRING || type == STRING)
        return error_set(err, ERR_DATA, "no cast from %s to %s", dtype_name(raw->type),
                         dtype_name(type));
    struct shape shape = raw->shape;
    int64_t rows = shape.dims[0], width = rows ? tensor_count(raw) / rows : tensor_count(raw);
    struct passage p = {column, raw, gaps, .width = width, .fed_width = fed_width(column, width)};
    if (column->onehot_of_ids || column->flag)
        shape = shape_matrix(rows, p.fed_width);
    if (tensor_alloc(fed, type, &shape, err))
        return err->code;
    int64_t widest = width > p.fed_width ? width : p.fed_width;
    int64_t block = widest && widest < BLOCK ? BLOCK / widest : 1;
    p.values = mem_array((size_t)(block * width + 1), sizeof *p.values);
    p.missing = mem_array((size_t)(block * width + 1), sizeof *p.missing);
    p.fed = mem_array((size_t)(block * p.fed_width + 1), sizeof *p.fed);
    for (int64_t first = 0; first < rows && !err->code; first += block)
        convert_block(&p, first, rows - first < block ? rows - first : block, fed, err);
    mem_free(p.values);
    mem_free(p.missing);
    mem_free(p.fed);
    return err->code;
}

/* Converts [rows, ...] of whole numbers to [rows, ..., onehot]. */
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
    enum dtype type = data_column_type(column, raw->type);
    int64_t rows = raw->shape.dims[0];
    const struct fit *f = column->fitted;
    int64_t width = rows ? tensor_count(raw) / rows : 0;
    int code = 0;
    *fed = (struct tensor)TENSOR_INIT;
    if (rows && f && f->width && width != f->width)
        code = error_set(err, ERR_DATA,
                         "%s was fitted to rows of %" PRId64 " elements, not of %" PRId64,
                         f->prep->path, f->width, width);
    if (!code && rows && fit_needs_rows(column))
        code = fit(column, raw, gaps, err);
    else if (column->fitted && !column->is_known)
        column->fitted->rows += rows;
    if (!code)
        impute(column, raw, gaps);
    if (!code)
        code = column->onehot ? one_hot(column, raw, type, fed, err)
                              : convert(column, raw, gaps, type, fed, err);
    if (!code)
        code = reshape(column, fed, err);
    tensor_release(raw);
    if (code) {
        tensor_release(fed);
        error_prefix(err, "'%s': ", column->name);
    }
    return code;
}
