/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/slices.h"

#include <string.h>

/* A part of a whole: what is wanted, or what an entry has. */
struct whole_part {
    const char *of;
    struct shape whole;
    struct box box;
};

static struct whole_part part_of(const char *name, const struct shape *shape,
                                 const struct variable_slice *slice)
{
    struct whole_part part = {.of = slice->of ? slice->of : name};
    part.box = variable_slice_box(slice, shape, &part.whole);
    return part;
}

/* How many elements both have. */
static int64_t common(const struct whole_part *a, const struct whole_part *b)
{
    struct box both = box_meet(&a->box, &b->box);
    return box_count(&both);
}

static int misfit(const struct checkpoint *c, const struct variable *like,
                  const struct manifest_tensor *t, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph", c->name,
                     t->name, shape_text_typed(t->type, &t->shape),
                     shape_text_typed(like->type, &like->shape));
}

/* The entry that is the variable as it is; -1: there is none, or it was cut another way. */
static int find_same(const struct checkpoint *c, const struct variable *like, struct error *err)
{
    int i = checkpoint_find(c, like->container, like->name);
    const struct manifest_tensor *t = i < 0 ? NULL : c->entries.items[i].tensor;
    if (!t || !variable_slice_equal(&t->slice, &like->slice) ||
        (t->slice.of && !shape_equal(&t->shape, &like->shape)))
        return -1;
    if (t->type == like->type && shape_compatible(&t->shape, &like->shape))
        return i;
    misfit(c, like, t, err);
    return -1;
}

/* What is wanted of the whole: all of it along axes that the graph leaves open. */
static struct whole_part wanted_of(const struct checkpoint *c, const struct variable *like)
{
    struct whole_part wanted = part_of(like->name, &like->shape, &like->slice);
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        struct whole_part part = part_of(t->name, &t->shape, &t->slice);
        if (!t->slice.of || strcmp(part.of, wanted.of) != 0 || t->shape.rank != like->shape.rank)
            continue;
        for (int k = 0; k < like->shape.rank; k++)
            if (wanted.box.size[k] < 0)
                wanted.box.size[k] = wanted.whole.dims[k] = part.whole.dims[k];
    }
    return wanted;
}

/* Whether entry i has some of what is wanted, or says that it has. */
static bool has_part(const struct checkpoint *c, size_t i, const struct variable *like,
                     const struct whole_part *wanted, struct whole_part *part)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    *part = part_of(t->name, &t->shape, &t->slice);
    return t->shape.rank > 0 && like->shape.rank > 0 && !strcmp(t->container, like->container) &&
           !strcmp(part->of, wanted->of) &&
           (t->shape.rank != like->shape.rank || common(part, wanted) ||
            !shape_equal(&part->whole, &wanted->whole));
}

static bool has_whole_rows(const struct whole_part *part)
{
    for (int i = 1; i < part->box.rank; i++)
        if (part->box.size[i] != part->whole.dims[i])
            return false;
    return true;
}

static int check_slices(const struct checkpoint *c, const struct variable *like, struct error *err)
{
    struct whole_part wanted = wanted_of(c, like), part;
    bool in_rows = has_whole_rows(&wanted);
    int64_t found = 0;
    for (size_t i = 0; i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        if (!has_part(c, i, like, &wanted, &part))
            continue;
        if (t->type != like->type || t->type == STRING || t->shape.rank != like->shape.rank ||
            !shape_equal(&part.whole, &wanted.whole))
            return misfit(c, like, t, err);
        found += common(&part, &wanted);
        in_rows = in_rows && has_whole_rows(&part);
    }
    if (!found)
        return error_set(err, ERR_NOINPUT, "%s: variable '%s' is not in it", c->name, like->name);
    int64_t all = box_count(&wanted.box), unit = in_rows ? all / wanted.box.size[0] : 1;
    if (found == all)
        return 0;
    return error_set(err, ERR_DATA, "%s: variable '%s': %lld of %lld %s are in it", c->name,
                     like->name, (long long)(found / unit), (long long)(all / unit),
                     in_rows ? "rows" : "elements");
}

int checkpoint_has_variable(const struct checkpoint *c, const struct variable *like,
                            struct error *err)
{
    error_clear(err);
    return find_same(c, like, err) >= 0 || err->code ? err->code : check_slices(c, like, err);
}

static int copy_part(struct checkpoint *c, size_t i, const struct whole_part *part,
                     const struct whole_part *wanted, struct tensor *value, struct error *err)
{
    struct tensor tensor;
    if (checkpoint_read(c, (int)i, &tensor, err))
        return err->code;
    box_copy(value->data, &wanted->box, tensor.data, &part->box, dtype_bytes(tensor.type));
    tensor_release(&tensor);
    return 0;
}

static int read_slices(struct checkpoint *c, const struct variable *like, struct tensor *value,
                       uint64_t *updates, struct error *err)
{
    struct whole_part wanted = wanted_of(c, like), part;
    struct tensor result = TENSOR_INIT;
    struct shape shape = {.rank = wanted.box.rank};
    memcpy(shape.dims, wanted.box.size, sizeof shape.dims);
    for (size_t i = 0; i < c->entries.n && !err->code; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        if (!has_part(c, i, like, &wanted, &part))
            continue;
        if ((!result.data && tensor_alloc(&result, t->type, &shape, err)) ||
            copy_part(c, i, &part, &wanted, &result, err))
            break;
        *updates = t->updates > *updates ? t->updates : *updates;
    }
    if (err->code)
        tensor_release(&result);
    else
        *value = result;
    return err->code;
}

int checkpoint_read_variable(struct checkpoint *c, const struct variable *like,
                             struct tensor *value, uint64_t *updates, struct error *err)
{
    *value = (struct tensor)TENSOR_INIT;
    *updates = 0;
    if (checkpoint_has_variable(c, like, err))
        return err->code;
    int i = find_same(c, like, err);
    if (i < 0)
        return read_slices(c, like, value, updates, err);
    *updates = c->entries.items[i].tensor->updates;
    return checkpoint_read(c, i, value, err);
}
