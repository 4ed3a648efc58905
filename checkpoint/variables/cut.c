/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/cut.h"

#include "base/str.h"
#include "exec/state/resource.h"

struct part_writer {
    struct resource_writer writer; /* first */
    struct cut *cut;
};

static int take_part(struct resource_writer *writer, const char *container, const char *name,
                     const struct tensor *value, struct error *err)
{
    struct part_writer *parts = (struct part_writer *)writer;
    struct cut *cut = parts->cut;
    struct save_tensor part = {.container = arena_strdup(&cut->arena, container),
                               .name = arena_strdup(&cut->arena, name)};
    if (tensor_copy(&part.value, value, err))
        return err->code;
    vec_push(&cut->tensors, part);
    return 0;
}

static void take_variables(const variable_vec *variables, struct cut *cut)
{
    variable_marks_place(variables, &cut->marks);
    for (size_t i = 0; i < cut->marks.n; i++) {
        const struct variable_mark *mark = &cut->marks.items[i];
        struct save_tensor tensor = {mark->variable->container, mark->variable->name, mark->updates,
                                     TENSOR_INIT, mark->slice};
        vec_push(&cut->tensors, tensor);
    }
}

int cut_take(struct variable_store *store, const variable_vec *variables, struct cut *cut,
             struct error *err)
{
    struct part_writer parts = {{take_part}, cut};
    *cut = (struct cut){0};
    error_clear(err);
    take_variables(variables, cut);
    return resources_save(store, &parts.writer, err);
}

int cut_collect(struct cut *cut, struct error *err)
{
    error_clear(err);
    if (variable_marks_collect(&cut->marks, err))
        return err->code;
    for (size_t i = 0; i < cut->marks.n; i++)
        cut->tensors.items[i].value = cut->marks.items[i].value; /* which owns it */
    return 0;
}

void cut_release(struct cut *cut)
{
    for (size_t i = cut->marks.n; i < cut->tensors.n; i++)
        tensor_release(&cut->tensors.items[i].value);
    variable_marks_release(&cut->marks);
    vec_release(&cut->tensors);
    arena_release(&cut->arena);
    *cut = (struct cut){0};
}
