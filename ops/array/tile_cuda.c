/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of TileGrad: a sum over repetitions, which are seen as separate dimensions.
 */
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/math/reduce_cuda.h"

static void add_dim(struct cuda_reduce *launch, int64_t dim, bool reduced)
{
    launch->dims[launch->rank] = dim;
    launch->reduced[launch->rank++] = reduced;
}

/* The sum of [multiple, dim, multiple, dim, ...] over the multiples. */
static struct cuda_reduce describe(enum dtype type, const struct shape *in, const struct shape *out)
{
    struct cuda_reduce launch = {.op = CUDA_SUM, .type = cuda_type_of(type)};
    for (int i = 0; i < out->rank; i++) {
        add_dim(&launch, out->dims[i] ? in->dims[i] / out->dims[i] : 0, true);
        add_dim(&launch, out->dims[i], false);
    }
    return launch;
}

static int prepare(struct kernel_setup *setup)
{
    const struct node_output *in = &setup->in_types[0];
    if (!setup->shapes_known)
        return 0;
    struct cuda_reduce launch = describe(in->type, &in->shape, &setup->out_types[0].shape);
    setup->scratch_bytes = cuda_reduce_scratch(&launch);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0], *out = result_outputs(call, 1, 3);
    if (!out)
        return call->err->code;
    struct cuda_reduce launch = describe(in->type, &in->shape, &out->shape);
    return cuda_reduce_call(call, &launch, out);
}

const struct kernel_code kernel_cuda_tile_grad = {.prepare = prepare, .run = run};
