/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/broadcast.h"

#include <string.h>

#include "ops/math/results.h"

_Static_assert(BROADCAST_RANK_MAX == SHAPE_RANK_MAX, "dimensions of a tensor");

/* Returns whether dimension `axis` (outer) continues the plan's outermost one for every input. */
static bool continues(const struct broadcast *plan, int64_t strides[][SHAPE_RANK_MAX], int axis)
{
    for (int i = 0; i < plan->n_in; i++) {
        int64_t whole = plan->strides[i][0] * plan->dims[0];
        if (strides[i][axis] != whole)
            return false;
    }
    return true;
}

void broadcast_plan(struct broadcast *plan, const struct shape *out,
                    const struct shape *const *inputs, int n_in)
{
    int64_t strides[BROADCAST_INPUTS_MAX][SHAPE_RANK_MAX];
    memset(plan, 0, sizeof *plan);
    plan->n_in = n_in;
    plan->count = shape_count(out);
    if (plan->count <= 0) { /* nothing to traverse, or too much to allocate */
        plan->rank = 1;
        plan->dims[0] = 1;
        return;
    }
    for (int i = 0; i < n_in; i++) {
        /* Strides of an input along the output's dimensions. */
        const struct shape *in = inputs[i];
        int64_t step = 1;
        for (int axis = out->rank - 1; axis >= 0; axis--) {
            int from = axis - (out->rank - in->rank);
            int64_t dim = from >= 0 ? in->dims[from] : 1;
            strides[i][axis] = dim == 1 ? 0 : step;
            step *= dim;
        }
    }
    for (int axis = out->rank - 1; axis >= 0; axis--) {
        if (out->dims[axis] == 1)
            continue;
        if (plan->rank && continues(plan, strides, axis))
            plan->dims[0] *= out->dims[axis];
        else {
            memmove(plan->dims + 1, plan->dims, sizeof *plan->dims * (size_t)plan->rank);
            plan->dims[0] = out->dims[axis];
            for (int i = 0; i < plan->n_in; i++) {
                memmove(plan->strides[i] + 1, plan->strides[i],
                        sizeof *plan->strides[i] * (size_t)plan->rank);
                plan->strides[i][0] = strides[i][axis];
            }
            plan->rank++;
        }
    }
    if (!plan->rank) { /* one element */
        plan->rank = 1;
        plan->dims[0] = 1;
        for (int i = 0; i < n_in; i++)
            plan->strides[i][0] = 1;
    }
}

void broadcast_plan_select(struct broadcast *plan, const struct shape *out,
                           const struct shape *condition, const struct shape *t,
                           const struct shape *e)
{
    struct shape values, seen;
    shape_broadcast(t, e, &values);
    seen = select_condition_shape(condition, &values);
    broadcast_plan(plan, out, (const struct shape *const[]){&seen, t, e}, 3);
}
