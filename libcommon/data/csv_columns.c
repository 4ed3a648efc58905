/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_columns.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/str.h"
#include "data/cells.h"
#include "data/csv_header.h"

#define SAID_BYTES 200 /* of a header, about */

struct field_column {
    struct data_column column;
    VEC(int64_t) fields; /* indices from 0 */
    bool is_list;        /* more than one field was meant: a row is a vector */
    struct cells cells;
    struct data_gaps gaps;
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
    struct csv_header header;
    VEC(size_t) texts; /* fields of the first row that are words, if it was taken for data */
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
        vec_release(&columns->columns[i].gaps.at);
    }
    mem_free(columns->columns);
    csv_reader_free(columns->reader);
    gzfile_close(columns->file);
    csv_header_release(&columns->header);
    vec_release(&columns->texts);
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

static int bind_name(struct csv_columns *columns, struct field_column *to, const char *text,
                     size_t n, struct error *err)
{
    int64_t place;
    if (csv_header_find(&columns->header, text, n, &place, err))
        return error_prefix(err, "%s: ", gzfile_name(columns->file));
    vec_push(&to->fields, place);
    return 0;
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

/* Whether all columns that are asked for by name are in the header. */
static bool has_names(const struct csv_columns *columns)
{
    for (int i = 0; i < columns->n; i++)
        for (const char *at = columns->columns[i].column.where; *at; at += *at == ',') {
            size_t n = strcspn(at, ",");
            struct range range;
            if (!range_parse(at, n, &range) && !csv_header_has(&columns->header, at, n))
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
    csv_header_share(&columns->header, prep->header, prep->n_header);
    return 0;
}

static void say(const struct csv_columns *columns, const char *text)
{
    if (columns->format.say)
        columns->format.say(columns->format.say_context, text);
}

static void say_names(const struct csv_columns *columns, const struct csv_row *row)
{
    struct str line = STR_INIT;
    str_printf(&line,
               "%s:%" PRIu64 ": taken as the names of the columns (--header yes or no says "
               "what it is): ",
               gzfile_name(columns->file), row->line);
    size_t i = 0;
    for (; i < columns->header.n && line.n < SAID_BYTES; i++)
        str_printf(&line, "%s%s", i ? "," : "", columns->header.names[i]);
    str_append(&line, i < columns->header.n ? ",..." : "");
    say(columns, line.data);
    str_release(&line);
}

/* Of a row by whose look it is decided; its names have been taken. */
static bool looks_like_header(struct csv_columns *columns, const struct csv_row *row)
{
    if (csv_row_is_header(row)) {
        say_names(columns, row);
        return true;
    }
    for (size_t i = 0; i < row->n_fields; i++)
        if (cell_kind(row->fields[i].text, row->fields[i].n) == CELL_TEXT)
            vec_push(&columns->texts, i);
    return false;
}

/* A word in the first row where the second has a number is a name, more often than not. */
static void check_second(struct csv_columns *columns, const struct csv_row *row)
{
    for (size_t i = 0; i < columns->texts.n; i++) {
        size_t at = columns->texts.items[i];
        enum cell_kind kind = cell_kind(row->fields[at].text, row->fields[at].n);
        if (kind != CELL_NUMBER && kind != CELL_BOOL)
            continue;
        struct str line = STR_INIT;
        str_printf(&line,
                   "%s:%" PRIu64 ": taken as data, though column %zu is a word there and a number "
                   "in line %" PRIu64 "; if it names the columns, say --header yes",
                   gzfile_name(columns->file), columns->first_line, at + 1, row->line);
        say(columns, line.data);
        str_release(&line);
        break;
    }
    columns->texts.n = 0;
}

/* The names of the row have been taken. */
static bool is_header(struct csv_columns *columns, const struct csv_row *row)
{
    const struct prep *prep = columns->format.prep;
    if (columns->format.header != CSV_HEADER_AUTO)
        return columns->format.header == CSV_HEADER_YES;
    if (!asks_by_name(columns))
        return looks_like_header(columns, row);
    return !prep || !prep->header || has_names(columns);
}

/* ---- the columns that were fitted to ---- */

static const char *label(const struct csv_columns *columns, int64_t index, struct arena *arena)
{
    if (columns->header.names)
        return columns->header.names[index];
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
    struct str all = STR_INIT;
    for (size_t i = 0; i < n; i++)
        str_printf(&all, "%s%s", i ? "," : "", texts[i]);
    const char *joined = arena_strdup(arena, str_text(&all));
    str_release(&all);
    return joined;
}

static int check_labels(struct csv_columns *columns, const struct field_column *of,
                        struct error *err)
{
    const struct fitted *prep = of->column.prep;
    struct arena *arena = &columns->header.arena;
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
    if (!fit || !columns->header.names)
        return;
    fit->n_header = columns->n_fields;
    fit->header = arena_array(&fit->arena, fit->n_header, sizeof *fit->header);
    for (size_t i = 0; i < fit->n_header; i++)
        fit->header[i] = arena_strdup(&fit->arena, columns->header.names[i]);
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
    columns->started = true;
    columns->n_fields = row->n_fields;
    columns->first_line = row->line;
    csv_header_take(&columns->header, row);
    *header = is_header(columns, row);
    if (!*header) {
        csv_header_share(&columns->header, NULL, 0);
        code = take_names(columns, row, err);
    }
    keep_header(columns);
    for (int i = 0; i < columns->n && !code; i++) {
        code = bind_column(columns, &columns->columns[i], err);
        if (!code)
            code = bind_fitted(columns, &columns->columns[i], err);
    }
    return code;
}

/* ---- the others ---- */

static int add_missing(const struct csv_columns *columns, struct field_column *to,
                       struct error *err)
{
    const char *missing = columns->format.missing;
    if (!missing)
        return error_set(err, ERR_DATA, "missing; --missing VALUE puts a value there");
    if (to->column.standardize)
        vec_push(&to->gaps.at, (int64_t)(to->cells.bytes / dtype_bytes(to->cells.type)));
    if (strcmp(missing, CSV_MISSING_MEAN) != 0)
        return cells_add(&to->cells, missing, strlen(missing), err)
                   ? error_prefix(err, "missing; --missing: ")
                   : 0;
    to->gaps.are_means = true;
    return to->column.standardize
               ? cells_add(&to->cells, "0", 1, err)
               : error_set(err, ERR_DATA,
                           "missing; only what is standardized has a mean to put there");
}

static int add_field(const struct csv_columns *columns, struct field_column *to,
                     const struct csv_field *field, struct error *err)
{
    if (to->cells.type == STRING || !cell_is_missing(field->text, field->n))
        return cells_add(&to->cells, field->text, field->n, err);
    return add_missing(columns, to, err);
}

static int add_row(struct csv_columns *columns, const struct csv_row *row, struct error *err)
{
    for (int i = 0; i < columns->n; i++) {
        struct field_column *to = &columns->columns[i];
        for (size_t k = 0; k < to->fields.n; k++) {
            int64_t index = to->fields.items[k];
            if (add_field(columns, to, &row->fields[index], err))
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
    if (!code && columns->texts.n && columns->first_line != row->line)
        check_second(columns, row);
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
        if (!code && data_column_apply(&from->column, &raw, &from->gaps, &tensors[i].tensor, err))
            code = error_prefix(err, "%s: ", gzfile_name(columns->file));
        from->gaps.at.n = 0;
    }
    columns->collected = 0;
    return code;
}
