/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/data_describe.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/describe.h"

#define COMMONEST 3

/* Of stdin nothing can be looked at before it is read: it is CSV. */
static enum row_format format_of(const char *path)
{
    struct error ignored = ERROR_INIT;
    struct gzfile *file;
    char first = ' ';
    size_t got = 1;
    if (!strcmp(path, "-") || gzfile_open(path, &file, &ignored))
        return ROWS_CSV;
    while (strchr(" \t\r\n", first) && got && !gzfile_read(file, &first, 1, &got, &ignored))
        ;
    gzfile_close(file);
    return first == '{' ? ROWS_JSONL : ROWS_CSV;
}

static void append_number(struct str *out, double value)
{
    str_printf(out, isnan(value) ? "-" : "%.6g", value);
}

static void append_commonest(struct str *out, const struct column_summary *column)
{
    for (size_t i = 0; i < column->distinct.n && i < COMMONEST; i++) {
        str_append(out, i ? ", " : "");
        str_append_escaped(out, column->distinct.items[i].text);
        str_printf(out, " (%" PRId64 ")", column->distinct.items[i].rows);
    }
}

enum { CELLS = 8 };

/* Columns as wide as their widest cell. */
static void print_table(const struct description *d, FILE *out)
{
    static const char *const titles[CELLS] = {"column", "type", "missing", "distinct",
                                              "min",    "max",  "mean",    "commonest"};
    size_t n = d->columns.n + 1, widths[CELLS] = {0};
    struct str *cells = calloc(n * CELLS, sizeof *cells);
    for (size_t r = 0; cells && r < n; r++) {
        const struct column_summary *column = r ? &d->columns.items[r - 1] : NULL;
        struct str *row = cells + r * CELLS;
        for (int i = 0; !column && i < CELLS; i++)
            str_append(&row[i], titles[i]);
        if (column) {
            str_append_escaped(&row[0], column->name);
            str_append(&row[1], column_type_name(column->type));
            str_printf(&row[2], "%" PRId64, column->missing);
            str_printf(&row[3], "%zu%s", column->distinct.n, column->has_more ? "+" : "");
            append_number(&row[4], column->min);
            append_number(&row[5], column->max);
            append_number(&row[6], column->mean);
            append_commonest(&row[7], column);
        }
        for (int i = 0; i < CELLS; i++)
            widths[i] = row[i].n > widths[i] ? row[i].n : widths[i];
    }
    for (size_t r = 0; cells && r < n; r++)
        for (int i = 0; i < CELLS; i++)
            fprintf(out, "%-*s%s", i == CELLS - 1 ? 0 : (int)widths[i],
                    str_text(&cells[r * CELLS + (size_t)i]), i == CELLS - 1 ? "\n" : "  ");
    for (size_t i = 0; cells && i < n * CELLS; i++)
        str_release(&cells[i]);
    free(cells);
}

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void print_json(const struct description *d, const char *file, const char *command,
                       FILE *out)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < d->columns.n; i++) {
        const struct column_summary *column = &d->columns.items[i];
        json_t *commonest = json_array();
        struct str text = STR_INIT, name = STR_INIT;
        for (size_t k = 0; k < column->distinct.n && k < COMMONEST; k++) {
            str_clear(&text);
            str_append_escaped(&text, column->distinct.items[k].text);
            json_array_append_new(commonest,
                                  json_pack("{s:s, s:I}", "value", str_text(&text), "rows",
                                            (json_int_t)column->distinct.items[k].rows));
        }
        str_append_escaped(&name, column->name);
        json_array_append_new(
            columns, json_pack("{s:s, s:s, s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "name",
                               str_text(&name), "type", column_type_name(column->type), "missing",
                               (json_int_t)column->missing, "distinct",
                               (json_int_t)column->distinct.n, "has_more", column->has_more, "min",
                               number_json(column->min), "max", number_json(column->max), "mean",
                               number_json(column->mean), "commonest", commonest));
        str_release(&text);
        str_release(&name);
    }
    json_t *root = json_pack("{s:s, s:I, s:o, s:s}", "file", file, "rows", (json_int_t)d->rows,
                             "columns", columns, "command", command);
    json_dumpf(root, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(root);
}

int data_describe(struct tool *tool, const char *path, const struct csv_format *format,
                  bool as_json, struct error *err)
{
    struct description d = {0};
    struct row_source *source;
    struct str command = STR_INIT, operands = STR_INIT;
    FILE *out;
    enum row_format rows_of = format_of(path);
    if (row_source_open(path, rows_of, format->separator, format->comment, &source, err))
        return err->code;
    enum csv_header_choice header = rows_of == ROWS_JSONL ? CSV_HEADER_YES : format->header;
    if (!tool_open_text(tool, &out, err) && !describe_rows(source, header, &d, err)) {
        str_printf(&command, "tf-data %s ", rows_of == ROWS_JSONL ? "jsonl" : "csv");
        str_append_quoted(&command, path);
        description_suggest(&d, &operands);
        str_printf(&command, " %s --fit prep.json --shuffle --batch 32", str_text(&operands));
        if (as_json) {
            print_json(&d, row_source_name(source), command.data, out);
        } else {
            fprintf(out, "%s: %" PRId64 " rows, %zu columns%s\n\n", row_source_name(source), d.rows,
                    d.columns.n, d.has_header ? "" : ", without names");
            print_table(&d, out);
            fprintf(out, "\n%s\n", command.data);
        }
    }
    str_release(&command);
    str_release(&operands);
    description_release(&d);
    row_source_free(source);
    return err->code;
}
