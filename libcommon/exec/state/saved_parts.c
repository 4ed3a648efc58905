/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/saved_parts_private.h"

#include <string.h>

/* Of more slices of a variable is not asked one by one whether any overlap. */
#define COMPARED_MAX 1024

void saved_parts_index(const struct saved_parts *parts, struct name_index *index)
{
    for (size_t i = parts->n; i-- > 0;) {
        struct saved_part part = parts->at(parts, i);
        name_index_add(index, part.name, (int)i);
        if (part.slice->of && strcmp(part.slice->of, part.name) != 0)
            name_index_add(index, part.slice->of, (int)i);
    }
}

static struct whole_part part_of(const char *name, const struct shape *shape,
                                 const struct variable_slice *slice)
{
    struct whole_part part = {.of = slice->of ? slice->of : name};
    part.box = variable_slice_box(slice, shape, &part.whole);
    return part;
}

static int64_t count_common(const struct box *a, const struct box *b)
{
    struct box both = box_meet(a, b);
    return box_count(&both);
}

/* ---- under the variable's own name ---- */

/* The part that is the variable as it is; -1: there is none, or it was cut another way. A slice
 * that does not say so, as those of files once did not, is known by its name. */
static int find_same(const struct part_search *s, struct saved_part *same)
{
    const struct variable *like = s->like;
    for (const struct name_link *l = name_index_first(s->index, like->name); l;
         l = name_index_next(s->index, l)) {
        *same = s->parts->at(s->parts, (size_t)l->value);
        if (strcmp(same->name, like->name) != 0 || strcmp(same->container, like->container) != 0)
            continue;
        bool is_cut_so = !same->slice->of || (variable_slice_equal(same->slice, &like->slice) &&
                                              shape_equal(same->shape, &like->shape));
        return is_cut_so ? l->value : -1;
    }
    return -1;
}

/* It has that type and shape, where another shape is wanted. */
static int misfit(const struct part_search *s, const char *name, enum dtype type,
                  const struct shape *shape, const struct shape *wanted, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph",
                     s->parts->from, name, shape_text_typed(type, shape),
                     shape_text_typed(s->like->type, wanted));
}

static int check_same(const struct part_search *s, const struct saved_part *same, struct error *err)
{
    const struct variable *like = s->like;
    if (same->type == like->type && shape_compatible(same->shape, &like->shape))
        return 0;
    return misfit(s, like->name, same->type, same->shape, &like->shape, err);
}

/* ---- of the same whole ---- */

static bool is_of_whole(const struct part_search *s, const struct saved_part *saved)
{
    const char *of = saved->slice->of ? saved->slice->of : saved->name;
    return !strcmp(of, s->wanted.of) && !strcmp(saved->container, s->like->container);
}

/* Of what the graph leaves open all that there is is wanted. */
static void close_wanted(struct whole_part *wanted, const struct whole_part *part)
{
    if (wanted->box.rank < 0) {
        wanted->whole = part->whole;
        wanted->box = (struct box){.rank = part->whole.rank};
        memcpy(wanted->box.size, part->whole.dims, sizeof wanted->box.size);
    }
    for (int k = 0; k < wanted->box.rank && wanted->box.rank == part->box.rank; k++)
        if (wanted->box.size[k] < 0)
            wanted->box.size[k] = wanted->whole.dims[k] = part->whole.dims[k];
}

static bool has_whole_rows(const struct whole_part *part)
{
    for (int i = 1; i < part->box.rank; i++)
        if (part->box.size[i] != part->whole.dims[i])
            return false;
    return true;
}

static int disagree(const struct part_search *s, const struct saved_part *saved,
                    const struct whole_part *part, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: variable '%s' is %s by '%s', but %s by '%s'",
                     s->parts->from, s->wanted.of, shape_text_typed(s->first.type, &s->first_whole),
                     s->first.name, shape_text_typed(saved->type, &part->whole), saved->name);
}

static int take_part(struct part_search *s, size_t i, const struct saved_part *saved,
                     struct error *err)
{
    struct whole_part part = part_of(saved->name, saved->shape, saved->slice);
    if (!s->is_known) {
        s->is_known = true;
        s->first = *saved;
        s->first_whole = part.whole;
        close_wanted(&s->wanted, &part);
    }
    if (saved->type != s->first.type || !shape_equal(&part.whole, &s->first_whole))
        return disagree(s, saved, &part, err);
    if (saved->type != s->like->type || saved->type == STRING ||
        !shape_equal(&part.whole, &s->wanted.whole))
        return misfit(s, s->wanted.of, s->first.type, &s->first_whole, &s->wanted.whole, err);
    s->in_rows = s->in_rows && has_whole_rows(&part);
    if (count_common(&part.box, &s->wanted.box)) {
        struct found_part found = {i, part.box};
        vec_push(&s->found, found);
    }
    return 0;
}

static bool may_overlap(const struct part_search *s)
{
    if (s->found.n > COMPARED_MAX)
        return true;
    for (size_t i = 0; i < s->found.n; i++)
        for (size_t k = 0; k < i; k++)
            if (count_common(&s->found.items[i].box, &s->found.items[k].box))
                return true;
    return false;
}

static int take_parts(struct part_search *s, struct error *err)
{
    for (const struct name_link *l = name_index_first(s->index, s->wanted.of); l;
         l = name_index_next(s->index, l)) {
        size_t i = (size_t)l->value;
        struct saved_part saved = s->parts->at(s->parts, i);
        if (is_of_whole(s, &saved) && take_part(s, i, &saved, err))
            return err->code;
    }
    s->in_rows = s->in_rows && has_whole_rows(&s->wanted);
    s->overlaps = may_overlap(s);
    return 0;
}

/* ---- gaps ---- */

struct shape saved_parts_shape(const struct part_search *s)
{
    struct shape shape = {.rank = s->wanted.box.rank};
    memcpy(shape.dims, s->wanted.box.size, sizeof shape.dims);
    return shape;
}

int saved_parts_map(const struct part_search *s, struct tensor *map, struct error *err)
{
    struct shape shape = saved_parts_shape(s);
    if (tensor_alloc(map, UINT8, &shape, err))
        return err->code;
    memset(map->data, 0, tensor_bytes(map));
    return 0;
}

static int64_t sum_found(const struct part_search *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->found.n; i++)
        n += count_common(&s->found.items[i].box, &s->wanted.box);
    return n;
}

/* Elements that are in several parts once. */
static int64_t count_found(const struct part_search *s, struct error *err)
{
    int64_t n = 0;
    struct tensor map;
    if (saved_parts_map(s, &map, err))
        return -1;
    for (size_t i = 0; i < s->found.n; i++)
        box_fill(map.data, &s->wanted.box, &s->found.items[i].box, 1);
    for (size_t i = 0; i < tensor_bytes(&map); i++)
        n += ((const uint8_t *)map.data)[i];
    tensor_release(&map);
    return n;
}

/* A map is made only of what has at least as many elements in the parts: a file may say anything of
 * a whole. */
static int check_gaps(const struct part_search *s, struct error *err)
{
    int64_t all = box_count(&s->wanted.box), found = sum_found(s);
    bool is_exact = !s->overlaps || found >= all;
    if (s->overlaps && is_exact)
        found = count_found(s, err);
    if (err->code || found == all)
        return err->code;
    int64_t unit = s->in_rows ? all / s->wanted.box.size[0] : 1;
    const char *units = s->in_rows ? "rows" : "elements";
    if (!is_exact)
        return error_set(err, ERR_DATA, "%s: variable '%s': not all of %lld %s are in it",
                         s->parts->from, s->like->name, (long long)(all / unit), units);
    return error_set(err, ERR_DATA, "%s: variable '%s': %lld of %lld %s are in it", s->parts->from,
                     s->like->name, (long long)(found / unit), (long long)(all / unit), units);
}

/* ---- both ---- */

static int search(struct part_search *s, int *same, struct error *err)
{
    const struct variable *like = s->like;
    struct saved_part saved;
    s->wanted = part_of(like->name, &like->shape, &like->slice);
    s->in_rows = true;
    *same = find_same(s, &saved);
    if (*same >= 0 && check_same(s, &saved, err))
        return err->code;
    bool is_uncut = *same >= 0 && like->type == STRING;
    if (is_uncut || take_parts(s, err))
        return err->code;
    if (*same >= 0 && s->found.n <= 1)
        return 0;
    *same = -1;
    if (!s->is_known)
        return error_set(err, ERR_NOINPUT, "%s: variable '%s' is not in it", s->parts->from,
                         like->name);
    return check_gaps(s, err);
}

int saved_parts_search(struct part_search *s, int *same, struct error *err)
{
    struct name_index own = {0};
    if (!s->parts->index)
        saved_parts_index(s->parts, &own);
    s->index = s->parts->index ? s->parts->index : &own;
    search(s, same, err);
    name_index_release(&own);
    return err->code;
}

int saved_parts_have(const struct saved_parts *parts, const struct variable *like,
                     struct error *err)
{
    struct part_search s = {.parts = parts, .like = like};
    int same;
    error_clear(err);
    saved_parts_search(&s, &same, err);
    vec_release(&s.found);
    return err->code;
}
