/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/prep_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

#define VERSION_KEY "tf-data prep"
#define VERSION_STANDARDIZE 1 /* has no other section, and no "of" */
#define VERSION 2

/* The sections, each of which has an object per feed. */
enum section_kind { SECTION_CATEGORIES, SECTION_WEIGHTS, SECTION_FIGURES };

static const struct section {
    const char *name;
    enum section_kind kind;
    const char *keys[2];
    enum figure first; /* of figures; FIGURE_FILL of categories is a text */
    int n_figures;
} sections[] = {{"category", SECTION_CATEGORIES, {"categories"}, 0, 0},
                {"balance", SECTION_WEIGHTS, {"weights"}, 0, 0},
                {"impute", SECTION_FIGURES, {"value"}, FIGURE_FILL, 1},
                {"standardize", SECTION_FIGURES, {"mean", "deviation"}, FIGURE_MEAN, 2},
                {"scale", SECTION_FIGURES, {"min", "max"}, FIGURE_MIN, 2}};

#define N_SECTIONS (sizeof sections / sizeof *sections)

/* ---- reading ---- */

static int refuse(const struct prep *prep, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: not written by --fit: %s", prep->path, what);
}

/* Reads an array of texts, or of positions. */
static int read_names(struct prep *prep, const json_t *list, const char ***names, size_t *n,
                      struct error *err)
{
    *n = json_array_size(list);
    *names = arena_array(&prep->arena, *n + 1, sizeof **names);
    for (size_t i = 0; i < *n; i++) {
        const json_t *item = json_array_get(list, i);
        if (json_is_string(item))
            (*names)[i] = arena_strdup(&prep->arena, json_string_value(item));
        else if (json_is_integer(item))
            (*names)[i] = arena_printf(&prep->arena, "%lld", (long long)json_integer_value(item));
        else
            return refuse(prep, "a column is a name or a position", err);
    }
    return *n ? 0 : refuse(prep, "a list of columns is empty", err);
}

/* Reads the fill value of a column of categories: *value is the category's id. */
static bool read_fill(struct fit *fitted, const json_t *item, size_t k, double *value)
{
    struct error err = ERROR_INIT;
    int32_t id = -1;
    char *text = json_is_string(item) ? NULL : json_dumps(item, JSON_ENCODE_ANY);
    const char *fill = text ? text : json_string_value(item);
    if (fill && !categories_id(&fitted->categories[k], fill, strlen(fill), false, &id, &err))
        *value = id;
    free(text);
    return id >= 0;
}

static int read_figure(struct fit *fitted, const struct section *section, int i, const json_t *list,
                       struct error *err)
{
    struct prep *prep = fitted->prep;
    size_t n = json_array_size(list);
    double *numbers = arena_array(&prep->arena, n + 1, sizeof *numbers);
    bool fits = n > 0 && (!fitted->width || (size_t)fitted->width == n) &&
                (!fitted->columns || fitted->n_columns == n);
    bool is_id = section->first == FIGURE_FILL && fitted->categories;
    for (size_t k = 0; k < n && fits; k++) {
        const json_t *item = json_array_get(list, k);
        fits = is_id ? read_fill(fitted, item, k, &numbers[k]) : json_is_number(item);
        numbers[k] = is_id ? numbers[k] : json_number_value(item);
    }
    if (!fits)
        return error_set(err, ERR_DATA,
                         "%s: not written by --fit: '%s': a %s is wanted of each "
                         "column",
                         prep->path, fitted->name, section->keys[i]);
    fitted->width = (int64_t)n;
    fitted->figures[(int)section->first + i] = numbers;
    return 0;
}

static int read_categories(struct fit *fitted, const json_t *lists, struct error *err)
{
    struct prep *prep = fitted->prep;
    size_t n = json_array_size(lists);
    if (!n || (fitted->n_columns && fitted->n_columns != n))
        return refuse(prep, "a list of categories is wanted of each column", err);
    fit_add_categories(fitted, n);
    fitted->width = (int64_t)n;
    for (size_t k = 0; k < n; k++) {
        const json_t *list = json_array_get(lists, k);
        struct categories *to = &fitted->categories[k];
        to->are_numbers = json_array_size(list) > 0;
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *item = json_array_get(list, i);
            char *number = json_is_number(item) ? json_dumps(item, JSON_ENCODE_ANY) : NULL;
            const char *text = number ? number : json_string_value(item);
            int32_t id = -1;
            to->are_numbers = to->are_numbers && number;
            if (text)
                categories_id(to, text, strlen(text), true, &id, err);
            free(number);
            if (err->code || id != (int32_t)i)
                return refuse(prep, "a category is a text or a number, and there once", err);
        }
        if (!json_is_array(list))
            return refuse(prep, "categories are a list", err);
    }
    return 0;
}

/* Reads the columns of a feed, which must be the same in each section. */
static int read_columns(struct fit *fitted, const json_t *list, struct error *err)
{
    const char **names;
    size_t n;
    if (read_names(fitted->prep, list, &names, &n, err))
        return err->code;
    if (fitted->width && (size_t)fitted->width != n)
        return refuse(fitted->prep, "two sections have other columns under one name", err);
    fitted->columns = names;
    fitted->n_columns = n;
    return 0;
}

static int read_fitted(struct prep *prep, const struct section *section, const char *name,
                       const json_t *object, struct error *err)
{
    struct fit *known = prep_get(prep, name), *fitted = known ? known : prep_add(prep, name);
    const json_t *columns = json_object_get(object, "columns");
    const char *of = json_string_value(json_object_get(object, "of"));
    const char *by = json_string_value(json_object_get(object, "by"));
    fitted->rows = json_integer_value(json_object_get(object, "rows"));
    fitted->of = of ? arena_strdup(&prep->arena, of) : fitted->of;
    if (section->kind == SECTION_FIGURES && section->first == FIGURE_FILL)
        fitted->impute = by ? arena_strdup(&prep->arena, by) : NULL;
    if (columns && read_columns(fitted, columns, err))
        return err->code;
    const json_t *first = json_object_get(object, section->keys[0]);
    if (section->kind == SECTION_CATEGORIES)
        return read_categories(fitted, first, err);
    if (section->kind == SECTION_WEIGHTS) {
        size_t n = json_array_size(first);
        bool fits =
            fitted->categories && fitted->n_columns == 1 && n == fitted->categories[0].texts.n;
        fitted->weights = arena_array(&prep->arena, n + 1, sizeof *fitted->weights);
        for (size_t i = 0; i < n && fits; i++) {
            fits = json_is_number(json_array_get(first, i));
            fitted->weights[i] = json_number_value(json_array_get(first, i));
        }
        return fits ? 0 : refuse(prep, "a weight is wanted of each category", err);
    }
    for (int i = 0; i < section->n_figures; i++)
        if (read_figure(fitted, section, i, json_object_get(object, section->keys[i]), err))
            return err->code;
    double *const *figures = fitted->figures;
    for (int64_t i = 0; i < fitted->width; i++)
        if (figures[FIGURE_DEVIATION] && !(figures[FIGURE_DEVIATION][i] > 0))
            return refuse(prep, "a deviation is not above 0", err);
        else if (figures[FIGURE_MIN] && !(figures[FIGURE_MIN][i] <= figures[FIGURE_MAX][i]))
            return refuse(prep, "a min is above its max", err);
    return 0;
}

int prep_read(struct prep *prep, const char *path, struct error *err)
{
    json_error_t failed;
    prep->path = path;
    FILE *in = fopen(path, "re");
    if (!in)
        return error_set_errno(err, file_error_code(), "%s", path);
    json_t *root = json_loadf(in, JSON_REJECT_DUPLICATES, &failed);
    fclose(in);
    if (!root)
        return error_set(err, ERR_DATA, "%s:%d: %s", path, failed.line, failed.text);
    json_t *header = json_object_get(root, "header"), *value;
    json_int_t version = json_integer_value(json_object_get(root, VERSION_KEY));
    const char *name;
    int code = 0;
    if (version < 1 || version > VERSION)
        code = refuse(prep, version ? "of another version" : "no \"" VERSION_KEY "\"", err);
    if (!code && header)
        code = read_names(prep, header, &prep->header, &prep->n_header, err);
    for (size_t i = 0; i < N_SECTIONS; i++)
        json_object_foreach(json_object_get(root, sections[i].name), name, value) code =
            code ? code : read_fitted(prep, &sections[i], name, value, err);
    if (!code && !prep->fitted.n)
        code = refuse(prep, "nothing is fitted in it", err);
    json_decref(root);
    return code;
}

/* ---- writing ---- */

static json_t *array_of_names(const char *const *names, size_t n, bool are_positions)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        int64_t position = 0;
        if (are_positions)
            str_to_int64(names[i], &position);
        json_array_append_new(array,
                              are_positions ? json_integer(position) : json_string(names[i]));
    }
    return array;
}

static json_t *array_of_numbers(const double *numbers, int64_t n)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(array, json_real(numbers[i]));
    return array;
}

static json_t *category_json(const struct categories *categories, size_t id)
{
    const char *text = categories->texts.items[id];
    json_t *number = categories->are_numbers ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    return number ? number : json_string(text);
}

static json_t *figure_json(const struct fit *fitted, enum figure figure)
{
    const double *numbers = fitted->figures[figure];
    if (figure != FIGURE_FILL || !fitted->categories)
        return array_of_numbers(numbers, fitted->width);
    json_t *array = json_array();
    for (int64_t i = 0; i < fitted->width; i++)
        json_array_append_new(array, category_json(&fitted->categories[i], (size_t)numbers[i]));
    return array;
}

static bool has_section(const struct fit *fitted, const struct section *section)
{
    if (section->kind == SECTION_FIGURES)
        return fitted->figures[section->first] != NULL;
    return section->kind == SECTION_WEIGHTS ? fitted->weights != NULL : fitted->categories != NULL;
}

static json_t *fitted_json(const struct fit *fitted, const struct section *section)
{
    json_t *object = json_object();
    if (fitted->columns)
        json_object_set_new(
            object, "columns",
            array_of_names(fitted->columns, fitted->n_columns, !fitted->prep->header));
    json_object_set_new(object, "rows", json_integer(fitted->rows));
    if (fitted->of)
        json_object_set_new(object, "of", json_string(fitted->of));
    if (section->kind == SECTION_FIGURES && section->first == FIGURE_FILL)
        json_object_set_new(object, "by", json_string(fitted->impute));
    if (section->kind == SECTION_CATEGORIES) {
        json_t *lists = json_array();
        for (size_t k = 0; k < fitted->n_columns; k++) {
            json_t *list = json_array();
            for (size_t i = 0; i < fitted->categories[k].texts.n; i++)
                json_array_append_new(list, category_json(&fitted->categories[k], i));
            json_array_append_new(lists, list);
        }
        json_object_set_new(object, section->keys[0], lists);
    }
    if (section->kind == SECTION_WEIGHTS)
        json_object_set_new(
            object, section->keys[0],
            array_of_numbers(fitted->weights, (int64_t)fitted->categories[0].texts.n));
    for (int i = 0; i < section->n_figures; i++)
        json_object_set_new(object, section->keys[i],
                            figure_json(fitted, (enum figure)((int)section->first + i)));
    return object;
}

int prep_write(const struct prep *prep, FILE *out, struct error *err)
{
    for (size_t i = 0; i < prep->n_header; i++)
        if (!str_is_printable(prep->header[i], strlen(prep->header[i])))
            return error_set(err, ERR_DATA, "%s: column %zu has a name that is no text", prep->path,
                             i + 1);
    for (size_t i = 0; i < prep->fitted.n; i++) {
        const char *name = prep->fitted.items[i]->name;
        if (!str_is_printable(name, strlen(name)))
            return error_set(err, ERR_USAGE, "%s: a feed has a name that is no text", prep->path);
    }
    json_t *root = json_object();
    /* Write the oldest version that can express the fit. */
    int version = VERSION_STANDARDIZE;
    for (size_t i = 0; i < prep->fitted.n; i++) {
        const struct fit *f = prep->fitted.items[i];
        if (f->of || f->categories || f->figures[FIGURE_FILL] || f->figures[FIGURE_MIN])
            version = VERSION;
    }
    json_object_set_new(root, VERSION_KEY, json_integer(version));
    if (prep->header)
        json_object_set_new(root, "header", array_of_names(prep->header, prep->n_header, false));
    for (size_t i = 0; i < N_SECTIONS; i++) {
        json_t *section = json_object();
        for (size_t k = 0; k < prep->fitted.n; k++)
            if (has_section(prep->fitted.items[k], &sections[i]))
                json_object_set_new(section, prep->fitted.items[k]->name,
                                    fitted_json(prep->fitted.items[k], &sections[i]));
        if (json_object_size(section))
            json_object_set(root, sections[i].name, section);
        json_decref(section);
    }
    bool ok = !json_dumpf(root, out, JSON_INDENT(2)) && fputc('\n', out) != EOF;
    json_decref(root);
    return ok ? 0 : error_set_errno(err, ERR_IO, "%s", prep->path);
}
