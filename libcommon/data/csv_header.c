/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_header.h"

#include "base/number.h"
#include "base/str.h"
#include "data/cells.h"

/* ---- detecting a header ---- */

bool csv_row_is_header(const struct csv_row *row)
{
    bool has_text = false, has_value = false;
    for (size_t i = 0; i < row->n_fields; i++) {
        enum cell_kind kind = cell_kind(row->fields[i].text, row->fields[i].n);
        has_text |= kind == CELL_TEXT;
        has_value |= kind == CELL_NUMBER || kind == CELL_BOOL;
    }
    /* Or the columns are numbered, from 0 after one without a name. */
    const struct csv_field *fields = row->fields;
    bool counts = row->n_fields > 1 && cell_kind(fields[0].text, fields[0].n) == CELL_MISSING;
    for (size_t i = 1; i < row->n_fields && counts; i++) {
        int64_t number;
        counts = !number_int64(fields[i].text, fields[i].n, &number) && number == (int64_t)i - 1;
    }
    return (has_text && !has_value) || counts;
}

/* ---- the names ---- */

void csv_header_share(struct csv_header *header, const char *const *names, size_t n)
{
    int64_t other;
    map_release(&header->places);
    header->names = names;
    header->n = n;
    for (size_t i = 0; i < n; i++)
        map_put(&header->places, names[i],
                map_get(&header->places, names[i], &other) ? -1 : (int64_t)i);
}

void csv_header_take(struct csv_header *header, const struct csv_row *row)
{
    const char **names = arena_array(&header->arena, row->n_fields + 1, sizeof *names);
    for (size_t i = 0; i < row->n_fields; i++) {
        const char *text = row->fields[i].text;
        size_t n = row->fields[i].n;
        cell_trim(&text, &n);
        names[i] = arena_strndup(&header->arena, text, n);
    }
    csv_header_share(header, names, row->n_fields);
}

void csv_header_release(struct csv_header *header)
{
    map_release(&header->places);
    arena_release(&header->arena);
}

static bool look_up(const struct csv_header *header, const char *name, size_t n, int64_t *place,
                    struct str *wanted)
{
    cell_trim(&name, &n);
    str_append_bytes(wanted, name, n);
    return map_get(&header->places, str_text(wanted), place);
}

bool csv_header_has(const struct csv_header *header, const char *name, size_t n)
{
    struct str wanted = STR_INIT;
    int64_t place;
    bool has = look_up(header, name, n, &place, &wanted);
    str_release(&wanted);
    return has;
}

int csv_header_find(const struct csv_header *header, const char *name, size_t n, int64_t *place,
                    struct error *err)
{
    struct str wanted = STR_INIT;
    bool has = look_up(header, name, n, place, &wanted);
    const char *text = str_text(&wanted);
    int code = 0;
    if (!header->names)
        code = error_set(err, ERR_DATA, "no column named '%s': there is no header", text);
    else if (!has && header->n == 1)
        code = error_set(err, ERR_DATA, "no column named '%s'; there is only '%.60s'", text,
                         header->names[0]);
    else if (!has)
        code =
            error_set(err, ERR_DATA, "no column named '%s'%s", text, str_hint(text, header->names));
    else if (*place < 0)
        code = error_set(err, ERR_DATA,
                         "more than one column is named '%s': ask for one by its position", text);
    str_release(&wanted);
    return code;
}
