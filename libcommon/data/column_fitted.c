/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks whether what was fitted before is what the columns need.
 */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "data/column.h"

/* Returns a part of the column that was not fitted, or was fitted differently. */
static const char *find_misfit(const struct data_column *column, const struct fit *fitted)
{
    static const struct {
        enum data_norm norm;
        enum figure figure;
        const char *text;
    } norms[] = {
        {NORM_STANDARDIZE, FIGURE_MEAN, "has no mean and deviation: it was not standardized"},
        {NORM_SCALE, FIGURE_MIN, "has no min and max: it was not scaled"}};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        if (column->norm == norms[i].norm && !fitted->figures[norms[i].figure])
            return norms[i].text;
    if (column->reading == READ_CATEGORY && !fitted->categories)
        return "has no categories";
    if (column->balance && !fitted->weights)
        return "has no weights: it was not balanced";
    if (data_column_imputes(column) && !fitted->impute)
        return "has nothing to impute";
    return NULL;
}

/* Returns the changes made to the file's values before fitting: "date=hour:log1p"; NULL: none. */
static const char *fitted_of(const struct data_column *column, struct arena *arena)
{
    struct str of = STR_INIT;
    if (column->reading == READ_DATE)
        str_printf(&of, "date=%s", date_part_name(column->date_part));
    if (column->reading == READ_HASH)
        str_printf(&of, "hash=%" PRId64, column->buckets);
    if (column->log1p)
        str_printf(&of, "%slog1p", of.n ? ":" : "");
    const char *text = of.n ? arena_strdup(arena, of.data) : NULL;
    str_release(&of);
    return text;
}

int data_columns_bind(struct data_column *columns, int n, struct prep *prep, bool is_known,
                      struct error *err)
{
    for (int i = 0; i < n; i++) {
        struct data_column *column = &columns[i];
        column->is_known = is_known;
        if (!data_column_fits(column))
            continue;
        if (is_known) {
            struct fit *fitted;
            if (prep_find(prep, column->name, &fitted, err))
                return err->code;
            const char *of = fitted_of(column, &prep->arena), *misfit = find_misfit(column, fitted);
            if (misfit)
                return error_set(err, ERR_DATA, "%s: '%s' %s", prep->path, column->name, misfit);
            if (data_column_imputes(column) && strcmp(fitted->impute, column->impute) != 0)
                return error_set(err, ERR_DATA, "%s: '%s' was fitted with impute=%s, not %s",
                                 prep->path, column->name, fitted->impute, column->impute);
            if (strcmp(of ? of : "", fitted->of ? fitted->of : "") != 0)
                return error_set(err, ERR_DATA, "%s: '%s' was fitted to %s, not to %s", prep->path,
                                 column->name, fitted->of ? fitted->of : "values as they are",
                                 of ? of : "values as they are");
            column->fitted = fitted;
        }
        if (!is_known) {
            column->fitted = prep_add(prep, column->name);
            column->fitted->of = fitted_of(column, &prep->arena);
            column->fitted->impute = data_column_imputes(column) ? column->impute : NULL;
        }
    }
    return 0;
}
