/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernel of TileGrad: a sum over repetitions, which are seen as separate dimensions.
 */
#include "ops/array/results.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/reduce_cuda.h"

static void add_dim(struct cuda_reduce *launch, int64_t dim, bool reduced)
{
    launch->dims[launch->rank] = dim;
    launch->reduced[launch->rank++] = reduced;
}

/* The sum of [multiple, dim, multiple, dim, ...] over the multiples. */
static struct cuda_reduce describe(enum dtype type, const struct shape *shape,
                                   const int64_t *multiples)
{
    struct cuda_reduce launch = {.op = CUDA_SUM, .type = cuda_type_of(type)};
    for (int i = 0; i < shape->rank; i++) {
        add_dim(&launch, multiples[i], true);
        add_dim(&launch, shape->dims[i], false);
    }
    return launch;
}

/* Requests no scratch memory if the arguments are unknown, or do not fit, which run reports. */
static int prepare(struct kernel_setup *setup)
{
    const struct tensor *multiples = setup->in_values[1];
    const struct node_output *in = &setup->in_types[0], *out = &setup->out_types[0];
    int64_t m[SHAPE_RANK_MAX];
    if (!multiples || !setup->shapes_known || tensor_count(multiples) != in->shape.rank)
        return 0;
    for (int i = 0; i < in->shape.rank; i++)
        m[i] = tensor_get_int64(multiples, i);
    if (!tile_grad_fits(&in->shape, &out->shape, m))
        return 0;
    struct cuda_reduce launch = describe(in->type, &out->shape, m);
    setup->scratch_bytes = cuda_reduce_scratch(&launch);
    return 0;
}

static int run(struct kernel_call *call)
{
    int64_t m[SHAPE_RANK_MAX];
    struct shape shape;
    if (result_of_tile_grad(call, &shape, m))
        return call->err->code;
    struct cuda_reduce launch = describe(call->in[0]->type, &shape, m);
    return cuda_reduce_call(call, &launch, &shape);
}

const struct kernel_code kernel_cuda_tile_grad = {.prepare = prepare, .run = run};
