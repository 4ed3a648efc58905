/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matrix/band.h"

#include <string.h>

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct band band;
    struct tensor *out = band_output(call, &band);
    if (!out)
        return call->err->code;
    int64_t n = band.columns, count = n ? tensor_count(in) / n : 0;
    size_t size = dtype_bytes(in->type);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i % band.rows;
        int64_t from = at_most(row > band.lower ? row - band.lower : 0, n);
        int64_t to = at_most(row + band.upper + 1, n);
        to = to > from ? to : from;
        const char *x = (const char *)in->data + (size_t)(i * n) * size;
        char *y = (char *)out->data + (size_t)(i * n) * size;
        /* Elements [from, to) stay. */
        memset(y, 0, (size_t)from * size);
        memcpy(y + (size_t)from * size, x + (size_t)from * size, (size_t)(to - from) * size);
        memset(y + (size_t)to * size, 0, (size_t)(n - to) * size);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_band = {.run = run};
