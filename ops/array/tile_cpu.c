/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ops/array/results.h"
#include "ops/math/accumulate.h"
#include "ops/math/wide_sums.h"

struct tile_sums {
    struct tensor *out;
    accumulate_loop *add;
    struct wide_sums wide; /* of its runs, where there are many tiles of float32; n 0: none */
    int64_t run;           /* elements of the innermost dimension of a tile */
};

static int begin_sums(struct kernel_call *call, struct tile_sums *sums, struct tensor *out)
{
    int64_t n = tensor_count(out), tiles = n ? tensor_count(call->in[0]) / n : 0;
    int last = out->shape.rank - 1;
    *sums = (struct tile_sums){
        .out = out, .add = accumulate_add(out->type), .run = last < 0 ? 1 : out->shape.dims[last]};
    if (out->type != FLOAT32 || tiles <= WIDE_SUMS_TERMS)
        return 0;
    return wide_sums_begin(call, &sums->wide, n / sums->run, sums->run);
}

static void add_run(const struct tile_sums *sums, int64_t offset, const char *from)
{
    char *to = (char *)sums->out->data + offset * (int64_t)dtype_bytes(sums->out->type);
    sums->add(to, from, sums->run);
    if (sums->wide.n)
        wide_sums_added(&sums->wide, offset / sums->run, (float *)(void *)to);
}

/* Goes through the input in order, run by run. */
static void sum_tiles(const struct tile_sums *sums, const struct tensor *in, const int64_t *m)
{
    const struct tensor *out = sums->out;
    int64_t strides[SHAPE_RANK_MAX], index[SHAPE_RANK_MAX] = {0};
    int last = in->shape.rank - 1, item = (int)dtype_bytes(in->type);
    int64_t run = sums->run, repeats = last < 0 ? 1 : m[last];
    const char *from = in->data;
    shape_strides(&out->shape, strides);
    for (;;) {
        int64_t offset = 0;
        for (int d = 0; d < last; d++)
            offset += index[d] % out->shape.dims[d] * strides[d];
        for (int64_t k = 0; k < repeats; k++, from += run * item)
            add_run(sums, offset, from);
        int d = last - 1;
        while (d >= 0 && ++index[d] == in->shape.dims[d])
            index[d--] = 0;
        if (d < 0)
            return;
    }
}

static int tile_grad_run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    int64_t m[SHAPE_RANK_MAX];
    struct shape shape;
    if (result_of_tile_grad(call, &shape, m))
        return call->err->code;
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    memset(out->data, 0, tensor_bytes(out));
    struct tile_sums sums;
    if (begin_sums(call, &sums, out))
        return call->err->code;
    if (tensor_count(in))
        sum_tiles(&sums, in, m);
    for (int64_t i = 0; i < sums.wide.n; i++)
        wide_sums_end(&sums.wide, i, (float *)out->data + i * sums.run);
    return KERNEL_DONE;
}

const struct kernel_code kernel_tile_grad = {.run = tile_grad_run};
