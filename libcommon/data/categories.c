/* SPDX-License-Identifier: Apache-2.0 */
#include "data/categories.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

void categories_release(struct categories *categories)
{
    vec_release(&categories->texts);
    map_release(&categories->ids);
    arena_release(&categories->arena);
    str_release(&categories->wanted);
}

/* Normalizes all spellings of a number: whole ones exactly, so that long ids stay distinct. False
 * for a word. */
static bool normalize(const char *text, size_t n, struct str *normal)
{
    int64_t whole;
    double number;
    str_clear(normal);
    if (!number_int64(text, n, &whole))
        str_printf(normal, "%" PRId64, whole);
    else if (!number_float64(text, n, &number))
        str_append_float64(normal, number == 0 ? 0 : number);
    else
        return false;
    return true;
}

/* Returns whether the bytes are UTF-8 without control characters but blanks and ends of lines. */
static bool is_text(const char *text, size_t n)
{
    for (size_t first = 0, i = 0; i <= n; i++)
        if (i == n || memchr("\t\n\r", text[i], 3)) {
            if (!str_is_printable(text + first, i - first))
                return false;
            first = i + 1;
        }
    return true;
}

int categories_id(struct categories *categories, const char *text, size_t n, bool add, int32_t *id,
                  struct error *err)
{
    struct str *wanted = &categories->wanted;
    int64_t found;
    str_clear(wanted);
    str_append_bytes(wanted, text, n);
    if (map_get(&categories->ids, str_text(wanted), &found) && !memchr(text, '\0', n)) {
        *id = (int32_t)found;
        return 0;
    }
    if (!is_text(text, n))
        return error_set(err, ERR_DATA, "a category that is no text (UTF-8)");
    struct str normal = STR_INIT;
    bool is_number = normalize(text, n, &normal);
    const char *key = str_text(is_number ? &normal : wanted);
    bool is_there = map_get(&categories->ids, key, &found), is_new = !is_there && add;
    if (is_new && categories->texts.n == CATEGORIES_MAX) {
        error_set(err, ERR_DATA, "more than %d categories", CATEGORIES_MAX);
    } else if (is_new) {
        found = (int64_t)categories->texts.n;
        key = arena_strdup(&categories->arena, key);
        vec_push(&categories->texts, key);
        map_put(&categories->ids, key, found);
    }
    *id = is_there || is_new ? (int32_t)found : -1;
    if (!err->code && *id >= 0 && is_number && strcmp(normal.data, str_text(wanted)) != 0)
        map_put(&categories->ids, arena_strdup(&categories->arena, str_text(wanted)), *id);
    str_release(&normal);
    return err->code;
}

/* ---- the order ---- */

struct category {
    const char *text;
    double number;
    int32_t id;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct category *)a)->text, ((const struct category *)b)->text);
}

static int by_number(const void *a, const void *b)
{
    const struct category *one = a, *other = b;
    int order = (one->number > other->number) - (one->number < other->number);
    return order ? order : by_text(a, b);
}

void categories_sort(struct categories *categories, int32_t **ids)
{
    size_t n = categories->texts.n;
    struct category *items = mem_array(n + 1, sizeof *items);
    int32_t *now = arena_array(&categories->arena, n + 1, sizeof *now);
    categories->are_numbers = n > 0;
    for (size_t i = 0; i < n; i++) {
        const char *text = categories->texts.items[i];
        items[i] = (struct category){.text = text, .id = (int32_t)i};
        categories->are_numbers &= !number_float64(text, strlen(text), &items[i].number) &&
                                   items[i].number - items[i].number == 0;
    }
    qsort(items, n, sizeof *items, categories->are_numbers ? by_number : by_text);
    for (size_t i = 0; i < n; i++) {
        categories->texts.items[i] = items[i].text;
        now[items[i].id] = (int32_t)i;
    }
    for (size_t i = 0; i < categories->ids.capacity; i++)
        if (categories->ids.slots[i].key)
            categories->ids.slots[i].value = now[categories->ids.slots[i].value];
    mem_free(items);
    if (ids)
        *ids = now;
}
