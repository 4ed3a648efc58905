/* SPDX-License-Identifier: Apache-2.0 */
#include "data/column.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

#define WIDTH_MAX (1 << 24) /* of a one-hot */

/* ---- parts ---- */

static bool parse_shape(const char *text, struct shape *shape)
{
    *shape = SHAPE_SCALAR;
    for (;; text++) {
        size_t n = strcspn(text, "x");
        int64_t dim;
        /* One dimension must be left for the rows. */
        if (number_int64(text, n, &dim) || dim < 1 || shape->rank == SHAPE_RANK_MAX - 1)
            return false;
        shape->dims[shape->rank++] = dim;
        text += n;
        if (!*text)
            return true;
    }
}

/* Parts of one group exclude each other. */
enum column_part {
    GROUP_TYPE,
    GROUP_READING,
    GROUP_NORM,
    GROUP_FACTOR,
    GROUP_OFFSET,
    GROUP_ONEHOT,
    GROUP_SHAPE,
    GROUP_IMPUTE,
    GROUP_FLAG,
    GROUP_LOG
};

/* How a part may be given. */
#define VALUE true, false
#define BARE false, true
#define EITHER true, true

/* What a part does with a member of the column. */
enum part_act {
    SETS_NOTHING,
    SETS_FLAG,
    TAKES_NUMBER,
    TAKES_WIDTH,
    TAKES_TEXT,
    TAKES_SHAPE,
    TAKES_DATE
};
#define IN(member) offsetof(struct data_column, member)

static const struct part {
    const char *name, *usage;
    enum column_part group;
    bool with_value, without_value;
    enum dtype type; /* that it sets as well, ... */
    enum data_reading reading;
    enum data_norm norm;
    enum part_act act; /* ... and the member */
    size_t member;
} parts[] = {
    {"text", "text", GROUP_TYPE, BARE, STRING, 0, 0, SETS_NOTHING, 0},
    {"category", "category[=A,B]", GROUP_READING, EITHER, 0, READ_CATEGORY, 0, TAKES_TEXT,
     IN(categories)},
    {"balance", "balance", GROUP_READING, BARE, 0, READ_CATEGORY, 0, SETS_FLAG, IN(balance)},
    {"hash", "hash=N", GROUP_READING, VALUE, 0, READ_HASH, 0, TAKES_WIDTH, IN(buckets)},
    {"date", "date[=year|month|day|hour|minute|second|weekday|yearday]", GROUP_READING, EITHER, 0,
     READ_DATE, 0, TAKES_DATE, IN(date_part)},
    {"amount", "amount", GROUP_READING, BARE, 0, 0, 0, SETS_FLAG, IN(amount)},
    {"impute", "impute=mean|median|most|VALUE", GROUP_IMPUTE, VALUE, 0, 0, 0, TAKES_TEXT,
     IN(impute)},
    {"flag", "flag", GROUP_FLAG, BARE, 0, 0, 0, SETS_FLAG, IN(flag)},
    {"log1p", "log1p", GROUP_LOG, BARE, 0, 0, 0, SETS_FLAG, IN(log1p)},
    {"standardize", "standardize", GROUP_NORM, BARE, 0, 0, NORM_STANDARDIZE, SETS_NOTHING, 0},
    {"scale", "scale[=S]", GROUP_NORM, BARE, 0, 0, NORM_SCALE, SETS_NOTHING, 0},
    {"scale", "scale[=S]", GROUP_FACTOR, VALUE, 0, 0, 0, TAKES_NUMBER, IN(scale)},
    {"offset", "offset=O", GROUP_OFFSET, VALUE, 0, 0, 0, TAKES_NUMBER, IN(offset)},
    {"onehot", "onehot[=N]", GROUP_ONEHOT, VALUE, 0, 0, 0, TAKES_WIDTH, IN(onehot)},
    {"onehot", "onehot[=N]", GROUP_ONEHOT, BARE, 0, 0, 0, SETS_FLAG, IN(onehot_of_ids)},
    {"shape", "shape=8x8x1", GROUP_SHAPE, VALUE, 0, 0, 0, TAKES_SHAPE, IN(shape)},
};

/* Returns false for a value that does not fit; NULL: there is none. */
static bool set_part(struct data_column *column, const struct part *part, const char *value)
{
    void *member = (char *)column + part->member;
    column->type = part->type ? part->type : column->type;
    column->reading = part->reading ? part->reading : column->reading;
    column->norm = part->norm ? part->norm : column->norm;
    switch (part->act) {
    case SETS_NOTHING:
        break;
    case SETS_FLAG:
        *(bool *)member = true;
        break;
    case TAKES_NUMBER:
        return number_float64(value, strlen(value), member) == NUMBER_OK &&
               *(double *)member - *(double *)member == 0; /* finite */
    case TAKES_WIDTH:
        return number_int64(value, strlen(value), member) == NUMBER_OK && *(int64_t *)member > 0 &&
               *(int64_t *)member <= WIDTH_MAX;
    case TAKES_TEXT:
        *(const char **)member = value;
        return !value || *value;
    case TAKES_SHAPE:
        return parse_shape(value, member);
    case TAKES_DATE:
        return date_part_parse(value ? value : "seconds", member);
    }
    return true;
}

enum part_status { PART_OK, PART_UNKNOWN, PART_BAD, PART_TWICE };

static const struct part *find_part(const char *text, const char **value)
{
    size_t n = strcspn(text, "=");
    *value = text[n] ? text + n + 1 : NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i].name) == n && !strncmp(parts[i].name, text, n) &&
            (*value ? parts[i].with_value : parts[i].without_value))
            return &parts[i];
    return NULL;
}

/* *said collects a bit for each group given. */
static enum part_status parse_part(struct data_column *column, const char *text, unsigned *said)
{
    enum dtype type;
    const char *value;
    bool is_type = dtype_parse(text, &type);
    const struct part *part = is_type ? NULL : find_part(text, &value);
    if (!is_type && !part)
        return PART_UNKNOWN;
    unsigned bit = 1u << (is_type ? GROUP_TYPE : part->group);
    if (*said & bit)
        return PART_TWICE;
    *said |= bit;
    if (part)
        return set_part(column, part, value) ? PART_OK : PART_BAD;
    column->type = type;
    return type != RESOURCE && type != COMPLEX64 ? PART_OK : PART_BAD;
}

/* Reports an unknown part, or one in the wrong form. */
static int refuse_part(const char *text, struct error *err)
{
    const char *names[3 + sizeof parts / sizeof *parts + 1] = {"float32", "int32", "int64"};
    char name[32];
    size_t n = strcspn(text, "=");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        names[3 + i] = parts[i].name;
        if (strlen(parts[i].name) == n && !strncmp(parts[i].name, text, n))
            return error_set(err, ERR_USAGE, "'%s': expected %s", text, parts[i].usage);
    }
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    return error_set(err, ERR_USAGE, "'%s': neither a type nor a part of docs/data.md%s", text,
                     str_hint(name, names));
}

/* Cuts the last part off `where` and parses it; *more: there was one. */
static int take_last_part(struct data_column *column, char *where, bool where_is_path,
                          unsigned *said, bool *more, struct error *err)
{
    char *colon = strrchr(where, ':');
    *more = colon != NULL;
    if (!colon)
        return 0;
    enum part_status status = parse_part(column, colon + 1, said);
    if (status == PART_UNKNOWN && where_is_path) {
        *more = false;
        return 0;
    }
    if (status == PART_TWICE)
        return error_set(err, ERR_USAGE, "'%s': another part says the same", colon + 1);
    if (status)
        return refuse_part(colon + 1, err);
    *colon = '\0';
    return 0;
}

/* ---- parts that exclude each other ---- */

static bool is_mean_or_median(const char *impute)
{
    return impute && (!strcmp(impute, "mean") || !strcmp(impute, "median"));
}

static bool reads_ids(const struct data_column *column)
{
    return column->reading == READ_CATEGORY || column->reading == READ_HASH;
}

static const char *find_conflict(const struct data_column *column)
{
    bool is_text = column->type == STRING;
    bool computes = column->norm || column->log1p || column->scale != 1 || column->offset != 0;
    if (is_text && (data_column_computes(column) || column->reading || column->amount))
        return "text cannot be computed with";
    if ((column->onehot || column->onehot_of_ids) && column->norm)
        return column->norm == NORM_SCALE ? "either scale or onehot"
                                          : "either standardize or onehot";
    if (reads_ids(column) && column->onehot)
        return "onehot without a number is as wide as there are ids";
    if (reads_ids(column) && (computes || is_mean_or_median(column->impute)))
        return "ids are no values to compute with";
    if (column->onehot_of_ids && !reads_ids(column))
        return "onehot of dates wants a number: date=month:onehot=13";
    if (column->balance && column->onehot_of_ids)
        return "either balance or onehot";
    if (column->onehot && (column->flag || column->log1p))
        return "onehot=N goes with no flag and no log1p";
    return NULL;
}

int data_column_parse(struct data_column *column, const char *text, bool where_is_path,
                      struct arena *arena, struct error *err)
{
    *column = (struct data_column){.scale = 1, .shape = SHAPE_ANY};
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return error_set(err, ERR_USAGE, "'%s': expected NAME=%s[:TYPE]...", text,
                         where_is_path ? "FILE" : "COLUMNS");
    if (!str_is_printable(text, (size_t)(equals - text)))
        return error_set(err, ERR_USAGE, "'%s': a name that is not fit to print", text);
    char *where = arena_strdup(arena, equals + 1);
    column->name = arena_strndup(arena, text, (size_t)(equals - text));
    column->where = where;
    unsigned said = 0;
    bool more = true;
    while (more) {
        int code = take_last_part(column, where, where_is_path, &said, &more, err);
        if (code) {
            error_prefix(err, "'%s': ", text);
            return code;
        }
    }
    if (column->onehot_of_ids && column->reading == READ_NUMBER)
        column->reading = READ_CATEGORY;
    const char *conflict = find_conflict(column);
    return conflict ? error_set(err, ERR_USAGE, "'%s': %s", text, conflict) : 0;
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

/* ---- derived properties ---- */

bool data_column_computes(const struct data_column *column)
{
    return column->onehot || column->onehot_of_ids || column->norm || column->log1p ||
           column->balance || column->scale != 1 || column->offset != 0 || column->impute ||
           column->flag;
}

bool data_column_imputes(const struct data_column *column)
{
    return is_mean_or_median(column->impute) ||
           (column->impute && strcmp(column->impute, "most") == 0);
}

bool data_column_fits(const struct data_column *column)
{
    return column->norm || column->reading == READ_CATEGORY || data_column_imputes(column);
}

bool data_column_takes_gaps(const struct data_column *column)
{
    return column->impute || column->flag || column->reading != READ_NUMBER;
}

enum dtype data_column_type(const struct data_column *column, enum dtype source)
{
    if (column->type != DTYPE_INVALID)
        return column->type;
    if (column->norm || column->log1p || column->onehot || column->onehot_of_ids || column->balance)
        return dtype_is_floating(source) && column->reading == READ_NUMBER ? source : FLOAT32;
    if (reads_ids(column) || (column->reading == READ_DATE && column->date_part != DATE_SECONDS))
        return INT32;
    if (column->reading == READ_DATE)
        return FLOAT64; /* a float32 would be up to 128 seconds off */
    return data_column_computes(column) && !dtype_is_floating(source) ? FLOAT32 : source;
}

/* ---- what was fitted before ---- */

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
