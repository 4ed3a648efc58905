/* SPDX-License-Identifier: Apache-2.0
 *
 * A source as its user knows the model: partitioned variables are whole again, and what a job saves
 * beside its variables is left out.
 */
#include <stdlib.h>

#include "base/container_of.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "checkpoint/formats/source.h"
#include "exec/state/resource.h"

static const char *whole_name(const struct source_tensor *t)
{
    return t->saved.slice.of ? t->saved.slice.of : t->saved.name;
}

static struct box box_of(const struct source_tensor *t, struct shape *whole)
{
    return variable_slice_box(&t->saved.slice, &t->saved.shape, whole);
}

/* Sorts parts by their first elements; parts that begin at the same element keep their order. */
static int by_box(const void *a, const void *b)
{
    const struct source_tensor *const *x = a, *const *y = b;
    struct shape whole;
    struct box one = box_of(*x, &whole), other = box_of(*y, &whole);
    for (int i = 0; i < one.rank && i < other.rank; i++)
        if (one.first[i] != other.first[i])
            return one.first[i] < other.first[i] ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static const struct source_parts *source_parts_of(const struct saved_parts *parts)
{
    return CONTAINER_OF(parts, const struct source_parts, parts);
}

static struct saved_part tensor_at(const struct saved_parts *parts, size_t i)
{
    return manifest_tensor_part(&source_parts_of(parts)->tensors[i].saved);
}

static int read_tensor(const struct saved_parts *parts, size_t i, struct tensor *value,
                       struct error *err)
{
    const struct source_parts *of = source_parts_of(parts);
    return source_read_tensor(of->source, &of->tensors[i], value, err);
}

struct source_parts source_as_parts(struct source *s, const struct source_tensor *tensors, size_t n)
{
    return (struct source_parts){{s->name, n, tensor_at, read_tensor, NULL}, s, tensors};
}

static struct variable variable_of(const struct source_tensor *whole)
{
    return (struct variable){.container = whole->saved.container,
                             .name = whole->saved.name,
                             .type = whole->saved.type,
                             .shape = whole->saved.shape};
}

/* Tensors of one name in one container, which may form a whole. */
struct group {
    size_t first, n; /* of its tensors */
    bool is_cut;     /* one of them is marked as a slice */
    bool is_joined;  /* into `whole` */
    struct source_tensor whole;
};

struct groups {
    VEC(struct group) items;
    size_t *of;   /* the group of each tensor */
    size_t *next; /* the next tensor of the same group; 0: none */
    struct map places;
    struct arena keys;
};

static struct groups groups_of(const struct source *s)
{
    struct groups g = {.of = mem_array(s->tensors.n + 1, sizeof *g.of),
                       .next = mem_array(s->tensors.n + 1, sizeof *g.next)};
    size_t *last = mem_array(s->tensors.n + 1, sizeof *last); /* of each group */
    for (size_t i = 0; i < s->tensors.n; i++) {
        const struct source_tensor *t = &s->tensors.items[i];
        const char *key = arena_printf(&g.keys, "%s\n%s", t->saved.container, whole_name(t));
        int64_t at;
        if (map_get(&g.places, key, &at)) {
            g.next[last[at]] = i;
        } else {
            const struct group group = {.first = i};
            at = (int64_t)g.items.n;
            vec_push(&g.items, group);
            map_put(&g.places, key, at);
        }
        last[at] = i;
        g.of[i] = (size_t)at;
        g.items.items[at].n++;
        g.items.items[at].is_cut |= t->saved.slice.of != NULL;
    }
    mem_free(last);
    return g;
}

/* Errors are those of saved_parts_read; nothing is changed then. */
static int join(struct source *s, const struct groups *g, struct group *group, struct error *err)
{
    size_t n = 0;
    const struct source_tensor **sorted = mem_array(group->n, sizeof *sorted);
    struct source_tensor *slices = arena_array(&s->arena, group->n, sizeof *slices);
    for (size_t i = group->first; n < group->n; i = g->next[i])
        sorted[n++] = &s->tensors.items[i];
    qsort(sorted, n, sizeof *sorted, by_box);
    for (size_t i = 0; i < n; i++)
        slices[i] = *sorted[i];
    mem_free(sorted);
    struct source_tensor whole = slices[0];
    whole.saved.name = whole_name(&slices[0]);
    box_of(&slices[0], &whole.saved.shape);
    whole.saved.slice = (struct variable_slice){.of = NULL};
    whole.value = (struct tensor)TENSOR_INIT;
    whole.entry = -1;
    whole.slices = slices;
    whole.n_slices = n;
    whole.saved.bytes = (uint64_t)shape_bytes(&whole.saved.shape, whole.saved.type);
    for (size_t i = 1; i < n; i++)
        whole.saved.updates = slices[i].saved.updates > whole.saved.updates
                                  ? slices[i].saved.updates
                                  : whole.saved.updates;
    group->whole = whole;
    const struct source_parts joined = source_as_parts(s, slices, n);
    const struct variable like = variable_of(&group->whole);
    if (saved_parts_read(&joined.parts, &like, NULL, NULL, err))
        return err->code;
    group->is_joined = true;
    return 0;
}

/* Joins the tensor `name`; NULL: all that can be joined. Returns the first error. */
static int join_all(struct source *s, const char *name, struct error *err)
{
    struct groups g = groups_of(s);
    error_clear(err);
    for (size_t i = 0; i < g.items.n; i++) {
        struct error failed = ERROR_INIT;
        struct group *group = &g.items.items[i];
        const struct source_tensor *t = &s->tensors.items[group->first];
        /* A file may contain a variable twice. */
        bool joins = (t->saved.type != STRING || t->saved.slice.of) &&
                     !resource_is_part(t->saved.name) &&
                     (group->is_cut || (!s->checkpoint && group->n > 1));
        if (joins && (!name || source_is_named(t->saved.container, whole_name(t), name)) &&
            join(s, &g, group, &failed) && !err->code)
            *err = failed;
    }
    /* Puts each whole in the place of its first part. */
    size_t end = 0;
    for (size_t i = 0; i < s->tensors.n; i++) {
        const struct group *group = &g.items.items[g.of[i]];
        if (!group->is_joined)
            s->tensors.items[end++] = s->tensors.items[i];
        else if (group->first == i)
            s->tensors.items[end++] = group->whole;
    }
    s->tensors.n = end;
    vec_release(&g.items);
    map_release(&g.places);
    arena_release(&g.keys);
    mem_free(g.of);
    mem_free(g.next);
    return err->code;
}

int source_join_slices(struct source *s, struct error *err)
{
    return join_all(s, NULL, err);
}

void source_drop_resources(struct source *s)
{
    size_t n = 0;
    vec_each(t, &s->tensors) {
        if (resource_is_part(t->saved.name))
            tensor_release(&t->value);
        else
            s->tensors.items[n++] = *t;
    }
    s->tensors.n = n;
}

void source_drop_texts(struct source *s, void (*left_out)(void *context, const char *line),
                       void *context)
{
    size_t n = 0;
    for (size_t i = 0; i < s->tensors.n; i++) {
        struct source_tensor *t = &s->tensors.items[i];
        if (t->saved.type != STRING) {
            s->tensors.items[n++] = *t;
            continue;
        }
        log_tell(left_out, context, "%s: '%s' is text, and left out", s->name,
                 source_outer_name(s, i));
        tensor_release(&t->value);
    }
    s->tensors.n = n;
}

int source_find_whole(struct source *s, const char *name, struct error *err)
{
    int found = source_find(s, name);
    error_clear(err);
    if (found >= 0)
        return found;
    if (!join_all(s, name, err) && (found = source_find(s, name)) >= 0)
        return found;
    VEC(const char *) names = {0};
    for (size_t i = 0; i < s->tensors.n; i++)
        vec_push(&names, s->tensors.items[i].saved.name);
    vec_push(&names, NULL);
    if (!err->code)
        error_set(err, ERR_NOINPUT, "%s: there is no tensor '%s' in it%s", s->name, name,
                  str_hint(name, names.items));
    vec_release(&names);
    return -1;
}

int source_read_slices(struct source *s, const struct source_tensor *whole, struct tensor *value,
                       struct error *err)
{
    const struct source_parts joined = source_as_parts(s, whole->slices, whole->n_slices);
    const struct variable like = variable_of(whole);
    uint64_t updates;
    return saved_parts_read(&joined.parts, &like, value, &updates, err);
}
