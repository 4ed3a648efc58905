/* SPDX-License-Identifier: Apache-2.0
 *
 * A source as a user knows the model: tables whole that were cut into slices of rows, and without
 * what a job keeps beside its variables.
 */
#include <string.h>

#include "base/memory.h"
#include "checkpoint/formats/source.h"
#include "exec/state/resource.h"

static bool is_of(const struct source_tensor *t, const struct source_tensor *slice)
{
    return t->slice.of && !strcmp(t->slice.of, slice->slice.of) &&
           !strcmp(t->container, slice->container);
}

static struct box box_of(const struct source_tensor *t, struct shape *whole)
{
    return variable_slice_box(&t->slice, &t->shape, whole);
}

static bool fits(const struct source_tensor *t, const struct source_tensor *first)
{
    struct shape whole, firsts;
    box_of(t, &whole);
    box_of(first, &firsts);
    return t->type == first->type && t->type != STRING && t->shape.rank > 0 &&
           shape_equal(&whole, &firsts);
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

/* Whether each element is there, once. */
static bool is_complete(const struct source_tensor *slices, size_t n)
{
    struct shape whole;
    int64_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct box box = box_of(&slices[i], &whole);
        if (!fits(&slices[i], &slices[0]))
            return false;
        for (size_t k = 0; k < i; k++) {
            struct box other = box_of(&slices[k], &whole), both = box_meet(&box, &other);
            if (box_count(&both))
                return false;
        }
        count += box_count(&box);
    }
    return count == shape_count(&whole);
}

static struct source_tensor whole_of(const struct source_tensor *slices, size_t n)
{
    struct source_tensor whole = slices[0];
    whole.name = slices[0].slice.of;
    box_of(&slices[0], &whole.shape);
    whole.slice = (struct variable_slice){.of = NULL};
    whole.value = (struct tensor)TENSOR_INIT;
    whole.entry = -1;
    whole.slices = slices;
    whole.n_slices = n;
    for (size_t i = 1; i < n; i++) {
        whole.bytes += slices[i].bytes;
        whole.updates = slices[i].updates > whole.updates ? slices[i].updates : whole.updates;
    }
    return whole;
}

/* The slices from tensor i on that are of the same whole, as one in its place; false: they stay, as
 * some are missing. */
static bool join(struct source *s, size_t i)
{
    size_t n = 0, end = i + 1;
    struct source_tensor first = s->tensors.items[i];
    for (size_t k = i; k < s->tensors.n; k++)
        n += is_of(&s->tensors.items[k], &first);
    struct source_tensor *slices = arena_array(&s->arena, n, sizeof *slices);
    n = 0;
    for (size_t k = i; k < s->tensors.n; k++)
        if (is_of(&s->tensors.items[k], &first))
            insert(slices, n++, &s->tensors.items[k]);
    if (!is_complete(slices, n))
        return false;
    s->tensors.items[i] = whole_of(slices, n);
    for (size_t k = i + 1; k < s->tensors.n; k++)
        if (!is_of(&s->tensors.items[k], &first))
            s->tensors.items[end++] = s->tensors.items[k];
    s->tensors.n = end;
    return true;
}

void source_join_slices(struct source *s)
{
    for (size_t i = 0; i < s->tensors.n; i++)
        if (s->tensors.items[i].slice.of)
            join(s, i);
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

int source_find_whole(struct source *s, const char *name)
{
    int i = source_find(s, name);
    if (i >= 0)
        return i;
    source_join_slices(s);
    return source_find(s, name);
}

int source_read_slices(struct source *s, const struct source_tensor *whole, struct tensor *value,
                       struct error *err)
{
    const struct variable_slice none = {.of = NULL};
    struct shape shape;
    struct box all = variable_slice_box(&none, &whole->shape, &shape);
    if (tensor_alloc(value, whole->type, &whole->shape, err))
        return err->code;
    for (size_t i = 0; i < whole->n_slices && !err->code; i++) {
        struct tensor part;
        struct box box = box_of(&whole->slices[i], &shape);
        if (source_read_tensor(s, &whole->slices[i], &part, err))
            break;
        box_copy(value->data, &all, part.data, &box, dtype_bytes(whole->type));
        tensor_release(&part);
    }
    if (err->code)
        tensor_release(value);
    return err->code;
}
