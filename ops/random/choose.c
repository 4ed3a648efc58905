/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random/choose.h"

#include "ops/array/args.h"

int multinomial_check(struct kernel_call *call, int64_t *n_samples)
{
    const struct shape *logits = &call->in[0]->shape;
    if (args_scalar(call, 1, "num_samples", n_samples))
        return call->err->code;
    if (logits->rank != 2)
        return kernel_fail(call, "logits must be a matrix, not %s", shape_text(logits));
    if (*n_samples < 0)
        return kernel_fail(call, "num_samples is negative: %" PRId64, *n_samples);
    if (logits->dims[1] == 0 && logits->dims[0] > 0 && *n_samples > 0)
        return kernel_fail(call, "there are no classes: logits are %s", shape_text(logits));
    return 0;
}
