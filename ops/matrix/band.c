/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matrix/band.h"
#include "ops/math/outputs.h"

/* The number of diagonals: all of them if it is negative. */
static int64_t diagonals(const struct tensor *number, int64_t most)
{
    int64_t n = tensor_get_int64(number, 0);
    return n < 0 || n > most ? most : n;
}

struct tensor *band_output(struct kernel_call *call, struct band *band)
{
    const struct shape *in = &call->in[0]->shape;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return NULL;
    band->rows = in->dims[in->rank - 2];
    band->columns = in->dims[in->rank - 1];
    band->lower = diagonals(call->in[1], band->rows);
    band->upper = diagonals(call->in[2], band->columns);
    return out;
}
