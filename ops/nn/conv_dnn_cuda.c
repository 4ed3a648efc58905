/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/conv_dnn_cuda.h"

#include <limits.h>

#include "base/memory.h"
#include "ops/array/launchers_cuda.h"
#include "ops/device/cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/nn/window_dnn_cuda.h"

/* ---- what is cuDNN's ---- */

static bool is_int(int64_t n)
{
    return n <= INT_MAX;
}

bool conv_dnn_plan(struct cuda_device *d, const struct conv *c, bool exact, struct conv_dnn *plan)
{
    plan->conv = (struct cuda_dnn_conv){.direction = c->direction == CONV_FORWARD ? CUDA_DNN_FORWARD
                                                     : c->direction == CONV_IMAGE ? CUDA_DNN_IMAGE
                                                                                  : CUDA_DNN_FILTER,
                                        .type = cuda_type_of(c->type),
                                        .nchw = c->window.nchw,
                                        .batch = (int)c->batch,
                                        .in_channels = (int)c->in_channels,
                                        .out_channels = (int)c->out_channels,
                                        .groups = (int)c->groups};
    if (c->local || !is_int(shape_count(&c->image)) || !is_int(shape_count(&c->filter)) ||
        !is_int(shape_count(&c->output)) || !window_dnn_axis(&c->window.y, &plan->conv.y) ||
        !window_dnn_axis(&c->window.x, &plan->conv.x))
        return false;
    plan->conv.exact = exact;
    cuda_dnn_choose(d, &plan->conv, &plan->algorithm);
    plan->workspace = ALIGN_UP((size_t)shape_bytes(&c->filter, c->type));
    plan->bytes = plan->workspace + plan->algorithm.workspace_bytes;
    return plan->algorithm.number >= 0;
}

/* ---- run ---- */

/* Transposes between our [y, x, in, out] and [out, in, y, x] or [out, y, x, in]. */
static int transpose_filter(struct kernel_call *call, const struct conv_dnn *plan, const void *from,
                            void *to)
{
    const struct cuda_dnn_conv *c = &plan->conv;
    int64_t cells = (int64_t)c->y.size * c->x.size, out = c->out_channels;
    int64_t in = c->in_channels / c->groups;
    bool is_result = c->direction == CUDA_DNN_FILTER;
    int64_t ours[3] = {in * out, out, 1},
            theirs[3] = {c->nchw ? 1 : in, c->nchw ? cells : 1, cells * in};
    const int64_t *read = is_result ? theirs : ours, *write = is_result ? ours : theirs;
    struct cuda_strided_copy launch = {.element_bytes = cuda_float_bytes(c->type),
                                       .rank = 3,
                                       .dims = {cells, in, out},
                                       .from_strides = {read[0], read[1], read[2]},
                                       .to_strides = {write[0], write[1], write[2]},
                                       .from = from,
                                       .to = to};
    return cuda_launched(call, cuda_strided(&launch, cuda_compute(call)));
}

int conv_dnn_run(struct kernel_call *call, const struct conv_dnn *plan, void *const data[3],
                 char *scratch)
{
    size_t bytes = plan->algorithm.workspace_bytes;
    bool is_result = plan->conv.direction == CUDA_DNN_FILTER;
    struct cuda_dnn_data given = {.image = data[0],
                                  .filter = scratch,
                                  .output = data[2],
                                  .workspace = bytes ? scratch + plan->workspace : NULL,
                                  .workspace_bytes = bytes};
    int code = KERNEL_ENQUEUED;
    if (!is_result)
        code = transpose_filter(call, plan, data[1], given.filter);
    if (code == KERNEL_ENQUEUED)
        code = cuda_dnn_conv(call, &plan->conv, &given, plan->algorithm.number);
    if (code == KERNEL_ENQUEUED && is_result)
        code = transpose_filter(call, plan, given.filter, data[1]);
    return code;
}
