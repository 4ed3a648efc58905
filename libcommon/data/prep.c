/* SPDX-License-Identifier: Apache-2.0 */
#include "data/prep.h"

#include <string.h>

#include "base/str.h"

void prep_release(struct prep *prep)
{
    for (size_t i = 0; i < prep->fitted.n; i++) {
        struct fit *fitted = prep->fitted.items[i];
        for (size_t k = 0; fitted->categories && k < fitted->n_columns; k++)
            categories_release(&fitted->categories[k]);
    }
    vec_release(&prep->fitted);
    arena_release(&prep->arena);
}

struct fit *prep_add(struct prep *prep, const char *name)
{
    struct fit *fitted = arena_alloc(&prep->arena, sizeof *fitted);
    *fitted = (struct fit){.name = arena_strdup(&prep->arena, name), .prep = prep};
    vec_push(&prep->fitted, fitted);
    return fitted;
}

void fit_add_categories(struct fit *fitted, size_t n)
{
    fitted->n_columns = n;
    fitted->categories = arena_array(&fitted->prep->arena, n, sizeof *fitted->categories);
}

struct fit *prep_get(const struct prep *prep, const char *name)
{
    for (size_t i = 0; i < prep->fitted.n; i++)
        if (!strcmp(prep->fitted.items[i]->name, name))
            return prep->fitted.items[i];
    return NULL;
}

int prep_find(struct prep *prep, const char *name, struct fit **fitted, struct error *err)
{
    *fitted = prep_get(prep, name);
    if (*fitted)
        return 0;
    const char **names = arena_array(&prep->arena, prep->fitted.n + 1, sizeof *names);
    for (size_t i = 0; i < prep->fitted.n; i++)
        names[i] = prep->fitted.items[i]->name;
    return error_set(err, ERR_DATA, "%s: has nothing fitted to '%s'%s", prep->path, name,
                     str_hint(name, names));
}
