/* SPDX-License-Identifier: Apache-2.0
 *
 * The categories of a column: texts, each with an id. Numbers are one category however they are
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
    bool are_numbers;        /* all of them; set by categories_sort */
    struct map ids;          /* of texts, also of other ways to write a number */
    struct arena arena;
    struct str wanted; /* the text that is looked up */
};

void categories_release(struct categories *categories);

/* The id of a text, -1 if it is none of them. `add`: then it becomes one, ids in the order in which
 * they came. ERR_DATA for too many, or for what is no UTF-8 or has control characters in it. */
int categories_id(struct categories *categories, const char *text, size_t n, bool add, int32_t *id,
                  struct error *err);

/* Gives ids in ascending order: of the values if all are numbers, of the bytes if not. *ids, if
 * there is a place for it, gets the new one of each old one, in memory of the arena. */
void categories_sort(struct categories *categories, int32_t **ids);

#endif
