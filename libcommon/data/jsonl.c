/* SPDX-License-Identifier: Apache-2.0 */
#include "data/jsonl.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"

#define READ_BYTES ((size_t)64 << 10)

struct jsonl_reader {
    struct gzfile *file;
    struct jsonl_columns *columns;
    char *buffer;
    size_t capacity, n, line_at,
        seen; /* the current line begins at line_at, has no end before seen */
    uint64_t line;
    bool ended;
    json_t *first; /* read for its keys, which were just returned */
    bool is_alone; /* no columns were known before the object whose keys are taken */
    size_t at;     /* the column before, in the object, of its next new one, from 1 on; 0: none */
    struct str path, text;
    VEC(struct csv_field) fields;
    VEC(size_t) begins; /* starts of the fields in `text` */
};

void jsonl_columns_release(struct jsonl_columns *columns)
{
    vec_release(&columns->names);
    vec_release(&columns->next);
    map_release(&columns->places);
    arena_release(&columns->arena);
}

size_t jsonl_columns_add(struct jsonl_columns *columns, const char *name, size_t at)
{
    name = arena_strdup(&columns->arena, name);
    if (at < columns->n_expected)
        at = columns->n_expected;
    if (!columns->next.n)
        vec_push(&columns->next, 0);
    size_t behind = columns->next.items[at];
    map_put(&columns->places, name, (int64_t)columns->names.n);
    vec_push(&columns->names, name);
    vec_push(&columns->next, behind);
    columns->next.items[at] = columns->names.n;
    return columns->names.n;
}

/* All columns are known: they get their places. */
static void arrange(struct jsonl_columns *columns)
{
    size_t n = 0;
    const char **names = mem_array(columns->names.n + 1, sizeof *names);
    for (size_t i = columns->next.n ? columns->next.items[0] : 0; i; i = columns->next.items[i]) {
        names[n] = columns->names.items[i - 1];
        map_put(&columns->places, names[n], (int64_t)n);
        n++;
    }
    if (n)
        memcpy(columns->names.items, names, n * sizeof *names);
    mem_free(names);
    vec_release(&columns->next);
    columns->are_read = true;
}

struct jsonl_reader *jsonl_reader_new(struct gzfile *file, struct jsonl_columns *columns)
{
    struct jsonl_reader *reader = mem_alloc(sizeof *reader);
    reader->file = file;
    reader->columns = columns;
    return reader;
}

void jsonl_reader_free(struct jsonl_reader *reader)
{
    if (!reader)
        return;
    json_decref(reader->first);
    mem_free(reader->buffer);
    str_release(&reader->path);
    str_release(&reader->text);
    vec_release(&reader->fields);
    vec_release(&reader->begins);
    mem_free(reader);
}

/* ---- lines ---- */

/* Gets the next line; *more is false at the end. */
static int next_line(struct jsonl_reader *reader, const char **text, size_t *n, bool *more,
                     struct error *err)
{
    for (;;) {
        size_t left = reader->n - reader->seen;
        const char *end = left ? memchr(reader->buffer + reader->seen, '\n', left) : NULL;
        if (end || (reader->ended && reader->n > reader->line_at)) {
            *text = reader->buffer + reader->line_at;
            *n = (size_t)((end ? end : reader->buffer + reader->n) - *text);
            reader->line_at = reader->seen = reader->line_at + *n + (end != NULL);
            reader->line++;
            *more = true;
            return 0;
        }
        *more = false;
        reader->seen = reader->n;
        if (reader->ended)
            return 0;
        /* Read more bytes after the present ones; the current line moves to the front. */
        size_t kept = reader->n - reader->line_at, got = 0;
        if (kept > CSV_ROW_BYTES_MAX)
            return error_set(err, ERR_DATA, "%s:%" PRIu64 ": line of more than %zu MiB",
                             gzfile_name(reader->file), reader->line, CSV_ROW_BYTES_MAX >> 20);
        if (kept && reader->line_at)
            memmove(reader->buffer, reader->buffer + reader->line_at, kept);
        reader->seen -= reader->line_at;
        reader->line_at = 0;
        reader->n = kept;
        if (reader->capacity - kept < READ_BYTES) {
            size_t capacity = reader->capacity * 2 + READ_BYTES;
            char *grown = mem_try_grow(reader->buffer, kept, capacity);
            if (!grown)
                return error_set(err, ERR_OS, "%s: no memory for a line of %zu bytes",
                                 gzfile_name(reader->file), kept);
            reader->buffer = grown;
            reader->capacity = capacity;
        }
        if (gzfile_read(reader->file, reader->buffer + kept, reader->capacity - kept, &got, err))
            return err->code;
        reader->n += got;
        reader->ended = got == 0;
    }
}

/* ---- objects ---- */

static int bad(const struct jsonl_reader *reader, const char *what, struct error *err)
{
    return error_set(err, ERR_DATA, "%s:%" PRIu64 ": %s", gzfile_name(reader->file), reader->line,
                     what);
}

/* Reads all members of a value: for new columns' names, if `names`, else as fields. */
static int read_members(struct jsonl_reader *reader, const json_t *value, bool names,
                        struct error *err)
{
    size_t before = reader->path.n, i;
    const char *key;
    json_t *item;
    if (!json_is_object(value) && !json_is_array(value)) {
        /* A value that is not nested is a column, or a field of the row, named reader->path. */
        struct jsonl_columns *columns = reader->columns;
        const char *path = str_text(&reader->path);
        int64_t place;
        bool is_known = map_get(&columns->places, path, &place);
        if (names && is_known && reader->is_alone)
            return bad(reader, "two columns have one name", err);
        if (names && !is_known && columns->names.n == CSV_FIELDS_MAX)
            return error_set(err, ERR_DATA, "%s:%" PRIu64 ": more than %zu columns",
                             gzfile_name(reader->file), reader->line, CSV_FIELDS_MAX);
        if (names)
            reader->at =
                is_known ? (size_t)place + 1 : jsonl_columns_add(columns, path, reader->at);
        if (names || !is_known)
            return 0;
        size_t begin = reader->text.n;
        if (json_is_string(value))
            str_append_bytes(&reader->text, json_string_value(value), json_string_length(value));
        else if (json_is_integer(value))
            str_printf(&reader->text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_real(value))
            str_append_float64(&reader->text, json_real_value(value));
        else if (json_is_boolean(value))
            str_append(&reader->text, json_is_true(value) ? "true" : "false");
        reader->begins.items[place] = begin;
        reader->fields.items[place].n = reader->text.n - begin;
        return 0;
    }
    json_object_foreach((json_t *)value, key, item)
    {
        str_printf(&reader->path, "%s%s", before ? "." : "", key);
        if (read_members(reader, item, names, err))
            return err->code;
        reader->path.data[reader->path.n = before] = '\0';
    }
    json_array_foreach(value, i, item)
    {
        str_printf(&reader->path, "[%zu]", i);
        if (read_members(reader, item, names, err))
            return err->code;
        reader->path.data[reader->path.n = before] = '\0';
    }
    return 0;
}

static int read_object(struct jsonl_reader *reader, json_t **object, bool *more, struct error *err)
{
    const char *text;
    size_t n;
    json_error_t failed;
    do {
        if (next_line(reader, &text, &n, more, err) || !*more)
            return err->code;
        while (n && strchr(" \t\r\xef\xbb\xbf", *text)) { /* also a byte order mark */
            text++;
            n--;
        }
    } while (!n);
    if (*text == '[')
        return bad(reader, "is a list, not an object; jq -c '.[]' makes lines of it", err);
    *object = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &failed);
    if (!*object)
        return bad(reader, failed.text, err);
    if (json_is_object(*object))
        return 0;
    json_decref(*object);
    return bad(reader, "is no object", err);
}

static int learn(struct jsonl_reader *reader, const json_t *object, struct error *err)
{
    reader->is_alone = !reader->columns->names.n;
    reader->at = 0;
    str_clear(&reader->path);
    return read_members(reader, object, true, err);
}

int jsonl_learn(struct jsonl_reader *reader, struct error *err)
{
    json_t *object;
    bool more = true;
    while (more && !read_object(reader, &object, &more, err) && more) {
        learn(reader, object, err);
        json_decref(object);
        more = !err->code;
    }
    return err->code;
}

int jsonl_read(struct jsonl_reader *reader, struct csv_row *row, bool *more, struct error *err)
{
    json_t *object = reader->first;
    bool names = !reader->columns->are_read;
    *more = true;
    reader->first = NULL;
    if (!object && (read_object(reader, &object, more, err) || !*more))
        return err->code;
    str_clear(&reader->path);
    str_clear(&reader->text);
    if (names && !learn(reader, object, err) && !reader->columns->names.n)
        bad(reader, "has no columns", err);
    if (names)
        arrange(reader->columns);
    size_t n = reader->columns->names.n;
    vec_reserve(&reader->fields, n);
    vec_reserve(&reader->begins, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = reader->columns->names.items[i];
        reader->fields.items[i] = (struct csv_field){name, names ? strlen(name) : 0};
        reader->begins.items[i] = 0;
    }
    if (names)
        reader->first = object;
    else if (!read_members(reader, object, false, err))
        for (size_t i = 0; i < n; i++)
            reader->fields.items[i].text = str_text(&reader->text) + reader->begins.items[i];
    if (!names)
        json_decref(object);
    *row = (struct csv_row){reader->fields.items, n, reader->line, 0};
    *more = !err->code;
    return err->code;
}
