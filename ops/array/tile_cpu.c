/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "exec/device/kernel.h"
#include "ops/math/accumulate.h"
#include "ops/math/outputs.h"
#include "ops/math/wide_sums.h"

struct tile_sums {
    struct tensor *out;
    accumulate_loop *add;
    struct wide_sums wide; /* of runs, if there are many tiles of float32; n 0: none */
    int64_t run;           /* elements of the innermost dimension of a tile */
};

/* Processes the input in order, run by run. */
static void sum_tiles(const struct tile_sums *sums, const struct tensor *in)
{
    const struct tensor *out = sums->out;
    int64_t strides[SHAPE_RANK_MAX], index[SHAPE_RANK_MAX] = {0};
    int last = in->shape.rank - 1, item = (int)dtype_bytes(in->type);
    int64_t run = sums->run, repeats = last < 0 ? 1 : in->shape.dims[last] / run;
    const char *from = in->data;
    shape_strides(&out->shape, strides);
    for (;;) {
        int64_t offset = 0;
        for (int d = 0; d < last; d++)
            offset += index[d] % out->shape.dims[d] * strides[d];
        for (int64_t k = 0; k < repeats; k++, from += run * item) {
            char *to = (char *)sums->out->data + offset * (int64_t)dtype_bytes(sums->out->type);
            sums->add(to, from, sums->run);
            if (sums->wide.n)
                wide_sums_added(&sums->wide, offset / sums->run, (float *)(void *)to);
        }
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
    struct tensor *out = result_outputs(call, 1, 3);
    if (!out)
        return call->err->code;
    const struct shape *shape = &out->shape;
    memset(out->data, 0, tensor_bytes(out));
    int64_t n = tensor_count(out), tiles = n ? tensor_count(in) / n : 0;
    struct tile_sums sums = {.out = out,
                             .add = accumulate_add(out->type),
                             .run = shape->rank ? shape->dims[shape->rank - 1] : 1};
    if (out->type == FLOAT32 && tiles > WIDE_SUMS_TERMS &&
        wide_sums_begin(call, &sums.wide, n / sums.run, sums.run))
        return call->err->code;
    if (tensor_count(in))
        sum_tiles(&sums, in);
    for (int64_t i = 0; i < sums.wide.n; i++)
        wide_sums_end(&sums.wide, i, (float *)out->data + i * sums.run);
    return KERNEL_DONE;
}

const struct kernel_code kernel_tile_grad = {.run = tile_grad_run};
