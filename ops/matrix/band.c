/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matrix/band.h"

/* The number of diagonals: all of them if it is negative. */
static int64_t diagonals(const struct tensor *number, int64_t most)
{
    int64_t n = tensor_get_int64(number, 0);
    return n < 0 || n > most ? most : n;
}

int band_read(struct kernel_call *call, struct band *band)
{
    const struct shape *in = &call->in[0]->shape;
    if (in->rank < 2 || call->in[1]->shape.rank || call->in[2]->shape.rank)
        return kernel_fail(call,
                           "input must have at least rank 2 and the numbers be scalars, not "
                           "%s, %s, %s",
                           shape_text(in), shape_text(&call->in[1]->shape),
                           shape_text(&call->in[2]->shape));
    band->rows = in->dims[in->rank - 2];
    band->columns = in->dims[in->rank - 1];
    band->lower = diagonals(call->in[1], band->rows);
    band->upper = diagonals(call->in[2], band->columns);
    return 0;
}
