/* SPDX-License-Identifier: Apache-2.0 */
#include "data/describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/str.h"
#include "data/csv_header.h"

#define CLASSES_MAX 20 /* most different whole numbers taken as classes */
#define ONEHOT_MAX 50  /* most different texts taken as categories */

const char *column_type_name(enum column_type type)
{
    static const char *const names[] = {"empty", "whole", "number", "amount",
                                        "bool",  "date",  "text"};
    return names[type];
}

void description_release(struct table_description *description)
{
    for (size_t i = 0; i < description->columns.n; i++) {
        vec_release(&description->columns.items[i].distinct);
        map_release(&description->columns.items[i].places);
        str_release(&description->columns.items[i].first);
        str_release(&description->columns.items[i].last);
    }
    vec_release(&description->columns);
    arena_release(&description->arena);
}

/* ---- reading ---- */

static int by_rows(const void *a, const void *b)
{
    const struct value_count *one = a, *other = b;
    int order = (one->rows < other->rows) - (one->rows > other->rows);
    return order ? order : strcmp(one->text, other->text);
}

int describe_rows(struct row_source *source, enum csv_header_choice header,
                  struct table_description *d, struct error *err)
{
    struct csv_row row;
    bool more = true, is_first = true;
    while (!row_source_read(source, &row, &more, err) && more) {
        bool may_be_header = header != CSV_HEADER_NO;
        if (is_first)
            d->has_header = may_be_header && (header == CSV_HEADER_YES || csv_row_is_header(&row));
        for (size_t i = 0; is_first && i < row.n_fields; i++) {
            const char *text = row.fields[i].text;
            size_t n = row.fields[i].n;
            cell_trim(&text, &n);
            struct column_summary column = {.min = NAN, .max = NAN, .mean = NAN};
            column.name = d->has_header ? arena_strndup(&d->arena, text, n)
                                        : arena_printf(&d->arena, "%zu", i + 1);
            vec_push(&d->columns, column);
        }
        if (row.n_fields != d->columns.n)
            return error_set(err, ERR_DATA,
                             "%s:%" PRIu64 ": %zu columns, but the first row has %zu",
                             row_source_file(source), row.line, row.n_fields, d->columns.n);
        bool is_header = d->has_header && is_first;
        is_first = false;
        if (is_header) {
            row_source_set_header(source);
            continue;
        }
        d->rows++;
        for (size_t i = 0; i < row.n_fields; i++) {
            struct column_summary *column = &d->columns.items[i];
            const char *text = row.fields[i].text;
            size_t n = row.fields[i].n;
            double value, seconds;
            cell_trim(&text, &n);
            enum cell_kind kind = cell_kind(text, n);
            if (kind == CELL_MISSING || cell_is_nan(text, n)) {
                column->missing++;
                continue;
            }
            char plain[CELL_AMOUNT_BYTES];
            size_t length = kind == CELL_TEXT ? cell_amount(text, n, plain) : 0;
            if (number_float64(length ? plain : text, length ? length : n, &value) == NUMBER_OK) {
                int64_t count = ++column->kinds[COLUMN_AMOUNT];
                column->kinds[COLUMN_NUMBER] += kind == CELL_NUMBER;
                column->kinds[COLUMN_WHOLE] += kind == CELL_NUMBER && value - trunc(value) == 0;
                column->min = fmin(column->min, value); /* from NaN on */
                column->max = fmax(column->max, value);
                column->mean =
                    count == 1 ? value : column->mean + (value - column->mean) / (double)count;
            }
            column->kinds[COLUMN_BOOL] += kind == CELL_BOOL;
            if (date_parse(text, n, &seconds)) {
                column->kinds[COLUMN_DATE]++;
                if (!column->first.n || seconds < column->first_at) {
                    str_clear(&column->first);
                    str_append_bytes(&column->first, text, n);
                    column->first_at = seconds;
                }
                if (!column->last.n || seconds > column->last_at) {
                    str_clear(&column->last);
                    str_append_bytes(&column->last, text, n);
                    column->last_at = seconds;
                }
            }
            column->kinds[COLUMN_TEXT]++;
            int64_t place;
            char *key = mem_strndup(text, n);
            if (map_get(&column->places, key, &place)) {
                column->distinct.items[place].rows++;
            } else if (column->distinct.n == DESCRIBE_DISTINCT_MAX) {
                column->has_more = true;
            } else {
                struct value_count count = {arena_strdup(&d->arena, key), 1};
                map_put(&column->places, count.text, (int64_t)column->distinct.n);
                vec_push(&column->distinct, count);
            }
            mem_free(key);
        }
    }
    vec_each(column, &d->columns) {
        /* Choose the narrowest type that all of its fields have. */
        enum column_type type = COLUMN_EMPTY;
        while (column->kinds[COLUMN_TEXT] && column->kinds[type] != column->kinds[COLUMN_TEXT])
            type++;
        column->type = column->kinds[COLUMN_TEXT] ? type : COLUMN_EMPTY;
        if (column->type > COLUMN_BOOL) /* some of its dates or texts may read as numbers */
            column->min = column->max = column->mean = NAN;
        if (column->distinct.n)
            qsort(column->distinct.items, column->distinct.n, sizeof *column->distinct.items,
                  by_rows);
    }
    if (!err->code && !d->rows)
        error_set(err, ERR_DATA, "%s: no rows", row_source_name(source));
    return err->code;
}

/* ---- suggested feeds ---- */

/* Appends the column as tf-data takes it: by position if its name cannot be used. */
static void append_where(const struct table_description *d, size_t i, struct str *out)
{
    const char *name = d->columns.items[i].name;
    struct range range;
    bool is_plain = *name && !strpbrk(name, ",:*?") && str_is_printable(name, strlen(name)) &&
                    !range_parse(name, strlen(name), &range);
    if (d->has_header && is_plain)
        str_append(out, name);
    else
        str_printf(out, "%zu", i + 1);
}

static void append_word(struct str *out, const struct str *word)
{
    str_append(out, out->n ? " " : "");
    str_append_quoted(out, str_text(word));
}

static bool is_number(const struct column_summary *column)
{
    return column->type == COLUMN_WHOLE || column->type == COLUMN_NUMBER ||
           column->type == COLUMN_BOOL;
}

/* Returns whether the column only identifies rows. */
static bool is_key(const struct table_description *d, const struct column_summary *column)
{
    bool all_differ = column->has_more || (int64_t)column->distinct.n == d->rows;
    return d->rows > 1 && all_differ && !column->missing &&
           (column->type == COLUMN_TEXT ||
            (column->type == COLUMN_WHOLE && column->max - column->min == (double)(d->rows - 1)));
}

void description_suggest(const struct table_description *d, struct str *operands)
{
    struct str word = STR_INIT;
    bool is_missing = false;
    size_t last = d->columns.n - 1;
    for (size_t i = 0, end; i < last; i = end) {
        for (end = i;
             end < last && is_number(&d->columns.items[end]) && !is_key(d, &d->columns.items[end]);
             end++) {
            is_missing |= d->columns.items[end].missing > 0;
            if (!d->has_header && end > i)
                continue;
            str_append(&word, word.n ? "," : "x=");
            append_where(d, end, &word);
        }
        if (!d->has_header && end > i + 1)
            str_printf(&word, "-%zu", end);
        end += end == i;
    }
    if (word.n) {
        str_printf(&word, "%s:standardize", is_missing ? ":impute=median" : "");
        append_word(operands, &word);
    }
    for (size_t i = 0; i <= last; i++) {
        const struct column_summary *column = &d->columns.items[i];
        bool has_few = column->distinct.n <= ONEHOT_MAX, is_text = column->type == COLUMN_TEXT;
        bool is_date = column->type == COLUMN_DATE, is_amount = column->type == COLUMN_AMOUNT;
        const char *impute = column->missing ? ":impute=most" : "";
        str_clear(&word);
        if (i == last)
            str_append(&word, "y");
        else if (is_date || is_amount || (is_text && !is_key(d, column))) {
            /* Make a name that a script can use. */
            const char *name = column->name;
            size_t begin = word.n;
            for (; *name; name++) {
                bool is_letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');
                bool is_digit = *name >= '0' && *name <= '9';
                if (is_digit && word.n == begin)
                    str_append(&word, "c");
                str_append_char(&word, is_letter || is_digit ? *name : '_');
            }
        } else
            continue;
        str_append(&word, "=");
        append_where(d, i, &word);
        bool is_class = is_text || column->type == COLUMN_BOOL ||
                        (column->type == COLUMN_WHOLE && column->distinct.n <= CLASSES_MAX);
        str_append(&word, is_date ? ":date" : is_amount ? ":amount" : "");
        if (is_date || (is_amount && i != last))
            str_printf(&word, "%s:standardize", column->missing ? ":impute=median" : "");
        else if (i == last)
            str_printf(&word, "%s%s", is_class ? ":category" : "",
                       is_class || !column->missing ? impute : ":impute=mean");
        else if (has_few)
            str_printf(&word, ":onehot%s", impute);
        else
            str_printf(&word, ":hash=1000%s", impute);
        append_word(operands, &word);
    }
    str_release(&word);
}
