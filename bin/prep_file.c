/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/prep_file.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

#define VERSION_KEY "tf-data prep"
#define VERSION 1

/* ---- reading ---- */

static int refuse(const struct prep *prep, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: not written by --fit: %s", prep->path, what);
}

/* An array of texts, or of positions. */
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

static double *read_numbers(struct prep *prep, const json_t *list, size_t n)
{
    double *numbers = arena_array(&prep->arena, n, sizeof *numbers);
    if (json_array_size(list) != n)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(list, i)))
            return NULL;
        numbers[i] = json_number_value(json_array_get(list, i));
    }
    return numbers;
}

static int read_fitted(struct prep *prep, const char *name, const json_t *object, struct error *err)
{
    struct fitted *fitted = prep_add(prep, name);
    const json_t *columns = json_object_get(object, "columns");
    size_t n = json_array_size(json_object_get(object, "mean"));
    fitted->rows = json_integer_value(json_object_get(object, "rows"));
    if (n)
        fitted->mean = read_numbers(prep, json_object_get(object, "mean"), n);
    if (n)
        fitted->deviation = read_numbers(prep, json_object_get(object, "deviation"), n);
    if (!fitted->mean || !fitted->deviation)
        return refuse(prep, "a mean and a deviation are wanted of each column", err);
    for (size_t i = 0; i < n; i++)
        if (!(fitted->deviation[i] > 0))
            return refuse(prep, "a deviation is not above 0", err);
    fitted->width = (int64_t)n;
    return columns ? read_names(prep, columns, &fitted->columns, &fitted->n_columns, err) : 0;
}

static int read_all(struct prep *prep, const json_t *root, struct error *err)
{
    const json_t *header = json_object_get(root, "header");
    json_t *object = json_object_get(root, "standardize"), *value;
    const char *name;
    json_int_t version = json_integer_value(json_object_get(root, VERSION_KEY));
    if (version != VERSION)
        return refuse(prep, version ? "of another version" : "no \"" VERSION_KEY "\": 1", err);
    if (!json_is_object(object))
        return refuse(prep, "no \"standardize\"", err);
    int code = header ? read_names(prep, header, &prep->header, &prep->n_header, err) : 0;
    json_object_foreach(object, name, value) code =
        code ? code : read_fitted(prep, name, value, err);
    return code;
}

int prep_read(struct prep *prep, const char *path, struct error *err)
{
    json_error_t failed;
    prep->path = path;
    FILE *in = fopen(path, "re");
    if (!in)
        return error_set_errno(err, file_error_code(), "%s", path);
    json_t *root = json_loadf(in, JSON_REJECT_DUPLICATES, &failed);
    int code = root ? read_all(prep, root, err)
                    : error_set(err, ERR_DATA, "%s:%d: %s", path, failed.line, failed.text);
    json_decref(root);
    fclose(in);
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

static json_t *object_of(const struct prep *prep)
{
    json_t *root = json_object(), *standardize = json_object();
    json_object_set_new(root, VERSION_KEY, json_integer(VERSION));
    if (prep->header)
        json_object_set_new(root, "header", array_of_names(prep->header, prep->n_header, false));
    for (size_t i = 0; i < prep->fitted.n; i++) {
        const struct fitted *fitted = prep->fitted.items[i];
        json_t *object = json_object();
        if (fitted->columns)
            json_object_set_new(object, "columns",
                                array_of_names(fitted->columns, fitted->n_columns, !prep->header));
        json_object_set_new(object, "rows", json_integer(fitted->rows));
        json_object_set_new(object, "mean", array_of_numbers(fitted->mean, fitted->width));
        json_object_set_new(object, "deviation",
                            array_of_numbers(fitted->deviation, fitted->width));
        json_object_set_new(standardize, fitted->name, object);
    }
    json_object_set_new(root, "standardize", standardize);
    return root;
}

static int check_names(const struct prep *prep, struct error *err)
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
    return 0;
}

int prep_write(const struct prep *prep, int fd, struct error *err)
{
    if (check_names(prep, err))
        return err->code;
    json_t *root = object_of(prep);
    bool ok = !json_dumpfd(root, fd, JSON_INDENT(2)) && write(fd, "\n", 1) == 1;
    int saved = errno;
    json_decref(root);
    errno = saved;
    return ok ? 0 : error_set_errno(err, ERR_IO, "%s", prep->path);
}
