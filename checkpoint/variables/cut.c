/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/cut.h"

void cut_take(struct variable_store *store, const variable_vec *variables, struct cut *cut)
{
    *cut = (struct cut){0};
    variable_snapshots_place(variables, &cut->snapshots);
    vec_each(snapshot, &cut->snapshots) {
        struct variable_record tensor = {.container = snapshot->variable->container,
                                         .name = snapshot->variable->name,
                                         .updates = snapshot->updates,
                                         .slice = snapshot->slice};
        vec_push(&cut->tensors, tensor);
    }
    resource_snapshots_place(store, &cut->resources);
}

/* ---- collecting ---- */

struct part_writer {
    struct resource_sink sink; /* first */
    struct cut *cut;
};

static int cut_part(struct resource_sink *sink, const char *container, const char *name,
                    const struct tensor *value, struct error *err)
{
    struct part_writer *parts = (struct part_writer *)sink;
    struct cut *cut = parts->cut;
    struct variable_record part = {.container = arena_strdup(&cut->arena, container),
                                   .name = arena_strdup(&cut->arena, name)};
    if (value->buffer)
        tensor_share(&part.value, value);
    else if (tensor_copy(&part.value, value, err))
        return err->code;
    vec_push(&cut->tensors, part);
    return 0;
}

static void drop_parts(struct cut *cut)
{
    while (cut->tensors.n > cut->snapshots.n)
        tensor_release(&vec_pop(&cut->tensors).value);
}

int cut_collect(struct cut *cut, struct error *err)
{
    struct part_writer parts = {{cut_part, NULL}, cut};
    error_clear(err);
    if (variable_snapshots_collect(&cut->snapshots, err))
        return err->code;
    for (size_t i = 0; i < cut->snapshots.n; i++)
        cut->tensors.items[i].value = cut->snapshots.items[i].value; /* owned by the snapshot */
    if (resource_snapshots_save(&cut->resources, &parts.sink, err)) {
        drop_parts(cut);
        return err->code;
    }
    resource_snapshots_release(&cut->resources);
    return 0;
}

void cut_release(struct cut *cut)
{
    drop_parts(cut);
    resource_snapshots_release(&cut->resources);
    variable_snapshots_release(&cut->snapshots);
    vec_release(&cut->tensors);
    arena_release(&cut->arena);
    *cut = (struct cut){0};
}
