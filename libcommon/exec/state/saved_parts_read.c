/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/state/saved_parts_private.h"

#include <string.h>

static bool is_same_box(const struct box *a, const struct box *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->first[i] == b->first[i] && a->size[i] == b->size[i];
    return same;
}

/* Whether a part has the bits that parts before it had, as far as they overlap. */
static int check_overlap(const struct part_search *s, const struct tensor *part,
                         const struct box *box, const struct tensor *value,
                         const struct tensor *map, struct error *err)
{
    size_t item = dtype_bytes(part->type), n = (size_t)tensor_count(part);
    struct tensor before, seen;
    bool same = true;
    if (tensor_alloc(&before, part->type, &part->shape, err))
        return err->code;
    if (tensor_alloc(&seen, UINT8, &part->shape, err)) {
        tensor_release(&before);
        return err->code;
    }
    memset(seen.data, 0, n);
    box_copy(before.data, box, value->data, &s->wanted.box, item);
    box_copy(seen.data, box, map->data, &s->wanted.box, 1);
    for (size_t i = 0; same && i < n; i++)
        same =
            !((const uint8_t *)seen.data)[i] || !memcmp((const char *)before.data + i * item,
                                                        (const char *)part->data + i * item, item);
    tensor_release(&before);
    tensor_release(&seen);
    if (!same)
        error_set(err, ERR_DATA, "%s: variable '%s': elements are in it twice, and differ",
                  s->parts->from, s->wanted.of);
    return err->code;
}

static int copy_part(const struct part_search *s, const struct found_part *found,
                     struct tensor *value, struct tensor *map, struct error *err)
{
    struct tensor part;
    if (s->parts->read(s->parts, found->i, &part, err))
        return err->code;
    if (!s->overlaps || !check_overlap(s, &part, &found->box, value, map, err))
        box_copy(value->data, &s->wanted.box, part.data, &found->box, dtype_bytes(part.type));
    if (s->overlaps)
        box_fill(map->data, &s->wanted.box, &found->box, 1);
    tensor_release(&part);
    return err->code;
}

static int read_parts(const struct part_search *s, struct tensor *value, uint64_t *updates,
                      struct error *err)
{
    struct tensor result, map = TENSOR_INIT;
    struct shape shape = saved_parts_shape(s);
    if (s->found.n == 1 && is_same_box(&s->found.items[0].box, &s->wanted.box)) {
        *updates = s->parts->at(s->parts, s->found.items[0].i).updates;
        return s->parts->read(s->parts, s->found.items[0].i, value, err);
    }
    if (tensor_alloc(&result, s->like->type, &shape, err))
        return err->code;
    if (s->overlaps)
        saved_parts_map(s, &map, err);
    for (size_t i = 0; i < s->found.n && !err->code; i++) {
        uint64_t n = s->parts->at(s->parts, s->found.items[i].i).updates;
        *updates = n > *updates ? n : *updates;
        copy_part(s, &s->found.items[i], &result, &map, err);
    }
    tensor_release(&map);
    if (err->code)
        tensor_release(&result);
    else
        *value = result;
    return err->code;
}

int saved_parts_read(const struct saved_parts *parts, const struct variable *like,
                     struct tensor *value, uint64_t *updates, struct error *err)
{
    struct part_search s = {.parts = parts, .like = like};
    int same;
    *value = (struct tensor)TENSOR_INIT;
    *updates = 0;
    error_clear(err);
    if (!saved_parts_search(&s, &same, err) && same >= 0) {
        *updates = parts->at(parts, (size_t)same).updates;
        parts->read(parts, (size_t)same, value, err);
    } else if (!err->code) {
        read_parts(&s, value, updates, err);
    }
    vec_release(&s.found);
    return err->code;
}
