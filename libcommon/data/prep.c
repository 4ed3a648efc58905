/* SPDX-License-Identifier: Apache-2.0 */
#include "data/prep.h"

#include <string.h>

#include "base/str.h"

void prep_release(struct prep *prep)
{
    vec_release(&prep->fitted);
    arena_release(&prep->arena);
}

struct fitted *prep_add(struct prep *prep, const char *name)
{
    struct fitted *fitted = arena_alloc(&prep->arena, sizeof *fitted);
    *fitted = (struct fitted){.name = arena_strdup(&prep->arena, name), .prep = prep};
    vec_push(&prep->fitted, fitted);
    return fitted;
}

int prep_find(struct prep *prep, const char *name, const struct fitted **fitted, struct error *err)
{
    const char **names = arena_array(&prep->arena, prep->fitted.n + 1, sizeof *names);
    for (size_t i = 0; i < prep->fitted.n; i++) {
        *fitted = prep->fitted.items[i];
        if (!strcmp((*fitted)->name, name))
            return 0;
        names[i] = (*fitted)->name;
    }
    names[prep->fitted.n] = NULL;
    const char *nearest = str_nearest(name, names);
    return error_set(err, ERR_DATA, "%s: has nothing fitted to '%s'%s%s%s", prep->path, name,
                     nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'" : "");
}
