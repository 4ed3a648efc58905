/* SPDX-License-Identifier: Apache-2.0 */
#include "data/csv_where.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/ranges.h"

enum item_kind { ITEM_RANGE, ITEM_NAME, ITEM_PATTERN };

struct csv_item {
    enum item_kind kind;
    bool is_without; /* excludes these columns */
    struct range range;
    char *name; /* or pattern; free with mem_free */
};

/* Parses the item at *at, which advances to the next one, or to NULL. */
static struct csv_item next_item(const char **at, const struct csv_header *header)
{
    struct csv_item item = {.kind = ITEM_RANGE};
    size_t n = strcspn(*at, ",");
    const char *text = *at;
    *at = text[n] ? text + n + 1 : NULL;
    if (range_parse(text, n, &item.range))
        return item;
    item.kind = ITEM_NAME;
    if (!csv_header_has(header, text, n)) {
        item.is_without = n > 1 && *text == '-';
        text += item.is_without;
        n -= item.is_without;
    }
    item.name = mem_strndup(text, n);
    if (!csv_header_has(header, text, n) && strpbrk(item.name, "*?["))
        item.kind = ITEM_PATTERN;
    return item;
}

static int bind_pattern(const struct csv_item *item, const struct csv_header *header,
                        struct csv_places *places, struct error *err)
{
    enum { NEITHER, THERE, LEFT_OUT } *columns = mem_array(header->n + 1, sizeof *columns);
    size_t n = 0;
    bool any = false;
    places->is_list = true;
    for (size_t i = 0; i < places->at.n; i++)
        if ((size_t)places->at.items[i] < header->n)
            columns[places->at.items[i]] = THERE;
    for (size_t i = 0; i < header->n; i++) {
        if (fnmatch(item->name, header->names[i], 0) != 0)
            continue;
        any = true;
        if (item->is_without)
            columns[i] = LEFT_OUT;
        else if (columns[i] == NEITHER)
            vec_push(&places->at, (int64_t)i);
    }
    for (size_t i = 0; i < places->at.n; i++) {
        int64_t place = places->at.items[i];
        if ((size_t)place >= header->n || columns[place] != LEFT_OUT)
            places->at.items[n++] = place;
    }
    places->at.n = n;
    mem_free(columns);
    if (any)
        return 0;
    return error_set(err, ERR_DATA,
                     header->names ? "no column has a name as '%s'"
                                   : "'%s' asks for names, but there is no header",
                     item->name);
}

static int bind_name(const struct csv_item *item, const struct csv_header *header,
                     struct csv_places *places, struct error *err)
{
    int64_t place;
    if (csv_header_find(header, item->name, strlen(item->name), &place, err))
        return err->code;
    if (!item->is_without) {
        vec_push(&places->at, place);
        return 0;
    }
    size_t n = 0;
    for (size_t i = 0; i < places->at.n; i++)
        if (places->at.items[i] != place)
            places->at.items[n++] = places->at.items[i];
    places->at.n = n;
    return 0;
}

static int bind_range(const struct data_column *column, const struct csv_item *item,
                      size_t n_fields, struct csv_places *places, struct error *err)
{
    const struct range *range = &item->range;
    int64_t last = range->last == RANGE_OPEN ? (int64_t)n_fields : range->last;
    if (last > (int64_t)n_fields || range->first > last)
        return error_set(err, ERR_DATA, "'%s' wants column %" PRId64 ", but there are %zu",
                         column->name, range->first > last ? range->first : last, n_fields);
    for (int64_t i = range->first; i <= last; i++)
        vec_push(&places->at, i - 1);
    places->is_list |= range->first != range->last;
    return 0;
}

int csv_where_bind(const struct data_column *column, const struct csv_header *header,
                   size_t n_fields, struct csv_places *places, struct error *err)
{
    const char *where = column->where;
    places->is_list = strchr(where, ',') != NULL;
    for (const char *at = where; at && !err->code;) {
        bool is_first = at == where;
        struct csv_item item = next_item(&at, header);
        places->is_list |= is_first && item.is_without; /* of all columns, then */
        for (size_t i = 0; is_first && item.is_without && i < n_fields; i++)
            vec_push(&places->at, (int64_t)i);
        if (item.kind == ITEM_RANGE)
            bind_range(column, &item, n_fields, places, err);
        else if (item.kind == ITEM_NAME)
            bind_name(&item, header, places, err);
        else
            bind_pattern(&item, header, places, err);
        mem_free(item.name);
    }
    if (!err->code && !places->at.n)
        error_set(err, ERR_DATA, "'%s' has no columns: '%s' leaves none", column->name, where);
    return err->code;
}

bool csv_where_has_names(const char *where)
{
    static const struct csv_header nobody;
    bool has_names = false;
    for (const char *at = where; at;) {
        struct csv_item item = next_item(&at, &nobody);
        has_names |= item.kind != ITEM_RANGE;
        mem_free(item.name);
    }
    return has_names;
}

bool csv_where_is_in(const char *where, const struct csv_header *header,
                     const struct csv_header *known)
{
    bool all = true;
    for (const char *at = where; at;) {
        struct csv_item item = next_item(&at, header);
        if (item.kind == ITEM_NAME)
            all = all && csv_header_has(header, item.name, strlen(item.name));
        for (size_t i = 0; item.kind == ITEM_PATTERN && known && i < known->n && all; i++)
            all = fnmatch(item.name, known->names[i], 0) ||
                  csv_header_has(header, known->names[i], strlen(known->names[i]));
        mem_free(item.name);
    }
    return all;
}
