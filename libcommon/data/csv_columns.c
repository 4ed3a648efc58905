/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_columns.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/str.h"
#include "data/csv_header.h"
#include "data/csv_where.h"
#include "data/fields.h"

#define SAID_BYTES 200 /* of a header in messages, approximately */

struct field_column {
    struct column_fields fields;
    struct csv_places places;
};

struct csv_columns {
    struct row_source *source;
    struct csv_format format;
    struct field_column *columns;
    int n;
    bool started;
    bool told_comments;
    size_t n_fields; /* of every row */
    uint64_t first_line;
    int64_t row;      /* rows seen, selected or not */
    int64_t selected; /* selected rows */
    int64_t collected;
    struct split *split; /* NULL: none */
    int64_t split_field; /* field that it examines; -1: none */
    struct csv_header header;
    VEC(size_t) texts; /* fields of the first row that are words, if it was taken as data */
};

int csv_columns_open(const char *path, const struct data_column *columns, int n_columns,
                     const struct csv_format *format, struct csv_columns **result,
                     struct error *err)
{
    struct row_source *source, *right;
    if (row_source_open(path, format->rows_of, format->separator, format->comment, &source, err))
        return err->code;
    if (format->join && row_source_open(format->join, format->rows_of, format->separator,
                                        format->comment, &right, err)) {
        row_source_free(source);
        return err->code;
    }
    struct csv_columns *c = mem_alloc(sizeof *c);
    c->source = source;
    if (format->join)
        row_source_join(source, right);
    c->format = *format;
    if (format->rows_of == ROWS_JSONL)
        c->format.header = CSV_HEADER_YES;
    if (format->rows_of == ROWS_JSONL && format->prep && !format->join)
        row_source_expect(source, format->prep->header, format->prep->n_header);
    c->columns = mem_array((size_t)n_columns, sizeof *c->columns);
    c->n = n_columns;
    c->split = format->rows.split ? split_new(format->rows.split) : NULL;
    c->split_field = -1;
    for (int i = 0; i < n_columns; i++)
        fields_init(&c->columns[i].fields, &columns[i], format->missing);
    *result = c;
    return 0;
}

void csv_columns_free(struct csv_columns *columns)
{
    if (!columns)
        return;
    for (int i = 0; i < columns->n; i++) {
        vec_release(&columns->columns[i].places.at);
        fields_release(&columns->columns[i].fields);
    }
    mem_free(columns->columns);
    row_source_free(columns->source);
    split_free(columns->split);
    csv_header_release(&columns->header);
    vec_release(&columns->texts);
    mem_free(columns);
}

struct row_source *csv_columns_source(struct csv_columns *columns)
{
    return columns->source;
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

/* Returns the column whose values a split uses; NULL: none. */
static const char *split_where(const struct csv_columns *columns)
{
    return columns->split ? columns->format.rows.split->where : NULL;
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

/* Stores in column->fitted which columns these are, or, if known, checks them: by name, or by
 * position if there was no header. Does nothing for a column that is not fitted. */
static int bind_labels(const struct data_column *column, const struct csv_places *places,
                       const struct csv_header *header, struct error *err)
{
    struct fit *f = column->fitted;
    if (!f || (column->is_known && !f->columns))
        return 0;
    struct arena *arena = &f->prep->arena;
    size_t n = places->at.n;
    /* The name, or the position if there is no header now or there was none when fitting. */
    const char **labels = arena_array(arena, places->at.n, sizeof *labels);
    for (size_t i = 0; i < places->at.n; i++)
        labels[i] = (column->is_known && !f->prep->header) || !header->names
                        ? arena_printf(arena, "%" PRId64, places->at.items[i] + 1)
                        : arena_strdup(arena, header->names[places->at.items[i]]);

    if (!column->is_known) {
        f->n_columns = n;
        f->columns = labels;
        return 0;
    }
    bool same = f->n_columns == n;
    for (size_t i = 0; same && i < n; i++)
        same = !strcmp(labels[i], f->columns[i]);
    return same ? 0
                : error_set(err, ERR_DATA, "%s: '%s' was fitted to columns %s, not to %s",
                            f->prep->path, column->name, join(f->columns, f->n_columns, arena),
                            join(labels, n, arena));
}

static void keep_labels(struct prep *prep, const struct csv_header *header)
{
    if (!header->names)
        return;
    prep->n_header = header->n;
    prep->header = arena_array(&prep->arena, header->n, sizeof *prep->header);
    for (size_t i = 0; i < header->n; i++)
        prep->header[i] = arena_strdup(&prep->arena, header->names[i]);
}

static int bind_column(struct csv_columns *columns, int i, struct error *err)
{
    struct field_column *to = &columns->columns[i];
    const struct data_column *column = &to->fields.column;
    if (csv_where_bind(column, &columns->header, columns->n_fields, &to->places, err))
        return error_prefix(err, "%s:%" PRIu64 ": ", row_source_file(columns->source),
                            columns->first_line);
    if (bind_labels(column, &to->places, &columns->header, err))
        return err->code;
    return fields_start(&to->fields, (int64_t)to->places.at.n, err)
               ? error_prefix(err, "'%s': ", column->name)
               : 0;
}

/* Returns whether the header has all columns requested by name. */
static bool has_names(const struct csv_columns *columns)
{
    const struct prep *prep = columns->format.prep;
    struct csv_header known = {0};
    bool all = true;
    csv_header_share(&known, prep->header, prep->n_header);
    for (int i = 0; i < columns->n; i++)
        all = all &&
              csv_where_is_in(columns->columns[i].fields.column.where, &columns->header, &known);
    if (split_where(columns))
        all = all && csv_where_is_in(split_where(columns), &columns->header, &known);
    csv_header_release(&known);
    return all;
}

/* Returns whether the row, whose names were stored, is a header. */
static bool is_header(struct csv_columns *columns, const struct csv_row *row)
{
    const struct prep *prep = columns->format.prep;
    if (columns->format.header != CSV_HEADER_AUTO)
        return columns->format.header == CSV_HEADER_YES;
    bool by_name = split_where(columns) && csv_where_has_names(split_where(columns));
    for (int i = 0; i < columns->n && !by_name; i++)
        by_name = csv_where_has_names(columns->columns[i].fields.column.where);
    if (!by_name) {
        /* The appearance of the row decides. */
        if (csv_row_is_header(row)) {
            struct str line = STR_INIT;
            str_printf(&line,
                       "%s:%" PRIu64 ": taken as the names of the columns (--header yes or no says "
                       "what it is): ",
                       row_source_file(columns->source), row->line);
            size_t i = 0;
            for (; i < columns->header.n && line.n < SAID_BYTES; i++)
                str_printf(&line, "%s%s", i ? "," : "", columns->header.names[i]);
            str_append(&line, i < columns->header.n ? ",..." : "");
            log_tell(columns->format.say, columns->format.say_context, "%s", line.data);
            str_release(&line);
            return true;
        }
        for (size_t i = 0; i < row->n_fields; i++)
            if (cell_kind(row->fields[i].text, row->fields[i].n) == CELL_TEXT)
                vec_push(&columns->texts, i);
        return false;
    }
    /* With other columns than those known, a row that looks like their names is that. */
    return !prep || !prep->header || has_names(columns) ||
           (row->n_fields != prep->n_header && csv_row_is_header(row));
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
        /* Rows without a header may be from a file whose header is known. */
        const struct prep *prep = columns->format.prep;
        bool is_known = prep && prep->header;
        csv_header_share(&columns->header, NULL, 0);
        if (is_known && prep->n_header != row->n_fields)
            code = error_set(err, ERR_DATA, "%s:%" PRIu64 ": %zu columns, but %s was fitted to %zu",
                             row_source_file(columns->source), row->line, row->n_fields, prep->path,
                             prep->n_header);
        else if (is_known)
            csv_header_share(&columns->header, prep->header, prep->n_header);
    }
    if (columns->format.fit)
        keep_labels(columns->format.fit, &columns->header);
    for (int i = 0; i < columns->n && !code; i++)
        code = bind_column(columns, i, err);
    if (code)
        return code;
    const struct data_column column = {.name = "--stratify or --group",
                                       .where = split_where(columns)};
    struct csv_places places = {0};
    if (!column.where)
        return 0;
    if (csv_where_bind(&column, &columns->header, columns->n_fields, &places, err))
        error_prefix(err, "%s:%" PRIu64 ": ", row_source_file(columns->source),
                     columns->first_line);
    else if (places.at.n > 1)
        error_set(err, ERR_USAGE, "%s: '%s' is more than one column", column.name, column.where);
    else
        columns->split_field = places.at.items[0];
    vec_release(&places.at);
    return err->code;
}

/* ---- further rows ---- */

/* Reads the next row of data. */
static int next_row(struct csv_columns *columns, struct csv_row *row, bool *more, struct error *err)
{
    bool header;
    int code;
    do {
        header = false;
        code = row_source_read(columns->source, row, more, err);
        if (code || !*more)
            return code;
        if (columns->started && row->comment && !columns->told_comments) {
            columns->told_comments = true;
            log_tell(columns->format.say, columns->format.say_context,
                     "%s:%" PRIu64 ": passed over as a comment, and so are others "
                     "that begin with '%c' (--comment '' takes them as rows)",
                     row_source_file(columns->source), row->comment, columns->format.comment);
        }
        if (!columns->started)
            code = start(columns, row, &header, err);
        else if (row->n_fields != columns->n_fields)
            code = error_set(err, ERR_DATA,
                             "%s:%" PRIu64 ": %zu columns, but line %" PRIu64 " has %zu",
                             row_source_file(columns->source), row->line, row->n_fields,
                             columns->first_line, columns->n_fields);
        if (!code && header)
            row_source_set_header(columns->source);
    } while (!code && header);
    if (!code && columns->texts.n && columns->first_line != row->line) {
        /* A word in the first row above a number in the second is usually a name. */
        for (size_t i = 0; i < columns->texts.n; i++) {
            size_t at = columns->texts.items[i];
            enum cell_kind kind = cell_kind(row->fields[at].text, row->fields[at].n);
            if (kind != CELL_NUMBER && kind != CELL_BOOL)
                continue;
            log_tell(columns->format.say, columns->format.say_context,
                     "%s:%" PRIu64 ": taken as data, though column %zu is a word there and a "
                     "number in line %" PRIu64 "; if it names the columns, say --header yes",
                     row_source_file(columns->source), columns->first_line, at + 1, row->line);
            break;
        }
        columns->texts.n = 0;
    }
    return code;
}

/* Called for every row, as a split also counts the rows that it leaves out. */
static bool is_chosen(struct csv_columns *columns, const struct csv_row *row)
{
    const char *value = "";
    size_t n = 0;
    bool in_ranges = ranges_contain(columns->format.rows.ranges, ++columns->row);
    if (!columns->split)
        return in_ranges;
    if (columns->split_field >= 0) {
        value = row->fields[columns->split_field].text;
        n = row->fields[columns->split_field].n;
        cell_trim(&value, &n);
    }
    return split_takes(columns->split, value, n) && in_ranges;
}

int csv_columns_read(struct csv_columns *columns, int64_t shard, int64_t n_shards, bool *more,
                     struct error *err)
{
    *more = false;
    while (columns->row < ranges_last(columns->format.rows.ranges)) {
        struct csv_row row;
        int code = next_row(columns, &row, more, err);
        if (code || !*more)
            return code;
        if (is_chosen(columns, &row) && columns->selected++ % n_shards == shard) {
            for (int i = 0; i < columns->n; i++) {
                struct field_column *to = &columns->columns[i];
                for (size_t k = 0; k < to->places.at.n; k++) {
                    int64_t index = to->places.at.items[k];
                    const struct csv_field *field = &row.fields[index];
                    if (fields_add(&to->fields, (int64_t)k, field->text, field->n, err))
                        return error_prefix(err, "%s:%" PRIu64 ": column %" PRId64 ": ",
                                            row_source_file(columns->source), row.line, index + 1);
                }
            }
            columns->collected++;
            return 0;
        }
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
        if (from->places.is_list)
            shape = shape_matrix(columns->collected, (int64_t)from->places.at.n);
        tensors[i].name = from->fields.column.name;
        if (fields_take(&from->fields, &shape, &tensors[i].tensor, err))
            code = error_prefix(err, "%s: ", row_source_file(columns->source));
    }
    columns->collected = 0;
    return code;
}
