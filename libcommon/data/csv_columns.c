/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_columns.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/str.h"
#include "data/cells.h"

struct field_column {
    struct data_column column;
    VEC(int64_t) fields; /* indices from 0 */
    bool is_list;        /* more than one field was meant: a row is a vector */
    struct cells cells;
};

struct csv_columns {
    struct gzfile *file;
    struct csv_reader *reader;
    struct csv_format format;
    struct field_column *columns;
    int n;
    bool started;
    size_t n_fields; /* of every row */
    uint64_t first_line;
    int64_t row;      /* rows seen, selected or not */
    int64_t selected; /* of them */
    int64_t collected;
    struct arena arena; /* the header's names */
    const char **names;
};

int csv_columns_open(const char *path, const struct data_column *columns, int n_columns,
                     const struct csv_format *format, struct csv_columns **result,
                     struct error *err)
{
    struct gzfile *file;
    int code = gzfile_open(path, &file, err);
    if (code)
        return code;
    struct csv_columns *c = mem_alloc(sizeof *c);
    c->file = file;
    c->format = *format;
    c->reader = csv_reader_new(file, format->separator, format->comment);
    c->columns = mem_array((size_t)n_columns, sizeof *c->columns);
    c->n = n_columns;
    for (int i = 0; i < n_columns; i++) {
        struct data_column *column = &c->columns[i].column;
        *column = columns[i];
        if (column->type == DTYPE_INVALID)
            column->type = FLOAT32;
        c->columns[i].cells.type = data_column_computes(column) ? FLOAT64 : column->type;
    }
    *result = c;
    return 0;
}

void csv_columns_free(struct csv_columns *columns)
{
    if (!columns)
        return;
    for (int i = 0; i < columns->n; i++) {
        vec_release(&columns->columns[i].fields);
        cells_release(&columns->columns[i].cells);
    }
    mem_free(columns->columns);
    csv_reader_free(columns->reader);
    gzfile_close(columns->file);
    arena_release(&columns->arena);
    mem_free(columns);
}

struct gzfile *csv_columns_file(struct csv_columns *columns)
{
    return columns->file;
}

int64_t csv_columns_rows(const struct csv_columns *columns)
{
    return columns->collected;
}

int64_t csv_columns_last(const struct csv_columns *columns)
{
    return columns->row;
}

/* ---- the first row ---- */

static bool is_missing(const char *text, size_t n)
{
    static const char *const words[] = {"", "NA", "N/A", "?"};
    for (; n && (*text == ' ' || *text == '\t'); n--)
        text++;
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n == strlen(words[i]) && !memcmp(text, words[i], n))
            return true;
    return false;
}

static bool looks_like_header(const struct csv_row *row)
{
    double number;
    for (size_t i = 0; i < row->n_fields; i++) {
        const struct csv_field *field = &row->fields[i];
        if (is_missing(field->text, field->n) || !number_float64(field->text, field->n, &number))
            return false;
    }
    return true;
}

static bool asks_by_name(const struct csv_columns *columns)
{
    for (int i = 0; i < columns->n; i++)
        for (const char *at = columns->columns[i].column.where; *at; at += *at == ',') {
            size_t n = strcspn(at, ",");
            struct range range;
            if (!range_parse(at, n, &range))
                return true;
            at += n;
        }
    return false;
}

static void keep_names(struct csv_columns *columns, const struct csv_row *row)
{
    columns->names = arena_array(&columns->arena, row->n_fields + 1, sizeof *columns->names);
    for (size_t i = 0; i < row->n_fields; i++)
        columns->names[i] = arena_strndup(&columns->arena, row->fields[i].text, row->fields[i].n);
}

static int bind_name(struct csv_columns *columns, struct field_column *to, const char *text,
                     size_t n, struct error *err)
{
    const char *name = arena_strndup(&columns->arena, text, n);
    for (size_t i = 0; columns->names && i < columns->n_fields; i++)
        if (strcmp(columns->names[i], name) == 0) {
            vec_push(&to->fields, (int64_t)i);
            return 0;
        }
    const char *file = gzfile_name(columns->file);
    if (!columns->names)
        return error_set(err, ERR_DATA, "%s: no column named '%s': there is no header", file, name);
    const char *nearest = str_nearest(name, columns->names);
    return error_set(err, ERR_DATA, "%s: no column named '%s'%s%s%s", file, name,
                     nearest ? " (did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?)" : "");
}

static int bind_range(struct csv_columns *columns, struct field_column *to,
                      const struct range *range, struct error *err)
{
    int64_t last = range->last == RANGE_OPEN ? (int64_t)columns->n_fields : range->last;
    if (last > (int64_t)columns->n_fields || range->first > last)
        return error_set(err, ERR_DATA,
                         "%s:%" PRIu64 ": '%s' wants column %" PRId64 ", but there are %zu",
                         gzfile_name(columns->file), columns->first_line, to->column.name,
                         range->first > last ? range->first : last, columns->n_fields);
    for (int64_t i = range->first; i <= last; i++)
        vec_push(&to->fields, i - 1);
    to->is_list |= range->first != range->last;
    return 0;
}

static int bind_column(struct csv_columns *columns, struct field_column *to, struct error *err)
{
    const char *at = to->column.where;
    for (;; at++) {
        size_t n = strcspn(at, ",");
        struct range range;
        int code = range_parse(at, n, &range) ? bind_range(columns, to, &range, err)
                                              : bind_name(columns, to, at, n, err);
        if (code)
            return code;
        at += n;
        if (!*at)
            break;
        to->is_list = true;
    }
    return 0;
}

static bool names_column(const struct csv_row *row, const char *name, size_t n)
{
    for (size_t i = 0; i < row->n_fields; i++)
        if (row->fields[i].n == n && !memcmp(row->fields[i].text, name, n))
            return true;
    return false;
}

/* Whether all columns that are asked for by name are in the row. */
static bool has_names(const struct csv_columns *columns, const struct csv_row *row)
{
    for (int i = 0; i < columns->n; i++)
        for (const char *at = columns->columns[i].column.where; *at; at += *at == ',') {
            size_t n = strcspn(at, ",");
            struct range range;
            if (!range_parse(at, n, &range) && !names_column(row, at, n))
                return false;
            at += n;
        }
    return true;
}

/* Rows without a header may be of a file whose header is known. */
static int take_names(struct csv_columns *columns, const struct csv_row *row, struct error *err)
{
    const struct prep *prep = columns->format.prep;
    if (!prep || !prep->header)
        return 0;
    if (prep->n_header != row->n_fields)
        return error_set(err, ERR_DATA, "%s:%" PRIu64 ": %zu columns, but %s was fitted to %zu",
                         gzfile_name(columns->file), row->line, row->n_fields, prep->path,
                         prep->n_header);
    columns->names = prep->header;
    return 0;
}

static bool is_header(const struct csv_columns *columns, const struct csv_row *row)
{
    const struct prep *prep = columns->format.prep;
    if (columns->format.header != CSV_HEADER_AUTO)
        return columns->format.header == CSV_HEADER_YES;
    if (!asks_by_name(columns))
        return looks_like_header(row);
    return !prep || !prep->header || has_names(columns, row);
}

/* ---- the columns that were fitted to ---- */

static const char *label(const struct csv_columns *columns, int64_t index, struct arena *arena)
{
    if (columns->names)
        return columns->names[index];
    return arena_printf(arena, "%" PRId64, index + 1);
}

static void keep_labels(struct csv_columns *columns, struct field_column *of)
{
    struct fitted *fit = of->column.fit;
    struct arena *arena = &fit->prep->arena;
    fit->n_columns = of->fields.n;
    fit->columns = arena_array(arena, of->fields.n, sizeof *fit->columns);
    for (size_t i = 0; i < of->fields.n; i++)
        fit->columns[i] = arena_strdup(arena, label(columns, of->fields.items[i], arena));
}

static const char *join(const char *const *texts, size_t n, struct arena *arena)
{
    const char *all = "";
    for (size_t i = 0; i < n; i++)
        all = arena_printf(arena, "%s%s%s", all, i ? "," : "", texts[i]);
    return all;
}

static int check_labels(struct csv_columns *columns, const struct field_column *of,
                        struct error *err)
{
    const struct fitted *prep = of->column.prep;
    struct arena *arena = &columns->arena;
    const char **labels = arena_array(arena, of->fields.n, sizeof *labels);
    bool same = !prep->columns || prep->n_columns == of->fields.n;
    for (size_t i = 0; i < of->fields.n; i++) {
        bool by_position = prep->columns && !prep->prep->header;
        labels[i] = by_position ? arena_printf(arena, "%" PRId64, of->fields.items[i] + 1)
                                : label(columns, of->fields.items[i], arena);
        same = same && (!prep->columns || !strcmp(labels[i], prep->columns[i]));
    }
    if (same)
        return 0;
    return error_set(err, ERR_DATA, "%s: '%s' was fitted to columns %s, not to %s",
                     prep->prep->path, of->column.name, join(prep->columns, prep->n_columns, arena),
                     join(labels, of->fields.n, arena));
}

static void keep_header(struct csv_columns *columns)
{
    struct prep *fit = columns->format.fit;
    if (!fit || !columns->names)
        return;
    fit->n_header = columns->n_fields;
    fit->header = arena_array(&fit->arena, fit->n_header, sizeof *fit->header);
    for (size_t i = 0; i < fit->n_header; i++)
        fit->header[i] = arena_strdup(&fit->arena, columns->names[i]);
}

static int bind_fitted(struct csv_columns *columns, struct field_column *of, struct error *err)
{
    if (of->column.fit)
        keep_labels(columns, of);
    return of->column.prep ? check_labels(columns, of, err) : 0;
}

/* Sets *header if the first row is one. */
static int start(struct csv_columns *columns, const struct csv_row *row, bool *header,
                 struct error *err)
{
    int code = 0;
    *header = is_header(columns, row);
    columns->started = true;
    columns->n_fields = row->n_fields;
    columns->first_line = row->line;
    if (*header)
        keep_names(columns, row);
    else
        code = take_names(columns, row, err);
    keep_header(columns);
    for (int i = 0; i < columns->n && !code; i++) {
        code = bind_column(columns, &columns->columns[i], err);
        if (!code)
            code = bind_fitted(columns, &columns->columns[i], err);
    }
    return code;
}

/* ---- the others ---- */

static int add_field(const struct csv_columns *columns, struct cells *cells,
                     const struct csv_field *field, struct error *err)
{
    const char *missing = columns->format.missing;
    if (cells->type == STRING || !is_missing(field->text, field->n))
        return cells_add(cells, field->text, field->n, err);
    if (missing)
        return cells_add(cells, missing, strlen(missing), err);
    return error_set(err, ERR_DATA, "missing; --missing VALUE puts a value there");
}

static int add_row(struct csv_columns *columns, const struct csv_row *row, struct error *err)
{
    for (int i = 0; i < columns->n; i++) {
        struct field_column *to = &columns->columns[i];
        for (size_t k = 0; k < to->fields.n; k++) {
            int64_t index = to->fields.items[k];
            if (add_field(columns, &to->cells, &row->fields[index], err))
                return error_prefix(err, "%s:%" PRIu64 ": column %" PRId64 ": ",
                                    gzfile_name(columns->file), row->line, index + 1);
        }
    }
    columns->collected++;
    return 0;
}

static int check_width(const struct csv_columns *columns, const struct csv_row *row,
                       struct error *err)
{
    if (row->n_fields == columns->n_fields)
        return 0;
    return error_set(err, ERR_DATA, "%s:%" PRIu64 ": %zu columns, but line %" PRIu64 " has %zu",
                     gzfile_name(columns->file), row->line, row->n_fields, columns->first_line,
                     columns->n_fields);
}

/* The next row that holds data. */
static int next_row(struct csv_columns *columns, struct csv_row *row, bool *more, struct error *err)
{
    bool header = false;
    int code;
    do {
        code = csv_read(columns->reader, row, more, err);
        if (code || !*more)
            return code;
        code = columns->started ? (header = false, check_width(columns, row, err))
                                : start(columns, row, &header, err);
    } while (!code && header);
    return code;
}

int csv_columns_read(struct csv_columns *columns, int64_t shard, int64_t n_shards, bool *more,
                     struct error *err)
{
    *more = false;
    while (columns->row < ranges_last(columns->format.rows)) {
        struct csv_row row;
        int code = next_row(columns, &row, more, err);
        if (code || !*more)
            return code;
        if (!ranges_contain(columns->format.rows, ++columns->row) ||
            columns->selected++ % n_shards != shard)
            continue;
        return add_row(columns, &row, err);
    }
    *more = false;
    return 0;
}

int csv_columns_take(struct csv_columns *columns, struct named_tensor *tensors, struct error *err)
{
    int code = 0;
    for (int i = 0; i < columns->n && !code; i++) {
        struct field_column *from = &columns->columns[i];
        struct shape shape = shape_vector(columns->collected);
        if (from->is_list)
            shape = shape_matrix(columns->collected, (int64_t)from->fields.n);
        struct tensor raw = TENSOR_INIT;
        tensors[i].name = from->column.name;
        code = cells_take(&from->cells, &shape, &raw, err);
        if (!code && data_column_apply(&from->column, &raw, &tensors[i].tensor, err))
            code = error_prefix(err, "%s: ", gzfile_name(columns->file));
    }
    columns->collected = 0;
    return code;
}
