/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/data_describe.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "base/str.h"
#include "data/describe.h"
#include "show/columns.h"

#define COMMONEST 3

static void add_number(struct columns *cells, double value)
{
    columns_add(cells, isnan(value) ? "-" : "%.6g", value);
}

/* An end of the range: of dates as it stands in the file, else the number. */
static void add_end(struct columns *cells, const struct column_summary *column, const char *date,
                    double value)
{
    if (column->type == COLUMN_DATE)
        columns_add(cells, "%s", date);
    else
        add_number(cells, value);
}

static void print_table(const struct table_description *d, FILE *out)
{
    static const char *const titles[] = {"column", "type", "missing", "distinct",
                                         "min",    "max",  "mean",    "commonest"};
    struct columns cells = {.n = sizeof titles / sizeof *titles};
    struct str text = STR_INIT;
    for (int i = 0; i < cells.n; i++)
        columns_add(&cells, "%s", titles[i]);
    vec_each(column, &d->columns) {
        str_clear(&text);
        str_append_escaped(&text, column->name);
        columns_add(&cells, "%s", str_text(&text));
        columns_add(&cells, "%s", column_type_name(column->type));
        columns_add(&cells, "%" PRId64, column->missing);
        columns_add(&cells, "%zu%s", column->distinct.n, column->has_more ? "+" : "");
        add_end(&cells, column, str_text(&column->first), column->min);
        add_end(&cells, column, str_text(&column->last), column->max);
        add_number(&cells, column->mean);
        str_clear(&text);
        for (size_t k = 0; k < column->distinct.n && k < COMMONEST; k++) {
            str_append(&text, k ? ", " : "");
            str_append_escaped(&text, column->distinct.items[k].text);
            str_printf(&text, " (%" PRId64 ")", column->distinct.items[k].rows);
        }
        columns_add(&cells, "%s", str_text(&text));
    }
    str_clear(&text);
    columns_print(&cells, &text);
    fputs(str_text(&text), out);
    str_release(&text);
}

/* NULL, which is null, for what is no number in JSON. */
static json_t *end_json(const struct column_summary *column, const char *date, double value)
{
    return column->type == COLUMN_DATE ? json_string(date) : json_real(value);
}

static int print_json(const struct table_description *d, const char *file, const char *command,
                      FILE *out, struct error *err)
{
    json_t *columns = json_array();
    vec_each(column, &d->columns) {
        json_t *commonest = json_array();
        struct str text = STR_INIT;
        for (size_t k = 0; k < column->distinct.n && k < COMMONEST; k++) {
            str_clear(&text);
            str_append_escaped(&text, column->distinct.items[k].text);
            json_array_append_new(commonest,
                                  json_pack("{s:s, s:I}", "value", str_text(&text), "rows",
                                            (json_int_t)column->distinct.items[k].rows));
        }
        str_clear(&text);
        str_append_escaped(&text, column->name);
        json_array_append_new(
            columns, json_pack("{s:s, s:s, s:I, s:I, s:b, s:o?, s:o?, s:o?, s:o}", "name",
                               str_text(&text), "type", column_type_name(column->type), "missing",
                               (json_int_t)column->missing, "distinct",
                               (json_int_t)column->distinct.n, "has_more", column->has_more, "min",
                               end_json(column, str_text(&column->first), column->min), "max",
                               end_json(column, str_text(&column->last), column->max), "mean",
                               json_real(column->mean), "commonest", commonest));
        str_release(&text);
    }
    json_t *root = json_pack("{s:s, s:I, s:o, s:s}", "file", file, "rows", (json_int_t)d->rows,
                             "columns", columns, "command", command);
    if (!root)
        return error_set(err, ERR_DATA, "%s: a name that is no text (UTF-8) has no JSON", file);
    json_dumpf(root, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(root);
    return 0;
}

int data_describe(struct tool *tool, const char *path, const struct csv_format *format,
                  bool as_json, struct error *err)
{
    struct table_description d = {0};
    struct row_source *source;
    struct str command = STR_INIT, operands = STR_INIT;
    FILE *out;
    if (row_source_open(path, ROWS_GUESSED, format->separator, format->comment, &source, err))
        return err->code;
    bool is_jsonl = row_source_format(source) == ROWS_JSONL;
    enum csv_header_choice header = is_jsonl ? CSV_HEADER_YES : format->header;
    if (!tool_open_text(tool, &out, err) && !describe_rows(source, header, &d, err)) {
        str_printf(&command, "tf-data %s ", is_jsonl ? "jsonl" : "csv");
        str_append_quoted(&command, path);
        description_suggest(&d, &operands);
        str_printf(&command, " %s --fit prep.json --shuffle --batch 32", str_text(&operands));
        if (as_json) {
            print_json(&d, row_source_name(source), command.data, out, err);
        } else {
            fprintf(out, "%s: %" PRId64 " row%s, %zu column%s%s\n\n", row_source_name(source),
                    d.rows, d.rows == 1 ? "" : "s", d.columns.n, d.columns.n == 1 ? "" : "s",
                    d.has_header ? "" : ", without names");
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
