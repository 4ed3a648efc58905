/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/vec.h"
#include "graph/op_parse.h"

struct registry {
    struct arena arena;
    VEC(const struct op *) ops; /* sorted by name */
    struct map names;           /* -> pointer */
};

struct registry *registry_new(void)
{
    return mem_alloc(sizeof(struct registry));
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    vec_release(&registry->ops);
    map_release(&registry->names);
    arena_release(&registry->arena);
    mem_free(registry);
}

static int compare_ops(const void *a, const void *b)
{
    return strcmp((*(const struct op *const *)a)->def->name,
                  (*(const struct op *const *)b)->def->name);
}

int registry_add(struct registry *registry, const struct op_def *const *ops, size_t n,
                 struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        struct op *op = arena_alloc(&registry->arena, sizeof *op);
        if (registry_find(registry, ops[i]->name))
            return error_set(err, ERR_INTERNAL, "op %s is declared twice", ops[i]->name);
        int code = op_parse(&registry->arena, ops[i], op, err);
        if (code)
            return code;
        map_put(&registry->names, ops[i]->name, (int64_t)(intptr_t)op);
        vec_push(&registry->ops, op);
    }
    if (registry->ops.n)
        qsort(registry->ops.items, registry->ops.n, sizeof *registry->ops.items, compare_ops);
    return 0;
}

const struct op *registry_find(const struct registry *registry, const char *name)
{
    int64_t value;
    return map_get(&registry->names, name, &value) ? (const struct op *)(intptr_t)value : NULL;
}

size_t registry_count(const struct registry *registry)
{
    return registry->ops.n;
}

const struct op *registry_at(const struct registry *registry, size_t index)
{
    return registry->ops.items[index];
}

const char *registry_nearest(const struct registry *registry, const char *name)
{
    const char **names = mem_array(registry->ops.n + 1, sizeof *names);
    for (size_t i = 0; i < registry->ops.n; i++)
        names[i] = registry->ops.items[i]->def->name;
    const char *nearest = str_nearest(name, names);
    mem_free(names);
    return nearest;
}

int registry_unknown(const struct registry *registry, const char *name, struct error *err)
{
    const char *nearest = registry_nearest(registry, name);
    return error_set(
        err, ERR_DATA, "unknown op '%s'%s%s%s; ops of your own come with --ops FILE.so", name,
        nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

int op_find_attr(const struct op *op, const char *name)
{
    int i = (int)names_find(op->attrs, (size_t)op->n_attrs, name);
    return i < op->n_attrs ? i : -1;
}
