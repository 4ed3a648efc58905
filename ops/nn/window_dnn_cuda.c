/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/window_dnn_cuda.h"

#include <limits.h>

bool window_dnn_axis(const struct window_axis *a, struct cuda_dnn_axis *taken)
{
    int64_t padded = a->in + 2 * a->before, span = window_span(a);
    if (padded > INT_MAX || span > INT_MAX || a->stride > INT_MAX || padded < span ||
        (padded - span) / a->stride + 1 != a->out)
        return false;
    *taken = (struct cuda_dnn_axis){(int)a->in,       (int)a->size,   (int)a->stride,
                                    (int)a->dilation, (int)a->before, (int)a->out};
    return true;
}
