/* SPDX-License-Identifier: Apache-2.0
 *
 * The categories of a column: texts, each with an id. A number is one category however it is
 * written: 1 and 1.0. Not thread-safe.
 */
#ifndef TF_DATA_CATEGORIES_H
#define TF_DATA_CATEGORIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

#define CATEGORIES_MAX ((int32_t)1 << 24)

struct categories {
    VEC(const char *) texts; /* by id */
    bool are_numbers;        /* all are; set by categories_sort */
    struct map ids;          /* by text, also by other spellings of a number */
    struct arena arena;
    struct str wanted; /* buffer for the text that is looked up */
};

void categories_release(struct categories *categories);

/* Gets the id of a text, -1 if it is no category. With `add` it then becomes one, ids in order of
 * addition. ERR_DATA for too many, and for invalid UTF-8 or control characters. */
int categories_id(struct categories *categories, const char *text, size_t n, bool add, int32_t *id,
                  struct error *err);

/* Renumbers ids in ascending order: of the values if all are numbers, else of the bytes. *ids, if
 * not NULL, gets the new id by old id, in the arena's memory. */
void categories_sort(struct categories *categories, int32_t **ids);

#endif
