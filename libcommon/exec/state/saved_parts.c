/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/saved_parts.h"

#include <string.h>

/* More slices of a variable are not compared in pairs for overlaps. */
#define COMPARED_MAX 1024

/* A part of a whole: the wanted one, or a saved one. */
struct whole_part {
    const char *of;
    struct shape whole;
    struct box box;
};

struct found_part {
    size_t i;
    struct box box;
};

/* The wanted part, and saved parts that overlap it. */
struct part_search {
    const struct saved_parts *parts;
    const struct variable *like;
    const struct name_index *index;
    struct whole_part wanted;
    VEC(struct found_part) found;
    bool is_known; /* a part of its whole was saved: */
    struct saved_part first;
    struct shape first_whole;
    bool in_rows;  /* all parts are rows of the whole */
    bool overlaps; /* some parts overlap, or may */
};

void saved_parts_index(const struct saved_parts *parts, struct name_index *index)
{
    for (size_t i = parts->n; i-- > 0;) {
        struct saved_part part = parts->at(parts, i);
        name_index_add(index, part.name, (int)i);
        if (part.slice->of && strcmp(part.slice->of, part.name) != 0)
            name_index_add(index, part.slice->of, (int)i);
    }
}

static struct whole_part part_as_whole(const char *name, const struct shape *shape,
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

/* Sets the error: the part has that type and shape, but the graph wants others. */
static int misfit(const struct part_search *s, const char *name, enum dtype type,
                  const struct shape *shape, const struct shape *wanted, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph",
                     s->parts->from, name, shape_text_typed(type, shape),
                     shape_text_typed(s->like->type, wanted));
}

/* ---- parts of the variable's own name ---- */

/* The part that is exactly the variable; -1: none, or it was sliced otherwise. Old files do not
 * mark slices: these are known by their names. */
static int find_same(const struct part_search *s, struct error *err)
{
    const struct variable *like = s->like;
    for (const struct name_link *l = name_index_first(s->index, like->name); l;
         l = name_index_next(s->index, l)) {
        struct saved_part same = s->parts->at(s->parts, (size_t)l->value);
        if (strcmp(same.name, like->name) != 0 || strcmp(same.container, like->container) != 0)
            continue;
        if (same.slice->of && !(variable_slice_equal(same.slice, &like->slice) &&
                                shape_equal(same.shape, &like->shape)))
            return -1;
        if (same.type != like->type || !shape_compatible(same.shape, &like->shape))
            misfit(s, like->name, same.type, same.shape, &like->shape, err);
        return l->value;
    }
    return -1;
}

/* ---- parts of the same whole ---- */

static bool has_whole_rows(const struct whole_part *part)
{
    for (int i = 1; i < part->box.rank; i++)
        if (part->box.size[i] != part->whole.dims[i])
            return false;
    return true;
}

static int use_part(struct part_search *s, size_t i, const struct saved_part *saved,
                    struct error *err)
{
    struct whole_part part = part_as_whole(saved->name, saved->shape, saved->slice);
    struct box *wanted = &s->wanted.box;
    if (!s->is_known) {
        s->is_known = true;
        s->first = *saved;
        s->first_whole = part.whole;
        /* Dimensions that the graph leaves open are wanted whole. */
        if (wanted->rank < 0) {
            s->wanted.whole = part.whole;
            *wanted = (struct box){.rank = part.whole.rank};
            memcpy(wanted->size, part.whole.dims, sizeof wanted->size);
        }
        for (int k = 0; k < wanted->rank && wanted->rank == part.box.rank; k++)
            if (wanted->size[k] < 0)
                wanted->size[k] = s->wanted.whole.dims[k] = part.whole.dims[k];
    }
    if (saved->type != s->first.type || !shape_equal(&part.whole, &s->first_whole))
        return error_set(err, ERR_DATA, "%s: variable '%s' is %s by '%s', but %s by '%s'",
                         s->parts->from, s->wanted.of,
                         shape_text_typed(s->first.type, &s->first_whole), s->first.name,
                         shape_text_typed(saved->type, &part.whole), saved->name);
    if (saved->type != s->like->type || saved->type == STRING ||
        !shape_equal(&part.whole, &s->wanted.whole))
        return misfit(s, s->wanted.of, s->first.type, &s->first_whole, &s->wanted.whole, err);
    s->in_rows = s->in_rows && has_whole_rows(&part);
    if (count_common(&part.box, wanted))
        vec_push(&s->found, ((struct found_part){i, part.box}));
    return 0;
}

static int take_parts(struct part_search *s, struct error *err)
{
    for (const struct name_link *l = name_index_first(s->index, s->wanted.of); l;
         l = name_index_next(s->index, l)) {
        struct saved_part saved = s->parts->at(s->parts, (size_t)l->value);
        const char *of = saved.slice->of ? saved.slice->of : saved.name;
        if (!strcmp(of, s->wanted.of) && !strcmp(saved.container, s->like->container) &&
            use_part(s, (size_t)l->value, &saved, err))
            return err->code;
    }
    s->in_rows = s->in_rows && has_whole_rows(&s->wanted);
    s->overlaps = s->found.n > COMPARED_MAX;
    for (size_t i = 0; i < s->found.n && !s->overlaps; i++)
        for (size_t k = 0; k < i && !s->overlaps; k++)
            s->overlaps = count_common(&s->found.items[i].box, &s->found.items[k].box) > 0;
    return 0;
}

/* ---- gaps ---- */

/* Allocates a tensor of the wanted part's size. */
static int make_wanted(const struct part_search *s, enum dtype type, struct tensor *t,
                       struct error *err)
{
    struct shape shape = {.rank = s->wanted.box.rank};
    memcpy(shape.dims, s->wanted.box.size, sizeof shape.dims);
    return tensor_alloc(t, type, &shape, err);
}

/* Elements that are in several parts count once, by a map. The map is made only if the parts have
 * at least as many elements as it, since a file may claim any size of a whole. */
static int check_gaps(const struct part_search *s, struct error *err)
{
    int64_t all = box_count(&s->wanted.box), found = 0;
    struct tensor map;
    for (size_t i = 0; i < s->found.n; i++)
        found += count_common(&s->found.items[i].box, &s->wanted.box);
    bool is_exact = !s->overlaps || found >= all;
    if (s->overlaps && is_exact) {
        if (make_wanted(s, UINT8, &map, err))
            return err->code;
        memset(map.data, 0, tensor_bytes(&map));
        for (size_t i = 0; i < s->found.n; i++)
            box_fill(map.data, &s->wanted.box, &s->found.items[i].box, 1);
        found = 0;
        for (size_t i = 0; i < tensor_bytes(&map); i++)
            found += ((const uint8_t *)map.data)[i];
        tensor_release(&map);
    }
    if (found == all)
        return 0;
    int64_t unit = s->in_rows ? all / s->wanted.box.size[0] : 1;
    const char *units = s->in_rows ? "rows" : "elements";
    if (!is_exact)
        return error_set(err, ERR_DATA, "%s: variable '%s': not all of %lld %s are in it",
                         s->parts->from, s->like->name, (long long)(all / unit), units);
    return error_set(err, ERR_DATA, "%s: variable '%s': %lld of %lld %s are in it", s->parts->from,
                     s->like->name, (long long)(found / unit), (long long)(all / unit), units);
}

/* ---- the search ---- */

/* Searches with everything zeroed except `parts` and `like`; the caller releases `found`. Returns
 * the part that is the whole result; -1: it is made of several parts, or there is an error, as of
 * saved_parts_read. */
static int search(struct part_search *s, struct error *err)
{
    const struct variable *like = s->like;
    struct name_index own = {0};
    error_clear(err);
    if (!s->parts->index)
        saved_parts_index(s->parts, &own);
    s->index = s->parts->index ? s->parts->index : &own;
    s->wanted = part_as_whole(like->name, &like->shape, &like->slice);
    s->in_rows = true;
    int same = find_same(s, err);
    bool is_uncut = same >= 0 && like->type == STRING;
    if (!err->code && !is_uncut)
        take_parts(s, err);
    name_index_release(&own);
    if (!err->code && same >= 0 && s->found.n <= 1)
        return same;
    if (!err->code && !s->is_known)
        error_set(err, ERR_NOINPUT, "%s: variable '%s' is not in it", s->parts->from, like->name);
    if (!err->code)
        check_gaps(s, err);
    return -1;
}

/* ---- reading ---- */

/* ERR_DATA if the part differs from the value, to which parts that overlap it were copied. */
static int check_same(const struct part_search *s, const struct box *box, const struct tensor *part,
                      const struct tensor *value, struct error *err)
{
    size_t item = dtype_bytes(part->type);
    struct tensor there;
    if (tensor_copy(&there, part, err))
        return err->code;
    box_copy(there.data, box, value->data, &s->wanted.box, item);
    if (memcmp(there.data, part->data, tensor_bytes(part)) != 0)
        error_set(err, ERR_DATA, "%s: variable '%s': elements are in it twice, and differ",
                  s->parts->from, s->wanted.of);
    tensor_release(&there);
    return err->code;
}

/* Parts that may overlap are read once more, to be compared. */
static void read_found(const struct part_search *s, struct tensor *value, uint64_t *updates,
                       struct error *err)
{
    size_t n = s->found.n, n_reads = s->overlaps ? 2 * n : n;
    struct tensor part;
    make_wanted(s, s->like->type, value, err);
    for (size_t i = 0; i < n_reads && !err->code; i++) {
        const struct found_part *found = &s->found.items[i % n];
        uint64_t made = s->parts->at(s->parts, found->i).updates;
        *updates = made > *updates ? made : *updates;
        if (s->parts->read(s->parts, found->i, &part, err))
            break;
        if (i < n)
            box_copy(value->data, &s->wanted.box, part.data, &found->box, dtype_bytes(part.type));
        else
            check_same(s, &found->box, &part, value, err);
        tensor_release(&part);
    }
    if (err->code)
        tensor_release(value);
}

int saved_parts_read(const struct saved_parts *parts, const struct variable *like,
                     struct tensor *value, uint64_t *updates, struct error *err)
{
    struct part_search s = {.parts = parts, .like = like};
    if (value) {
        *value = (struct tensor)TENSOR_INIT;
        *updates = 0;
    }
    int all = search(&s, err);
    if (all < 0 && s.found.n == 1 && box_count(&s.found.items[0].box) == box_count(&s.wanted.box))
        all = (int)s.found.items[0].i; /* it has no gaps */
    bool reads = value && !err->code;
    if (reads && all >= 0) {
        *updates = parts->at(parts, (size_t)all).updates;
        parts->read(parts, (size_t)all, value, err);
    } else if (reads) {
        read_found(&s, value, updates, err);
    }
    vec_release(&s.found);
    return err->code;
}
