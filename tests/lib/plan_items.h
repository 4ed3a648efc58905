/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: the items of a plan that run.
 */
#ifndef TF_TESTS_LIB_PLAN_ITEMS_H
#define TF_TESTS_LIB_PLAN_ITEMS_H

#include <string.h>

#include "exec/plan/plan_private.h"

/* Returns whether one order runs the plan. */
static inline bool plan_is_whole(const struct plan *plan)
{
    return plan->is_whole;
}

/* Returns the item of that name; NULL: there is none. */
static inline const struct item *plan_item_named(const struct plan *plan, const char *name)
{
    vec_each(item, &plan->items) {
        if (!item->removed && !strcmp(item->name, name))
            return item;
    }
    return NULL;
}

/* Counts items whose kernel's name contains the text. */
static inline int plan_count_kernels(const struct plan *plan, const char *text)
{
    int n = 0;
    vec_each(item, &plan->items) {
        n += !item->removed && strstr(item->kernel, text) != NULL;
    }
    return n;
}

#endif
