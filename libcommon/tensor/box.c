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

/* Where an element is in the tensor of a box. */
static size_t place_in(const struct box *box, const int64_t *at)
{
    int64_t place = 0;
    for (int i = 0; i < box->rank; i++)
        place = place * box->size[i] + at[i] - box->first[i];
    return (size_t)place;
}

/* By runs of elements that lie together in both: rows of the last axis, and of those before it as
 * long as what is behind them is all that both tensors have. */
void box_copy(void *to, const struct box *to_box, const void *from, const struct box *from_box,
              size_t element)
{
    struct box both = box_meet(to_box, from_box);
    int last = both.rank - 1;
    int64_t at[SHAPE_RANK_MAX], run = last < 0 ? 1 : both.size[last], n = box_count(&both);
    while (last > 0 && both.size[last] == to_box->size[last] &&
           both.size[last] == from_box->size[last])
        run *= both.size[--last];
    memcpy(at, both.first, sizeof at);
    for (int64_t done = 0; done < n; done += run) {
        memcpy((char *)to + place_in(to_box, at) * element,
               (const char *)from + place_in(from_box, at) * element, (size_t)run * element);
        for (int i = last - 1; i >= 0 && ++at[i] == both.first[i] + both.size[i]; i--)
            at[i] = both.first[i];
    }
}
