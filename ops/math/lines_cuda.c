/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels along an axis: ArgMax and ArgMin, Cumsum and Cumprod.
 */
#include "ops/math/launchers_cuda.h"

#include "base/memory.h"
#include "ops/array/args.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/results.h"

static struct cuda_lines lines_along(const struct shape *shape, int axis)
{
    return (struct cuda_lines){.outer = shape_count_of(shape, 0, axis),
                               .n = shape->dims[axis],
                               .inner = shape_count_of(shape, axis + 1, shape->rank)};
}

/* ---- positions of maxima and minima ---- */

static int arg_prepare(struct kernel_setup *setup)
{
    struct cuda_arg *of_all = setup->state = mem_alloc(sizeof *of_all);
    *of_all = (struct cuda_arg){.max = node_is(setup->node, "ArgMax"),
                                .narrow = setup->out_types[0].type == INT32,
                                .type = cuda_type_of(setup->in_types[0].type)};
    return 0;
}

static int arg_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    int axis;
    struct tensor *out = arg_output(call, &axis);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct cuda_arg launch = *(const struct cuda_arg *)call->state;
    launch.lines = lines_along(&x->shape, axis);
    launch.x = x->data;
    launch.y = out->data;
    return cuda_launched(call, cuda_arg(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_arg = {.prepare = arg_prepare, .run = arg_run};

/* ---- cumulative sums and products ---- */

static int scan_prepare(struct kernel_setup *setup)
{
    struct cuda_scan *of_all = setup->state = mem_alloc(sizeof *of_all);
    *of_all = (struct cuda_scan){.product = node_is(setup->node, "Cumprod"),
                                 .exclusive = node_bool(setup->node, "exclusive"),
                                 .reverse = node_bool(setup->node, "reverse"),
                                 .type = cuda_type_of(setup->in_types[0].type)};
    kernel_offer_reuse(setup, 0);
    return 0;
}

static int scan_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    struct tensor *out = result_outputs(call, 1, 2);
    if (!out || !tensor_count(out))
        return call->err->code;
    struct cuda_scan launch = *(const struct cuda_scan *)call->state;
    launch.lines = lines_along(&x->shape, args_axis(call, 1, x->shape.rank));
    launch.x = x->data;
    launch.y = out->data;
    return cuda_launched(call, cuda_scan(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_scan = {.prepare = scan_prepare, .run = scan_run};
