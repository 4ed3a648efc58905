/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests that look for a variable in a checkpoint.
 */
#ifndef TF_TESTS_LIB_ENTRIES_H
#define TF_TESTS_LIB_ENTRIES_H

#include <string.h>

#include "checkpoint/store/checkpoint.h"

/* Returns -1 if the default container has no tensor of that name. */
static inline int entry_find(const struct checkpoint *c, const char *name)
{
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        if (!strcmp(t->name, name) && !strcmp(t->container, "default"))
            return (int)i;
    }
    return -1;
}

#endif
