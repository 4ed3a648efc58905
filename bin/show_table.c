/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/show_table.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/str.h"

enum { STEP = -1, ROW = -2 };

/* ---- the first record ---- */

static const struct tensor *find_tensor(const struct record *record, const char *name, size_t n)
{
    for (int i = 0; i < record->n_tensors; i++)
        if (strlen(record->tensors[i].name) == n && !memcmp(record->tensors[i].name, name, n))
            return &record->tensors[i].tensor;
    return NULL;
}

static int add_tensor_columns(struct show_table *table, const struct record *record,
                              const char *text, struct error *err)
{
    size_t n = strcspn(text, "=");
    const struct tensor *t = find_tensor(record, text, n);
    struct table_tensor tensor = {.name = arena_strndup(&table->arena, text, n)};
    struct fit *fitted = NULL;
    if (!t)
        return error_set(err, ERR_DATA, "no tensor '%s'", tensor.name);
    if (text[n] && !table->prep)
        return error_set(err, ERR_USAGE, "'%s': --prep FILE says what a feed was", text);
    if (text[n] && prep_find(table->prep, text + n + 1, &fitted, err))
        return err->code;
    tensor.fitted = text[n] ? fitted : table->prep ? prep_get(table->prep, tensor.name) : NULL;
    tensor.is_scalar = t->shape.rank == 0;
    tensor.width = 1;
    for (int i = 1; i < t->shape.rank; i++)
        tensor.width *= t->shape.dims[i];
    vec_push(&table->tensors, tensor);
    return 0;
}

/* Returns whether a row has a score per category of one column; with several there are no names. */
static bool has_scores(const struct table_tensor *tensor)
{
    const struct fit *f = tensor->fitted;
    return f && f->categories && f->n_columns == 1 && tensor->width > 1 &&
           tensor->width == (int64_t)f->categories[0].texts.n;
}

static void add_column(struct show_table *table, const char *label, int tensor, int64_t place)
{
    struct table_column column = {label, tensor, place};
    bool chosen = !table->choice;
    for (const char *at = table->choice; at && !chosen;) {
        struct str pattern = STR_INIT;
        size_t n = strcspn(at, ",");
        str_append_bytes(&pattern, at, n);
        chosen = !strcmp(str_text(&pattern), label) || !fnmatch(str_text(&pattern), label, 0);
        str_release(&pattern);
        at = at[n] ? at + n + 1 : NULL;
    }
    if (chosen)
        vec_push(&table->columns, column);
}

static int start(struct show_table *table, const struct record *record, struct error *err)
{
    bool all_scalars = true;
    for (int is_fed = 0; is_fed < 2; is_fed++)
        for (int i = 0; i < record->n_tensors && !err->code; i++)
            if (is_fed ? !table->n_wanted && *record->tensors[i].name != KEPT_MARK
                       : *record->tensors[i].name == KEPT_MARK)
                add_tensor_columns(table, record, record->tensors[i].name, err);
    for (int i = 0; i < table->n_wanted && !err->code; i++)
        add_tensor_columns(table, record, table->wanted[i], err);
    for (size_t i = 0; i < table->tensors.n; i++)
        all_scalars = all_scalars && table->tensors.items[i].is_scalar;
    if (all_scalars)
        add_column(table, "step", STEP, 0);
    if (table->matrix && table->tensors.n)
        add_column(table, "label", ROW, 0);
    for (size_t i = 0; i < table->tensors.n; i++) {
        const struct table_tensor *tensor = &table->tensors.items[i];
        for (int64_t k = 0; k < tensor->width; k++) {
            const char *label = tensor->name + (*tensor->name == KEPT_MARK);
            if (has_scores(tensor))
                label = arena_printf(&table->arena, "%s[%s]", label,
                                     tensor->fitted->categories[0].texts.items[k]);
            else if (tensor->width > 1)
                label = arena_printf(&table->arena, "%s[%" PRId64 "]", label, k);
            add_column(table, label, (int)i, k);
        }
    }
    if (!err->code && !table->columns.n)
        error_set(err, ERR_DATA, "--columns '%s': there is none of them", table->choice);
    for (size_t i = 0; i < table->columns.n && !err->code; i++) {
        const char *label = table->columns.items[i].label;
        if (i)
            fputc(table->separator, table->out);
        csv_write_field(table->out, table->separator, label, strlen(label));
    }
    if (!err->code)
        fputc('\n', table->out);
    return err->code;
}

/* ---- rows ---- */

/* Inverts a transform: returns the value of the file that became this one. */
static double turn_back(const struct fit *f, int64_t place, double value)
{
    double *const *figures = f->figures;
    if (figures[FIGURE_MEAN]) {
        value = value * figures[FIGURE_DEVIATION][place] + figures[FIGURE_MEAN][place];
    } else if (figures[FIGURE_MIN]) {
        double range = figures[FIGURE_MAX][place] - figures[FIGURE_MIN][place];
        value = value * (range > 0 ? range : 1) + figures[FIGURE_MIN][place];
    }
    return f->of && str_ends(f->of, "log1p") ? expm1(value) : value;
}

static void put_element(const struct show_table *table, const struct table_column *column,
                        const struct tensor *t, int64_t row)
{
    const struct table_tensor *tensor = &table->tensors.items[column->tensor];
    const struct fit *f = tensor->fitted;
    int64_t at = (tensor->is_scalar ? 0 : row * tensor->width) + column->place;
    bool has_place = f && column->place < f->width;
    struct str text = STR_INIT;
    if (f && f->categories && column->place < (int64_t)f->n_columns &&
        tensor->width == (int64_t)f->n_columns && t->type != STRING &&
        !dtype_is_floating(t->type)) {
        const struct categories *categories = &f->categories[column->place];
        int64_t id = tensor_get_int64(t, at);
        if (id >= 0 && id < (int64_t)categories->texts.n)
            str_append(&text, categories->texts.items[id]); /* an unseen one stays empty */
    } else if (has_place && !f->categories && dtype_is_floating(t->type)) {
        double value = turn_back(f, column->place, tensor_get_float64(t, at));
        if (t->type == FLOAT64)
            str_append_float64(&text, value);
        else
            str_append_float32(&text, (float)value);
    } else {
        tensor_print_plain(&text, t, at);
    }
    csv_write_field(table->out, table->separator, str_text(&text), text.n);
    str_release(&text);
}

/* Prints the category that a row of a confusion matrix belongs to. */
static void put_row_name(const struct show_table *table, int64_t row)
{
    const struct table_tensor *tensor = &table->tensors.items[0];
    if (!has_scores(tensor) || row >= tensor->width) {
        fprintf(table->out, "%" PRId64, row);
        return;
    }
    const char *name = tensor->fitted->categories[0].texts.items[row];
    csv_write_field(table->out, table->separator, name, strlen(name));
}

static int count_rows(const struct show_table *table, const struct tensor *const *tensors,
                      int64_t *rows, struct error *err)
{
    *rows = -1;
    for (size_t i = 0; i < table->tensors.n; i++) {
        const struct table_tensor *tensor = &table->tensors.items[i];
        const struct tensor *t = tensors[i];
        if (!t)
            return error_set(err, ERR_DATA, "no tensor '%s' in this record", tensor->name);
        if (t->shape.rank == 0)
            continue;
        int64_t width = t->shape.dims[0] ? tensor_count(t) / t->shape.dims[0] : tensor->width;
        if (tensor->is_scalar || width != tensor->width)
            return error_set(err, ERR_DATA, "'%s' has other rows than in the first record",
                             tensor->name);
        if (*rows >= 0 && *rows != t->shape.dims[0])
            return error_set(err, ERR_DATA, "'%s' has %" PRId64 " rows, but others have %" PRId64,
                             tensor->name, t->shape.dims[0], *rows);
        *rows = t->shape.dims[0];
    }
    *rows = *rows < 0 ? 1 : *rows;
    return 0;
}

int show_table_add(struct show_table *table, const struct record *record, struct error *err)
{
    int64_t rows, step = -1;
    bool is_first = !table->columns.n;
    bool has_any = is_first && !table->n_wanted;
    if (record->kind != RECORD_FEED && record->kind != RECORD_FETCH &&
        record->kind != RECORD_TENSOR)
        return 0;
    /* Skip other records: scores of an evaluation stand between the records of the steps. */
    for (int i = 0; i < table->n_wanted && is_first && !has_any; i++)
        has_any = find_tensor(record, table->wanted[i], strcspn(table->wanted[i], "="));
    if (is_first && has_any && start(table, record, err))
        return err->code;
    vec_reserve(&table->found, table->tensors.n + 1);
    const struct tensor **tensors = table->found.items;
    for (size_t i = 0; i < table->tensors.n; i++) {
        const char *name = table->tensors.items[i].name;
        tensors[i] = find_tensor(record, name, strlen(name));
        has_any |= tensors[i] != NULL;
    }
    if (!has_any)
        return 0;
    record_get_int(&record->header, "step", &step);
    if (count_rows(table, tensors, &rows, err))
        return err->code;
    for (int64_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < table->columns.n; i++) {
            const struct table_column *column = &table->columns.items[i];
            if (i)
                fputc(table->separator, table->out);
            if (column->tensor == STEP)
                fprintf(table->out, "%" PRId64, step);
            else if (column->tensor == ROW)
                put_row_name(table, r);
            else
                put_element(table, column, tensors[column->tensor], r);
        }
        fputc('\n', table->out);
    }
    return ferror(table->out) ? error_set_errno(err, ERR_IO, "cannot write the table") : 0;
}

int show_table_end(struct show_table *table, struct error *err)
{
    const char *first = table->n_wanted ? table->wanted[0] : NULL;
    if (!table->columns.n && first)
        return error_set(err, ERR_DATA, "no tensor '%.*s'", (int)strcspn(first, "="), first);
    if (!table->columns.n)
        return error_set(err, ERR_DATA, "no tensor");
    return fflush(table->out) ? error_set_errno(err, ERR_IO, "cannot write the table") : 0;
}

void show_table_release(struct show_table *table)
{
    vec_release(&table->tensors);
    vec_release(&table->found);
    vec_release(&table->columns);
    arena_release(&table->arena);
}
