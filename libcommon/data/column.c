/* SPDX-License-Identifier: Apache-2.0 */
#include "data/column.h"

#include <string.h>

#include "base/number.h"
#include "base/str.h"

static bool parse_shape(const char *text, struct shape *shape)
{
    *shape = SHAPE_SCALAR;
    for (;; text++) {
        size_t n = strcspn(text, "x");
        int64_t dim;
        /* One dimension is left for the rows. */
        if (number_int64(text, n, &dim) || dim < 1 || shape->rank == SHAPE_RANK_MAX - 1)
            return false;
        shape->dims[shape->rank++] = dim;
        text += n;
        if (!*text)
            return true;
    }
}

static bool parse_finite(const char *text, double *value)
{
    return number_float64(text, strlen(text), value) == NUMBER_OK && *value - *value == 0;
}

enum part_status { PART_OK, PART_UNKNOWN, PART_BAD, PART_TWICE };

/* Whether the part sets what another one has set. Parts are read from the last to the first. */
static bool is_set(const struct data_column *column, const char *part)
{
    enum dtype type;
    if (dtype_parse(part, &type))
        return column->type != DTYPE_INVALID;
    return (str_starts(part, "scale=") && column->scale != 1) ||
           (str_starts(part, "offset=") && column->offset != 0) ||
           (str_starts(part, "onehot=") && column->onehot) ||
           (str_starts(part, "shape=") && column->shape.rank != SHAPE_UNKNOWN);
}

static enum part_status parse_part(struct data_column *column, const char *part)
{
    bool ok = true;
    if (is_set(column, part))
        return PART_TWICE;
    if (dtype_parse(part, &column->type))
        ok = column->type != RESOURCE && column->type != COMPLEX64;
    else if (strcmp(part, "standardize") == 0)
        column->standardize = true;
    else if (str_starts(part, "scale="))
        ok = parse_finite(part + 6, &column->scale);
    else if (str_starts(part, "offset="))
        ok = parse_finite(part + 7, &column->offset);
    else if (str_starts(part, "onehot="))
        ok = number_int64(part + 7, strlen(part + 7), &column->onehot) == NUMBER_OK &&
             column->onehot > 0 && column->onehot <= (1 << 24);
    else if (str_starts(part, "shape="))
        ok = parse_shape(part + 6, &column->shape);
    else
        return PART_UNKNOWN;
    return ok ? PART_OK : PART_BAD;
}

/* The last part of `where` goes, if it is one; *more tells. */
static int take_last_part(struct data_column *column, char *where, bool where_is_path, bool *more,
                          struct error *err)
{
    char *colon = strrchr(where, ':');
    *more = colon != NULL;
    if (!colon)
        return 0;
    enum part_status status = parse_part(column, colon + 1);
    if (status == PART_UNKNOWN && where_is_path) {
        *more = false;
        return 0;
    }
    if (status == PART_TWICE)
        return error_set(err, ERR_USAGE, "'%s': another part says the same", colon + 1);
    if (status)
        return error_set(err, ERR_USAGE,
                         "'%s': not a type, nor scale=S, offset=O, standardize, onehot=N or "
                         "shape=8x8x1",
                         colon + 1);
    *colon = '\0';
    return 0;
}

int data_column_parse(struct data_column *column, const char *text, bool where_is_path,
                      struct arena *arena, struct error *err)
{
    *column = (struct data_column){.scale = 1, .shape = SHAPE_ANY};
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return error_set(err, ERR_USAGE, "'%s': expected NAME=%s[:TYPE]...", text,
                         where_is_path ? "FILE" : "COLUMNS");
    char *where = arena_strdup(arena, equals + 1);
    column->name = arena_strndup(arena, text, (size_t)(equals - text));
    column->where = where;
    bool more = true;
    while (more) {
        int code = take_last_part(column, where, where_is_path, &more, err);
        if (code) {
            error_prefix(err, "'%s': ", text);
            return code;
        }
    }
    if (column->type == STRING && data_column_computes(column))
        return error_set(err, ERR_USAGE, "'%s': text cannot be computed with", text);
    if (column->onehot && column->standardize)
        return error_set(err, ERR_USAGE, "'%s': either standardize or onehot", text);
    return 0;
}

int data_columns_parse(struct data_column *columns, const char *const *texts, int n,
                       bool where_is_path, struct arena *arena, struct error *err)
{
    for (int i = 0; i < n; i++) {
        int code = data_column_parse(&columns[i], texts[i], where_is_path, arena, err);
        if (code)
            return code;
        for (int k = 0; k < i; k++)
            if (strcmp(columns[k].name, columns[i].name) == 0)
                return error_set(err, ERR_USAGE, "'%s' is given twice", columns[i].name);
    }
    return 0;
}

int data_columns_bind(struct data_column *columns, int n, struct prep *prep, struct prep *fit,
                      struct error *err)
{
    int code = 0;
    for (int i = 0; i < n && !code; i++) {
        if (columns[i].standardize && prep)
            code = prep_find(prep, columns[i].name, &columns[i].prep, err);
        if (columns[i].standardize && fit)
            columns[i].fit = prep_add(fit, columns[i].name);
    }
    return code;
}

bool data_column_computes(const struct data_column *column)
{
    return column->onehot || column->standardize || column->scale != 1 || column->offset != 0;
}
