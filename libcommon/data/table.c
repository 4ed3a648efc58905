/* SPDX-License-Identifier: Apache-2.0 */
#include "data/table.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "data/rows.h"
#include "wire/idx.h"
#include "wire/npy.h"
#include "wire/npz.h"

void table_release(struct table *table)
{
    for (int i = 0; i < table->n; i++)
        tensor_release(&table->columns[i].tensor);
    tensor_release(&table->values);
    mem_free(table->columns);
    mem_free(table->source);
    arena_release(&table->arena);
    *table = (struct table){0};
}

static void table_init(struct table *table, int n_columns, const char *source)
{
    *table = (struct table){.n = n_columns};
    table->columns = mem_array((size_t)n_columns, sizeof *table->columns);
    table->source = mem_strdup(source);
}

int table_from_csv(struct csv_columns *from, int n_columns, struct table *table, struct error *err)
{
    table_init(table, n_columns, row_source_name(csv_columns_source(from)));
    bool more = true;
    int code = 0;
    while (more && !code)
        code = csv_columns_read(from, 0, 1, &more, err);
    table->rows = csv_columns_rows(from);
    table->last_row = csv_columns_last(from);
    if (!code && table->rows == 0)
        code = error_set(err, ERR_DATA, "%s: no rows", table->source);
    if (!code)
        code = csv_columns_take(from, table->columns, err);
    if (code)
        table_release(table);
    return code;
}

/* Keeps only the selected rows. */
static int select_rows(const struct table *table, struct tensor *raw, const struct row_choice *rows,
                       struct error *err)
{
    if (!rows->ranges->n && !rows->split)
        return 0;
    int64_t n = 0, all = raw->shape.dims[0];
    bool by_value = rows->split && rows->split->where;
    if (by_value && (table->values.shape.rank != 1 || table->values.shape.dims[0] != all))
        return error_set(err, ERR_DATA, "'%s' has no value for each of %" PRId64 " rows",
                         rows->split->where, all);
    int64_t *indices = mem_try((size_t)all * sizeof *indices);
    if (!indices)
        return error_set(err, ERR_OS, "no memory for %" PRId64 " row numbers", all);
    struct split *split = rows->split ? split_new(rows->split) : NULL;
    struct str value = STR_INIT;
    for (int64_t i = 0; i < all; i++) {
        str_clear(&value);
        if (by_value)
            tensor_print_plain(&value, &table->values, i);
        if ((!split || split_takes(split, str_text(&value), value.n)) &&
            ranges_contain(rows->ranges, i + 1))
            indices[n++] = i;
    }
    split_free(split);
    str_release(&value);
    struct tensor selected = TENSOR_INIT;
    int code = rows_gather(raw, indices, n, &selected, err);
    mem_free(indices);
    if (!code) {
        tensor_release(raw);
        *raw = selected;
    }
    return code;
}

/* Takes ownership of `raw`. */
static int apply(const struct data_column *column, struct tensor *raw, struct tensor *fed,
                 struct error *err)
{
    if (!data_column_takes_gaps(column) && raw->type != STRING)
        return data_column_apply(column, raw, NULL, fed, err);
    /* Process the array's elements as if they were text in a file: that code handles elements that
     * are no numbers. */
    int64_t count = tensor_count(raw), rows = raw->shape.dims[0];
    struct data_column typed = *column;
    struct column_fields fields;
    struct str text = STR_INIT;
    typed.type = data_column_type(column, raw->type);
    fields_init(&fields, &typed, NULL);
    int64_t width = rows ? count / rows : 1;
    int code = fields_start(&fields, width, err);
    for (int64_t i = 0; i < count && !code; i++) {
        str_clear(&text);
        if (raw->type == STRING)
            tensor_print_plain(&text, raw, i);
        else
            str_append_float64(&text, tensor_get_float64(raw, i));
        if (fields_add(&fields, i % width, str_text(&text), text.n, err))
            code = error_prefix(err, "row %" PRId64 " of the rows selected: ", i / width + 1);
    }
    if (code)
        error_prefix(err, "'%s': ", column->name);
    else
        code = fields_take(&fields, &raw->shape, fed, err);
    fields_release(&fields);
    str_release(&text);

    tensor_release(raw);
    return code;
}

/* Makes the values that were read column i. Takes ownership of `raw`. */
static int set_column(struct table *table, int i, const struct data_column *column,
                      struct tensor *raw, const struct row_choice *rows, struct error *err)
{
    table->columns[i].name = column->name;
    int code;
    if (raw->shape.rank == 0) {
        code = error_set(err, ERR_DATA, "a scalar has no rows");
    } else {
        table->last_row = raw->shape.dims[0];
        code = select_rows(table, raw, rows, err);
    }
    if (code) {
        tensor_release(raw);
        return code;
    }
    code = apply(column, raw, &table->columns[i].tensor, err);
    if (code)
        return code;
    int64_t n = table->columns[i].tensor.shape.dims[0];
    if (n == 0)
        return error_set(err, ERR_DATA, "no rows");
    if (i > 0 && n != table->rows)
        return error_set(err, ERR_DATA, "'%s' has %" PRId64 " rows, but '%s' has %" PRId64,
                         column->name, n, table->columns[0].name, table->rows);
    table->rows = n;
    return 0;
}

int table_from_files(enum table_format format, const struct data_column *columns, int n_columns,
                     const struct row_choice *rows, struct table *table, struct error *err)
{
    struct str source = STR_INIT;
    for (int i = 0; i < n_columns; i++)
        str_printf(&source, "%s%s", i ? "," : "", columns[i].where);
    table_init(table, n_columns, str_text(&source));
    str_release(&source);
    int code = 0;
    for (int i = 0; i < n_columns && !code; i++) {
        struct tensor raw = TENSOR_INIT;
        struct gzfile *file;
        if (format == TABLE_NPY) {
            code = npy_read(columns[i].where, &raw, err);
        } else if (!(code = gzfile_open(columns[i].where, &file, err))) {
            code = idx_read(file, &raw, err);
            gzfile_close(file);
        }
        if (!code && set_column(table, i, &columns[i], &raw, rows, err))
            code = error_prefix(err, "%s: ", columns[i].where);
    }
    if (code)
        table_release(table);
    return code;
}

static int read_array(struct npz *npz, const char *name, struct tensor *raw, struct error *err)
{
    int index;
    return npz_find(npz, name, &index, err) ? err->code : npz_read(npz, index, raw, err);
}

/* Reads array `where` of the file as column i. */
static int set_array(struct table *table, int i, const struct data_column *column, struct npz *npz,
                     const struct row_choice *rows, struct error *err)
{
    struct tensor raw = TENSOR_INIT;
    if (read_array(npz, column->where, &raw, err))
        return err->code;
    return set_column(table, i, column, &raw, rows, err) ? error_prefix(err, "%s: ", npz->name) : 0;
}

int table_from_npz(const char *path, const struct data_column *columns, int n_columns,
                   const struct row_choice *rows, struct table *table, struct error *err)
{
    struct npz npz;
    int code = npz_open(path, &npz, err);
    if (code)
        return code;
    table_init(table, n_columns ? n_columns : npz.n, path);
    if (rows->split && rows->split->where)
        code = read_array(&npz, rows->split->where, &table->values, err);
    if (n_columns == 0) {
        /* All arrays as they are. */
        for (int i = 0; i < npz.n && !code; i++) {
            const char *name = arena_strdup(&table->arena, npz_name(&npz, i));
            if (!str_is_printable(name, strlen(name))) {
                code =
                    error_set(err, ERR_DATA, "%s: array '%s' has a name that is not fit to print",
                              npz.name, name);
                break;
            }
            struct data_column column = {
                .name = name, .where = name, .scale = 1, .shape = SHAPE_ANY};
            code = set_array(table, i, &column, &npz, rows, err);
        }
    }
    for (int i = 0; i < n_columns && !code; i++)
        code = set_array(table, i, &columns[i], &npz, rows, err);
    if (!code && table->n == 0)
        code = error_set(err, ERR_DATA, "%s: no arrays", npz.name);
    npz_close(&npz);
    if (code)
        table_release(table);
    return code;
}
