/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/state/scatter.h"

#include "exec/state/variable.h"

int scatter_check_shapes(struct kernel_call *call)
{
    const struct shape *ref = &call->refs[0]->value.shape, *indices = &call->in[1]->shape;
    struct shape wanted = *indices;
    if (ref->rank < 1)
        return kernel_fail(call, "variable '%s' is a scalar", call->refs[0]->name);
    for (int i = 1; i < ref->rank && wanted.rank < SHAPE_RANK_MAX; i++)
        wanted.dims[wanted.rank++] = ref->dims[i];
    if (!shape_equal(&wanted, &call->in[2]->shape))
        return kernel_fail(call, "updates must be %s (indices, then a row of ref), not %s",
                           shape_text(&wanted), shape_text(&call->in[2]->shape));
    return 0;
}
