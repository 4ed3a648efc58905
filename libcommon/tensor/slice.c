/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/slice.h"

#include <string.h>

bool variable_slice_equal(const struct variable_slice *a, const struct variable_slice *b)
{
    if (!a->of || !b->of)
        return !a->of && !b->of;
    bool same = !strcmp(a->of, b->of) && a->rows == b->rows && a->first == b->first;
    for (int i = 1; same && i < SHAPE_RANK_MAX; i++)
        same = a->axes[i].size == b->axes[i].size && a->axes[i].first == b->axes[i].first;
    return same;
}

struct box variable_slice_box(const struct variable_slice *slice, const struct shape *shape,
                              struct shape *whole)
{
    struct box box = {.rank = shape->rank};
    *whole = *shape;
    for (int i = 0; i < shape->rank; i++) {
        struct slice_axis axis =
            i ? slice->axes[i] : (struct slice_axis){slice->rows, slice->first};
        box.size[i] = shape->dims[i];
        if (!slice->of || (i && !axis.size))
            continue;
        box.first[i] = axis.first;
        whole->dims[i] = axis.size;
    }
    return box;
}
