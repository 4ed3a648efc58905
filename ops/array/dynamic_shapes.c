/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/array/results.h"
#include "ops/math/outputs.h"

int dynamic_partition_counts(struct kernel_call *call, struct shape *rows, int64_t *counts)
{
    const struct tensor *partitions = call->in[1];
    struct shape *shapes = kernel_temporary(call, (size_t)call->n_out * sizeof *shapes);
    if (!shapes || result_shapes(call, 0, 0, shapes) || rows_check(call, 1, call->n_out))
        return call->err->code;
    *rows = shapes[0];
    memset(counts, 0, (size_t)call->n_out * sizeof *counts);
    for (int64_t i = 0; i < tensor_count(partitions); i++)
        counts[((const int32_t *)partitions->data)[i]]++;
    return 0;
}

struct tensor *dynamic_stitch_output(struct kernel_call *call)
{
    for (int i = 0; i < call->n_in / 2; i++)
        if (rows_check(call, i, INT64_C(1) << 31))
            return NULL;
    return result_outputs(call, 0, call->n_in / 2);
}
