/* SPDX-License-Identifier: Apache-2.0
 *
 * A source as a user knows the model: tables whole that were cut into slices of rows, and without
 * what a job keeps beside its variables.
 */
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "checkpoint/formats/source.h"
#include "exec/state/resource.h"

static const char *whole_name(const struct source_tensor *t)
{
    return t->slice.of ? t->slice.of : t->name;
}

static bool is_of_same(const struct source_tensor *a, const struct source_tensor *b)
{
    return !strcmp(whole_name(a), whole_name(b)) && !strcmp(a->container, b->container);
}

static struct box box_of(const struct source_tensor *t, struct shape *whole)
{
    return variable_slice_box(&t->slice, &t->shape, whole);
}

/* In the order of their first elements. */
static void insert(struct source_tensor *slices, size_t n, const struct source_tensor *t)
{
    struct shape whole;
    struct box box = box_of(t, &whole);
    size_t at = n;
    for (; at > 0; at--) {
        struct box before = box_of(&slices[at - 1], &whole);
        int i = 0;
        while (i < box.rank && i < before.rank && before.first[i] == box.first[i])
            i++;
        if (i == box.rank || i == before.rank || before.first[i] < box.first[i])
            break;
        slices[at] = slices[at - 1];
    }
    slices[at] = *t;
}

/* What slices that were joined are read by. */
struct slice_parts {
    struct saved_parts parts;
    struct source *source;
    const struct source_tensor *slices;
};

static const struct slice_parts *slice_parts_of(const struct saved_parts *parts)
{
    return CONTAINER_OF(parts, const struct slice_parts, parts);
}

static struct saved_part slice_at(const struct saved_parts *parts, size_t i)
{
    return source_part(&slice_parts_of(parts)->slices[i]);
}

static int read_slice(const struct saved_parts *parts, size_t i, struct tensor *value,
                      struct error *err)
{
    const struct slice_parts *slices = slice_parts_of(parts);
    return source_read_tensor(slices->source, &slices->slices[i], value, err);
}

static struct slice_parts slices_as_parts(struct source *s, const struct source_tensor *slices,
                                          size_t n)
{
    return (struct slice_parts){{s->name, n, slice_at, read_slice, NULL}, s, slices};
}

static struct variable variable_of(const struct source_tensor *whole)
{
    return (struct variable){.container = whole->container,
                             .name = whole->name,
                             .type = whole->type,
                             .shape = whole->shape};
}

static struct source_tensor whole_of(const struct source_tensor *slices, size_t n)
{
    struct source_tensor whole = slices[0];
    whole.name = whole_name(&slices[0]);
    box_of(&slices[0], &whole.shape);
    whole.slice = (struct variable_slice){.of = NULL};
    whole.value = (struct tensor)TENSOR_INIT;
    whole.entry = -1;
    whole.slices = slices;
    whole.n_slices = n;
    whole.bytes = (uint64_t)shape_bytes(&whole.shape, whole.type);
    for (size_t i = 1; i < n; i++)
        whole.updates = slices[i].updates > whole.updates ? slices[i].updates : whole.updates;
    return whole;
}

/* What is of the whole of tensor i, as one in the place of the first. Errors as of
 * saved_parts_have: all stays as it is. */
static int join(struct source *s, size_t i, struct error *err)
{
    const struct source_tensor one = s->tensors.items[i];
    size_t n = 0, end = 0;
    for (size_t k = 0; k < s->tensors.n; k++)
        n += is_of_same(&s->tensors.items[k], &one);
    struct source_tensor *slices = arena_array(&s->arena, n, sizeof *slices);
    n = 0;
    for (size_t k = 0; k < s->tensors.n; k++)
        if (is_of_same(&s->tensors.items[k], &one))
            insert(slices, n++, &s->tensors.items[k]);
    const struct source_tensor whole = whole_of(slices, n);
    const struct slice_parts joined = slices_as_parts(s, slices, n);
    const struct variable like = variable_of(&whole);
    if (saved_parts_have(&joined.parts, &like, err))
        return err->code;
    bool is_placed = false;
    for (size_t k = 0; k < s->tensors.n; k++) {
        const struct source_tensor t = s->tensors.items[k];
        if (!is_of_same(&t, &one)) {
            s->tensors.items[end++] = t;
        } else if (!is_placed) {
            s->tensors.items[end++] = whole;
            is_placed = true;
        }
    }
    s->tensors.n = end;
    return 0;
}

/* Whether tensor i is the first of what makes one whole. Files may have a variable twice. */
static bool is_first_part(const struct source *s, size_t i)
{
    const struct source_tensor *t = &s->tensors.items[i];
    bool is_part = t->slice.of != NULL, is_first = is_part || !s->checkpoint;
    if ((t->type == STRING && !t->slice.of) || resource_is_part(t->name))
        return false;
    for (size_t k = 0; k < i && is_first; k++)
        is_first = !is_of_same(&s->tensors.items[k], t);
    for (size_t k = i + 1; k < s->tensors.n && is_first && !is_part; k++)
        is_part = is_of_same(&s->tensors.items[k], t);
    return is_first && is_part;
}

int source_join_slices(struct source *s, struct error *err)
{
    struct error first = ERROR_INIT;
    error_clear(err);
    for (size_t i = 0; i < s->tensors.n; i++)
        if (is_first_part(s, i) && join(s, i, err) && !first.code)
            first = *err;
    *err = first;
    return err->code;
}

void source_drop_resources(struct source *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->tensors.n; i++) {
        struct source_tensor *t = &s->tensors.items[i];
        if (resource_is_part(t->name))
            tensor_release(&t->value);
        else
            s->tensors.items[n++] = *t;
    }
    s->tensors.n = n;
}

int source_find_whole(struct source *s, const char *name, struct error *err)
{
    int found = source_find(s, name);
    error_clear(err);
    if (found >= 0)
        return found;
    source_join_slices(s, err);
    error_clear(err); /* of any variable */
    if ((found = source_find(s, name)) >= 0)
        return found;
    for (size_t i = 0; i < s->tensors.n && !err->code; i++) {
        const struct source_tensor *t = &s->tensors.items[i];
        if (t->slice.of && source_is_named(t->container, t->slice.of, name))
            join(s, i, err);
    }
    if (!err->code)
        error_set(err, ERR_NOINPUT, "%s: there is no tensor '%s' in it", s->name, name);
    return -1;
}

int source_read_slices(struct source *s, const struct source_tensor *whole, struct tensor *value,
                       struct error *err)
{
    const struct slice_parts joined = slices_as_parts(s, whole->slices, whole->n_slices);
    const struct variable like = variable_of(whole);
    uint64_t updates;
    return saved_parts_read(&joined.parts, &like, value, &updates, err);
}
