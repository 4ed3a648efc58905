/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/broadcast_cpu.h"

#include <string.h>

void broadcast_start(struct broadcast_walk *walk, const struct broadcast *plan, int64_t begin,
                     int64_t end)
{
    memset(walk, 0, sizeof *walk);
    walk->plan = plan;
    walk->next = begin;
    walk->end = end;
    int64_t rest = begin;
    for (int axis = plan->rank - 1; axis >= 0 && begin < end; axis--) {
        walk->index[axis] = rest % plan->dims[axis];
        rest /= plan->dims[axis];
        for (int i = 0; i < plan->n_in; i++)
            walk->offset[i] += walk->index[axis] * plan->strides[i][axis];
    }
}

bool broadcast_next(struct broadcast_walk *walk, struct broadcast_row *row)
{
    const struct broadcast *plan = walk->plan;
    int inner = plan->rank - 1;
    if (walk->next >= walk->end)
        return false;
    int64_t begin = walk->index[inner];
    int64_t n = plan->dims[inner] - begin;
    if (n > walk->end - walk->next)
        n = walk->end - walk->next;
    row->out = walk->next;
    row->n = n;
    for (int i = 0; i < plan->n_in; i++) {
        row->in[i] = walk->offset[i];
        walk->offset[i] -= begin * plan->strides[i][inner]; /* back to the row's start */
    }
    walk->index[inner] = 0;
    walk->next += n;
    /* Advances the outer indices to the next row. */
    for (int axis = inner - 1; axis >= 0; axis--) {
        for (int i = 0; i < plan->n_in; i++)
            walk->offset[i] += plan->strides[i][axis];
        if (++walk->index[axis] < plan->dims[axis])
            break;
        for (int i = 0; i < plan->n_in; i++)
            walk->offset[i] -= plan->dims[axis] * plan->strides[i][axis];
        walk->index[axis] = 0;
    }
    return true;
}
