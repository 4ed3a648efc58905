/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "exec/device/kernel.h"

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One row: elements [from, to) stay. */
static void band_row(const char *in, char *out, int64_t from, int64_t to, int64_t n, size_t size)
{
    memset(out, 0, (size_t)from * size);
    memcpy(out + (size_t)from * size, in + (size_t)from * size, (size_t)(to - from) * size);
    memset(out + (size_t)to * size, 0, (size_t)(n - to) * size);
}

static int run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    if (in->shape.rank < 2 || call->in[1]->shape.rank || call->in[2]->shape.rank)
        return kernel_fail(call,
                           "input must have at least rank 2 and the numbers be scalars, not "
                           "%s, %s, %s",
                           shape_text(&in->shape), shape_text(&call->in[1]->shape),
                           shape_text(&call->in[2]->shape));
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    int64_t rows = in->shape.dims[in->shape.rank - 2], n = in->shape.dims[in->shape.rank - 1];
    int64_t lower = tensor_get_int64(call->in[1], 0), upper = tensor_get_int64(call->in[2], 0);
    size_t size = dtype_bytes(in->type);
    int64_t count = n ? tensor_count(in) / n : 0;
    lower = lower < 0 || lower > rows ? rows : lower;
    upper = upper < 0 || upper > n ? n : upper;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i % rows, from = at_most(row > lower ? row - lower : 0, n);
        int64_t to = at_most(row + upper + 1, n);
        size_t offset = (size_t)(i * n) * size;
        band_row((const char *)in->data + offset, (char *)out->data + offset, from,
                 to > from ? to : from, n, size);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_band = {.run = run};
