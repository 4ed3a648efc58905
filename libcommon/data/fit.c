/* SPDX-License-Identifier: Apache-2.0 */
#include "data/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/convert.h"

static bool imputes(const struct data_column *column, const char *how)
{
    return column->fitted && column->fitted->impute && !strcmp(column->fitted->impute, how);
}

bool fit_needs_rows(const struct data_column *column)
{
    bool finds_ids = column->reading == READ_CATEGORY && !column->categories;
    return column->fitted && !column->is_known &&
           (finds_ids || column->norm || column->fitted->impute);
}

/* Rows as read, and which of their elements are missing. */
struct fit_rows {
    const struct data_column *column;
    struct fit *fitted;
    const struct tensor *raw;
    const bool *missing; /* NULL: none */
    int64_t *counts;     /* number of values of each element of a row */
};

/* ---- moments, row by row ---- */

static double *add_figure(struct fit *f, enum figure figure, double initial)
{
    f->figures[figure] = arena_array(&f->prep->arena, (size_t)f->width, sizeof *f->figures[figure]);
    for (int64_t i = 0; i < f->width; i++)
        f->figures[figure][i] = initial;
    return f->figures[figure];
}

static int add_value(struct fit_rows *fit, int64_t i, double value, struct error *err)
{
    double **figures = fit->fitted->figures;
    double count = (double)++fit->counts[i];
    if (imputes(fit->column, "mean"))
        figures[FIGURE_FILL][i] += (value - figures[FIGURE_FILL][i]) / count;
    if (fit->column->log1p)
        value = log1p(value);
    if (!isfinite(value))
        return error_set(err, ERR_DATA, "is %g, which has no mean", value);
    if (figures[FIGURE_MEAN])
        figures[FIGURE_MEAN][i] += (value - figures[FIGURE_MEAN][i]) / count;
    if (figures[FIGURE_MIN]) {
        figures[FIGURE_MIN][i] = fmin(figures[FIGURE_MIN][i], value);
        figures[FIGURE_MAX][i] = fmax(figures[FIGURE_MAX][i], value);
    }
    return 0;
}

/* `row` is a buffer for one row. */
static int fit_row(struct fit_rows *fit, bool is_second, double *row, struct error *err)
{
    const struct fit *f = fit->fitted;
    for (int64_t r = 0; r < f->rows; r++) {
        convert_load(fit->raw, r * f->width, f->width, row);
        for (int64_t i = 0; i < f->width; i++) {
            if (fit->missing && fit->missing[r * f->width + i])
                continue;
            if (is_second) {
                double value = fit->column->log1p ? log1p(row[i]) : row[i];
                double from_mean = value - f->figures[FIGURE_MEAN][i];
                f->figures[FIGURE_DEVIATION][i] += from_mean * from_mean / (double)fit->counts[i];
            } else if (add_value(fit, i, row[i], err)) {
                return error_prefix(err, "row %" PRId64 " of the rows selected ", r + 1);
            }
        }
    }
    return 0;
}

/* Two passes, so that a large mean does not swamp the deviation. A constant column keeps deviation
 * 1, so that it becomes 0. */
static int find_moments(struct fit_rows *fit, struct error *err)
{
    struct fit *f = fit->fitted;
    if (imputes(fit->column, "mean"))
        add_figure(f, FIGURE_FILL, 0);
    if (fit->column->norm == NORM_STANDARDIZE) {
        add_figure(f, FIGURE_MEAN, 0);
        add_figure(f, FIGURE_DEVIATION, 0);
    }
    if (fit->column->norm == NORM_SCALE) {
        add_figure(f, FIGURE_MIN, INFINITY);
        add_figure(f, FIGURE_MAX, -INFINITY);
    }
    double *row = mem_array((size_t)f->width, sizeof *row);
    int code = fit_row(fit, false, row, err);
    if (!code && f->figures[FIGURE_DEVIATION])
        code = fit_row(fit, true, row, err);
    mem_free(row);
    for (int64_t i = 0; f->figures[FIGURE_DEVIATION] && i < f->width; i++) {
        double *deviation = &f->figures[FIGURE_DEVIATION][i];
        *deviation = *deviation > 0 ? sqrt(*deviation) : 1;
    }
    return code;
}

/* ---- median and commonest value, column by column ---- */

static int ascending(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Returns the commonest value; the smallest of several. */
static double commonest(const double *sorted, int64_t n)
{
    double best = sorted[0];
    int64_t longest = 0;
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && sorted[end] == sorted[first]; end++)
            ;
        if (end - first > longest) {
            longest = end - first;
            best = sorted[first];
        }
    }
    return best;
}

static int find_fill(struct fit_rows *fit, struct error *err)
{
    const struct fit *f = fit->fitted;
    double *fill = add_figure(fit->fitted, FIGURE_FILL, 0);
    double *values = mem_try((size_t)f->rows * sizeof *values);
    if (!values)
        return error_set(err, ERR_OS, "no memory to sort %" PRId64 " values", f->rows);
    for (int64_t i = 0; i < f->width; i++) {
        int64_t n = 0;
        for (int64_t r = 0; r < f->rows; r++)
            if (!fit->missing || !fit->missing[r * f->width + i])
                convert_load(fit->raw, r * f->width + i, 1, &values[n++]);
        qsort(values, (size_t)n, sizeof *values, ascending);
        fill[i] = !imputes(fit->column, "median") ? commonest(values, n)
                  : n % 2                         ? values[n / 2]
                                                  : (values[n / 2 - 1] + values[n / 2]) / 2;
    }
    mem_free(values);
    return 0;
}

/* ---- categories ---- */

/* Finds the weights of the sorted ids. */
static void balance(struct fit *f, const struct tensor *raw, const bool *missing)
{
    size_t n = f->categories[0].texts.n;
    const int32_t *ids = raw->data;
    int64_t counted = 0;
    f->weights = arena_array(&f->prep->arena, n + 1, sizeof *f->weights);
    for (int64_t r = 0; r < f->rows; r++)
        if (!missing || !missing[r]) {
            f->weights[ids[r]]++;
            counted++;
        }
    for (size_t i = 0; i < n; i++)
        f->weights[i] = f->weights[i] > 0 ? (double)counted / ((double)n * f->weights[i]) : 1;
}

int fit_rows(const struct data_column *column, struct tensor *raw, const bool *missing,
             struct error *err)
{
    struct fit *f = column->fitted;
    f->rows = raw->shape.dims[0];
    f->width = tensor_count(raw) / f->rows;
    if (column->reading == READ_CATEGORY && !column->categories) {
        int32_t **ids = arena_array(&f->prep->arena, (size_t)f->width, sizeof *ids);
        int32_t *items = raw->data;
        for (int64_t i = 0; i < f->width; i++)
            categories_sort(&f->categories[i], &ids[i]);
        for (int64_t r = 0; r < f->rows; r++)
            for (int64_t i = 0; i < f->width; i++)
                if (f->categories[i].texts.n)
                    items[r * f->width + i] = ids[i][items[r * f->width + i]];
    }
    if (column->balance)
        balance(f, raw, missing);
    if (!column->norm && !f->impute)
        return 0;
    struct fit_rows fit = {.column = column, .fitted = f, .raw = raw, .missing = missing};
    fit.counts = mem_array((size_t)f->width, sizeof *fit.counts);
    int code = find_moments(&fit, err);
    for (int64_t i = 0; i < f->width && !code; i++)
        if (!fit.counts[i])
            code = error_set(err, ERR_DATA, "none of the rows selected has a value%s",
                             f->width > 1 ? " in one of the columns" : "");
    if (!code && (imputes(column, "median") || imputes(column, "most")))
        code = find_fill(&fit, err);
    mem_free(fit.counts);
    return code;
}
