/* SPDX-License-Identifier: Apache-2.0 */
#include "data/fields.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/number.h"

void fields_init(struct column_fields *fields, const struct data_column *column,
                 const char *missing)
{
    *fields = (struct column_fields){.column = *column, .missing = missing};
    fields->column.type = data_column_type(column, FLOAT32);
    if (column->reading == READ_CATEGORY || column->reading == READ_HASH)
        fields->cells.type = INT32;
    else if (column->reading == READ_DATE || data_column_computes(column))
        fields->cells.type = FLOAT64;
    else
        fields->cells.type = fields->column.type;
    fields->cells.are_amounts = column->amount;
    fields->are_floats = column->reading == READ_NUMBER &&
                         (fields->cells.type == FLOAT32 || fields->cells.type == FLOAT64);
}

void fields_release(struct column_fields *fields)
{
    cells_release(&fields->cells);
    vec_release(&fields->gaps.at);
}

/* ---- categories ---- */

static int list_categories(const struct data_column *column, struct categories *to,
                           struct error *err)
{
    for (const char *at = column->categories; at; at = *at ? at + 1 : NULL) {
        size_t n = strcspn(at, ",");
        size_t before = to->texts.n;
        int32_t id;
        if (categories_id(to, at, n, true, &id, err))
            return err->code;
        if (to->texts.n == before)
            return error_set(err, ERR_USAGE, "category=%s: '%.*s' is given twice",
                             column->categories, (int)n, at);
        at += n;
    }
    return 0;
}

int fields_start(struct column_fields *fields, int64_t width, struct error *err)
{
    const struct data_column *column = &fields->column;
    const struct fit *f = column->is_known ? column->fitted : NULL;
    int64_t fitted_to = !f ? width : f->categories ? (int64_t)f->n_columns : f->width;
    fields->width = width;
    if (column->balance && width != 1)
        return error_set(err, ERR_DATA, "balance wants one column, not %" PRId64, width);
    if (fitted_to != width)
        return error_set(err, ERR_DATA,
                         "%s was fitted to rows of %" PRId64 " elements, not of %" PRId64,
                         f->prep->path, fitted_to, width);
    if (column->reading != READ_CATEGORY)
        return 0;

    if (column->is_known) {
        if (!column->categories)
            return 0;
        /* A list that is given again must equal the fitted one. */
        struct categories listed = {0};
        const struct categories *fitted = column->fitted->categories;
        int code = list_categories(column, &listed, err);
        bool same = !code && listed.texts.n == fitted->texts.n;
        for (size_t i = 0; same && i < listed.texts.n; i++)
            same = !strcmp(listed.texts.items[i], fitted->texts.items[i]);
        if (!code && !same)
            code = error_set(err, ERR_DATA, "%s: has other categories than category=%s",
                             column->fitted->prep->path, column->categories);
        categories_release(&listed);
        return code;
    }
    fit_add_categories(column->fitted, (size_t)fields->width);
    for (int64_t k = 0; k < fields->width && !err->code; k++)
        list_categories(column, &column->fitted->categories[k], err);
    return err->code;
}

/* ---- fields ---- */

static int add_category(struct column_fields *fields, int64_t k, const char *text, size_t n,
                        struct error *err)
{
    const struct data_column *column = &fields->column;
    struct categories *categories = &column->fitted->categories[k];
    bool is_open = !column->is_known && !column->categories;
    int32_t id;
    if (categories_id(categories, text, n, is_open, &id, err))
        return err->code;
    if (id < 0 && column->refuses_unseen)
        return cell_refuse(text, n, "is none of the categories", err);
    if (id < 0)
        id = (int32_t)categories->texts.n;
    return cells_add_bytes(&fields->cells, &id, sizeof id, err);
}

static int add_field(struct column_fields *fields, int64_t k, const char *text, size_t n,
                     struct error *err)
{
    double seconds;
    int32_t id;
    if (fields->column.reading == READ_NUMBER)
        return cells_add(&fields->cells, text, n, err);
    cell_trim(&text, &n);
    switch (fields->column.reading) {
    case READ_CATEGORY:
        return add_category(fields, k, text, n, err);
    case READ_HASH:
        id = (int32_t)(hash_bytes(text, n, 0) % (uint64_t)fields->column.buckets);
        return cells_add_bytes(&fields->cells, &id, sizeof id, err);
    default:
        if (!date_parse(text, n, &seconds))
            return cell_refuse(text, n, "is no date as 2024-02-29 or 2024-02-29T13:45:30Z", err);
        seconds = date_part(seconds, fields->column.date_part);
        return cells_add_bytes(&fields->cells, &seconds, sizeof seconds, err);
    }
}

/* Fast path for plain numbers, as most fields are. A number other than NaN has a value, whatever
 * the column does with missing ones. */
static bool add_number(struct column_fields *fields, const char *text, size_t n)
{
    struct cells *cells = &fields->cells;
    size_t bytes = cells->type == FLOAT32 ? sizeof(float) : sizeof(double);
    if (!n || (unsigned char)(text[n - 1] - '0') > 9 || cells->capacity - cells->bytes < bytes)
        return false;
    if (cells->type == FLOAT32) {
        float value;
        if (number_float32(text, n, &value))
            return false;
        memcpy(cells->data + cells->bytes, &value, sizeof value);
    } else {
        double value;
        if (number_float64(text, n, &value))
            return false;
        memcpy(cells->data + cells->bytes, &value, sizeof value);
    }
    cells->bytes += bytes;
    return true;
}

int fields_add(struct column_fields *fields, int64_t k, const char *text, size_t n,
               struct error *err)
{
    if (fields->are_floats && add_number(fields, text, n))
        return 0;
    bool is_missing = fields->cells.type != STRING &&
                      (cell_is_missing(text, n) ||
                       (data_column_takes_gaps(&fields->column) && cell_is_nan(text, n)));
    if (!is_missing)
        return add_field(fields, k, text, n, err);
    /* A part of the column, or an option, gives the value of a missing field. */
    static const double nothing; /* of any type */
    const struct data_column *column = &fields->column;
    bool is_found = column->fitted && column->fitted->impute;
    const char *value = column->impute ? column->impute : fields->missing;
    if (!value)
        return error_set(err, ERR_DATA, "missing; --missing VALUE puts a value there");
    if (column->norm || column->impute || column->flag)
        vec_push(&fields->gaps.at,
                 (int64_t)(fields->cells.bytes / dtype_bytes(fields->cells.type)));
    if (is_found)
        return cells_add_bytes(&fields->cells, &nothing, dtype_bytes(fields->cells.type), err);
    if (column->impute || strcmp(value, FIELD_MEAN) != 0)
        return add_field(fields, k, value, strlen(value), err)
                   ? error_prefix(err,
                                  column->impute ? "missing; impute: " : "missing; --missing: ")
                   : 0;
    fields->gaps.are_means = true;
    return column->norm == NORM_STANDARDIZE
               ? cells_add(&fields->cells, "0", 1, err)
               : error_set(err, ERR_DATA,
                           "missing; only what is standardized has a mean to put there");
}

int fields_take(struct column_fields *fields, const struct shape *shape, struct tensor *tensor,
                struct error *err)
{
    struct tensor raw = TENSOR_INIT;
    int code = cells_take(&fields->cells, shape, &raw, err);
    if (!code)
        code = data_column_apply(&fields->column, &raw, &fields->gaps, tensor, err);
    fields->gaps.at.n = 0;
    return code;
}
