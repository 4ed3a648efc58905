/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/args.h"
#include "ops/math/outputs.h"

static int invert_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t n = tensor_count(in);
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    for (int64_t i = 0; i < n; i++)
        tensor_set_int64(out, i, -1);
    for (int64_t i = 0; i < n; i++) {
        int64_t to = tensor_get_int64(in, i);
        if (to < 0 || to >= n)
            return kernel_fail(
                call, "element %" PRId64 " at [%" PRId64 "] is outside [0, %" PRId64 ")", to, i, n);
        if (tensor_get_int64(out, to) >= 0)
            return kernel_fail(call, "element %" PRId64 " occurs twice", to);
        tensor_set_int64(out, to, i);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_invert_permutation = {.run = invert_run};
