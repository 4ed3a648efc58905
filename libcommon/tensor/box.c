/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/box.h"

#include <string.h>

struct box box_meet(const struct box *a, const struct box *b)
{
    struct box both = {.rank = a->rank};
    for (int i = 0; i < a->rank; i++) {
        int64_t a_end = a->first[i] + a->size[i], b_end = b->first[i] + b->size[i];
        int64_t end = a_end < b_end ? a_end : b_end;
        both.first[i] = a->first[i] > b->first[i] ? a->first[i] : b->first[i];
        both.size[i] = end > both.first[i] ? end - both.first[i] : 0;
    }
    return both;
}

int64_t box_count(const struct box *box)
{
    int64_t n = 1;
    for (int i = 0; i < box->rank; i++)
        n *= box->size[i];
    return n;
}

/* Returns the index of an element in the box's tensor. */
static size_t place_in(const struct box *box, const int64_t *at)
{
    int64_t place = 0;
    for (int i = 0; i < box->rank; i++)
        place = place * box->size[i] + at[i] - box->first[i];
    return (size_t)place;
}

/* Returns the length of runs that are contiguous in both tensors: a row of the last axis, or of all
 * axes from *axis on while `both` spans each later axis wholly in both tensors. */
static int64_t run_of(const struct box *both, const struct box *a, const struct box *b, int *axis)
{
    int64_t run = both->rank ? both->size[both->rank - 1] : 1;
    *axis = both->rank - 1;
    while (*axis > 0 && both->size[*axis] == a->size[*axis] && both->size[*axis] == b->size[*axis])
        run *= both->size[--*axis];
    return run;
}

/* Advances from the start of a run to that of the next one. */
static void next_run(const struct box *both, int axis, int64_t *at)
{
    for (int i = axis - 1; i >= 0 && ++at[i] == both->first[i] + both->size[i]; i--)
        at[i] = both->first[i];
}

void box_copy(void *to, const struct box *to_box, const void *from, const struct box *from_box,
              size_t element)
{
    int axis;
    struct box both = box_meet(to_box, from_box);
    int64_t at[SHAPE_RANK_MAX], run = run_of(&both, to_box, from_box, &axis), n = box_count(&both);
    memcpy(at, both.first, sizeof at);
    for (int64_t done = 0; done < n; done += run, next_run(&both, axis, at))
        memcpy((char *)to + place_in(to_box, at) * element,
               (const char *)from + place_in(from_box, at) * element, (size_t)run * element);
}

void box_fill(uint8_t *to, const struct box *to_box, const struct box *part, uint8_t value)
{
    int axis;
    struct box both = box_meet(to_box, part);
    int64_t at[SHAPE_RANK_MAX], run = run_of(&both, to_box, to_box, &axis), n = box_count(&both);
    memcpy(at, both.first, sizeof at);
    for (int64_t done = 0; done < n; done += run, next_run(&both, axis, at))
        memset(to + place_in(to_box, at), value, (size_t)run);
}
