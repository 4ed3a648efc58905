/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of Conv2D, LocallyConnected2D and their gradients: cuDNN's, if available and
 * suitable: those whose padding is equal, or equivalent, on both sides, and whose sizes are ints.
 * Else they are matrix products of unrolled windows, some images at a time to bound the matrix's
 * size. All of these are computed in NHWC: NCHW is transposed into scratch memory and back.
 * Adjacent windows of one cell need no unrolling. With a filter per position there is a product per
 * position, and with groups of channels one per group, in one batch.
 */
#include <limits.h>
#include <stdio.h>

#include "base/memory.h"
#include "ops/array/launchers_cuda.h"
#include "ops/array/strided.h"
#include "ops/device/cuda.h"
#include "ops/device/dnn_cuda.h"
#include "ops/device/gemm_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/launchers_cuda.h"
#include "ops/nn/conv_shapes.h"
#include "ops/nn/launchers_cuda.h"
#include "ops/nn/window_dnn_cuda.h"

#define MATRIX_BYTES ((int64_t)128 << 20) /* of images unrolled at once; at least one image */

/* ---- by cuDNN ---- */

/* How cuDNN computes a convolution. The filter is at the beginning of its scratch memory. */
struct conv_dnn {
    struct cuda_dnn_conv conv;
    struct cuda_dnn_algorithm algorithm;
    size_t workspace, bytes; /* offset of the workspace; size of all scratch memory */
};

static bool is_int(int64_t n)
{
    return n <= INT_MAX;
}

/* False: cuDNN does not compute the convolution, which may not be empty. `exact` as in struct
 * kernel_setup. */
static bool conv_dnn_plan(struct cuda_device *d, const struct conv *c, bool exact,
                          struct conv_dnn *plan)
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

/* `data`: image, filter and output, one of which is written; `scratch` has plan->bytes. Returns
 * KERNEL_ENQUEUED, or an error. */
static int conv_dnn_run(struct kernel_call *call, const struct conv_dnn *plan, void *const data[3],
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

/* ---- by products ---- */

struct conv_cuda_state {
    struct conv form;                /* without shapes */
    bool has_dnn;                    /* cuDNN is available and, if shapes are known, computes it */
    bool exact;                      /* as in struct kernel_setup */
    bool is_planned;                 /* the shapes are known */
    struct conv_dnn dnn;             /* if has_dnn and is_planned */
    char name[CUDA_GEMM_NAME_BYTES]; /* for plans */
};

/* The steps of a convolution, and where its scratch memory is. */
struct conv_steps {
    const struct conv *conv;
    enum cuda_type type;
    bool is_plain;          /* nothing is unrolled */
    bool is_wide;           /* products are kept in float32, and rounded to 16 bits at the end */
    int64_t positions, row; /* of an image; elements of a row of the matrix */
    int64_t chunk;          /* images at once */
    int64_t image_count, output_count; /* elements of one of each */
    /* offsets: NHWC copies, the matrix, wide sums, workspace of products */
    size_t image, output, matrix, filter, work, bytes;
};

static bool is_plain_axis(const struct window_axis *a)
{
    return a->size == 1 && a->stride == 1 && !a->before && a->in == a->out;
}

static size_t take_scratch(struct conv_steps *s, bool wanted, int64_t count, size_t size)
{
    size_t at = s->bytes, bytes = wanted ? (size_t)count * size : 0;
    s->bytes += ALIGN_UP(bytes);
    return at;
}

static void plan_steps(struct conv_steps *s, const struct conv *c)
{
    const struct window *w = &c->window;
    size_t size = dtype_bytes(c->type);
    *s = (struct conv_steps){.conv = c, .type = cuda_type_of(c->type)};
    s->is_plain = is_plain_axis(&w->y) && is_plain_axis(&w->x);
    s->is_wide =
        size == 2 && (c->direction == CONV_FILTER || (c->direction == CONV_IMAGE && !s->is_plain));
    s->positions = w->y.out * w->x.out;
    s->row = w->y.size * w->x.size * c->in_channels;
    s->image_count = w->y.in * w->x.in * c->in_channels;
    s->output_count = s->positions * c->out_channels;
    size_t element = s->is_wide && c->direction == CONV_IMAGE ? sizeof(float) : size;
    int64_t each = s->positions * s->row * (int64_t)element;
    s->chunk = s->is_plain ? c->batch : MATRIX_BYTES / each;
    s->chunk = s->chunk < 1 ? 1 : s->chunk < c->batch ? s->chunk : c->batch;
    s->image = take_scratch(s, w->nchw, c->batch * s->image_count, size);
    s->output = take_scratch(s, w->nchw, c->batch * s->output_count, size);
    s->matrix = take_scratch(s, !s->is_plain, s->chunk * s->positions * s->row, element);
    s->filter = take_scratch(s, s->is_wide && c->direction == CONV_FILTER, shape_count(&c->filter),
                             sizeof(float));
}

/* ---- sizes of products ---- */

/* Returns the product without addresses; column-major, so that each of our matrices is its
 * transpose: output' = filter' matrix', and so on. Positions with a filter each, or groups of
 * channels, are the batches of it; rows of the matrix and outputs have both kinds side by side. */
static struct cuda_gemm gemm_of(const struct conv_steps *s, int64_t images)
{
    const struct conv *c = s->conv;
    int64_t depth = s->row / c->groups, width = c->out_channels / c->groups;
    int64_t columns = c->out_channels, step = c->local ? s->row * columns : width;
    int64_t positions = c->local ? s->positions : 1, rows = images * s->positions / positions;
    int64_t matrix = positions * s->row, output = positions * columns;
    struct cuda_gemm g = {.type = s->type, .wide_result = s->is_wide};
    if (c->direction == CONV_FORWARD) {
        g.m = width, g.n = rows, g.k = depth;
        g.lda = columns, g.ldb = matrix, g.ldc = output;
        g.step_a = step, g.step_b = depth, g.step_c = width;
    } else if (c->direction == CONV_IMAGE) {
        g.m = depth, g.n = rows, g.k = width, g.transpose_a = true;
        g.lda = columns, g.ldb = output, g.ldc = matrix;
        g.step_a = step, g.step_b = width, g.step_c = depth;
    } else {
        g.m = width, g.n = depth, g.k = rows, g.transpose_b = true;
        g.lda = output, g.ldb = matrix, g.ldc = columns;
        g.step_a = width, g.step_b = depth, g.step_c = step;
    }
    g.batches = c->local ? s->positions : c->groups;
    if (g.batches == 1)
        g.step_a = g.step_b = g.step_c = 0;
    return g;
}

/* Plans the products of all chunks, the last of which may be smaller; returns the first plan. */
static struct cuda_gemm_plan plan_products(struct cuda_device *d, struct conv_steps *s)
{
    struct cuda_gemm gemm = gemm_of(s, s->chunk);
    struct cuda_gemm_plan plan, of_rest = {.bytes = 0};
    int64_t rest = s->conv->batch % s->chunk;
    cuda_gemm_plan(d, &gemm, &plan);
    if (rest) {
        gemm = gemm_of(s, rest);
        cuda_gemm_plan(d, &gemm, &of_rest);
    }
    s->work = take_scratch(s, true,
                           (int64_t)(plan.bytes > of_rest.bytes ? plan.bytes : of_rest.bytes), 1);
    return plan;
}

/* ---- prepare ---- */

static int prepare(struct kernel_setup *setup)
{
    struct conv_cuda_state *state = setup->state = mem_alloc(sizeof *state);
    struct cuda_device *d = cuda_device(setup->device);
    state->exact = setup->exact;
    if (conv_init(&state->form, setup->node, setup->err) || cuda_gemm_open(d, setup->err) ||
        cuda_dnn_open(d, &state->has_dnn, setup->err))
        return setup->err->code;
    struct conv conv = state->form;
    if (!setup->shapes_known || conv_plan(setup, &conv) || conv_is_empty(&conv))
        return setup->err->code;
    state->is_planned = true;
    state->has_dnn = state->has_dnn && conv_dnn_plan(d, &conv, state->exact, &state->dnn);
    if (state->has_dnn) {
        const char *spreads =
            d->dnn->spreads(state->dnn.conv.direction, state->dnn.algorithm.number);
        snprintf(state->name, sizeof state->name, "cuda_conv cudnn=%d algorithm=%d%s%s",
                 d->dnn->version(), state->dnn.algorithm.number, spreads ? " " : "",
                 spreads ? spreads : "");
        setup->scratch_bytes = state->dnn.bytes;
    } else {
        struct conv_steps steps;
        plan_steps(&steps, &conv);
        struct cuda_gemm_plan products = plan_products(d, &steps);
        cuda_gemm_name(d, &products, setup->row->code, state->name);
        setup->scratch_bytes = steps.bytes;
    }
    setup->name = state->name;
    return 0;
}

/* ---- formats ---- */

/* Transposes an image tensor from NCHW to [batch, height, width, channels], or back. */
static int transpose(struct kernel_call *call, const struct shape *nchw, enum dtype type,
                     const void *const data[2], bool to_nchw)
{
    int64_t b = nchw->dims[0], c = nchw->dims[1], cells = nchw->dims[2] * nchw->dims[3];
    struct cuda_strided_copy launch = {.element_bytes = (int)dtype_bytes(type),
                                       .rank = 3,
                                       .dims = {b, cells, c},
                                       .from_strides = {c * cells, 1, cells},
                                       .to_strides = {c * cells, c, 1},
                                       .from = data[0],
                                       .to = (void *)(uintptr_t)data[1]};
    if (to_nchw) {
        launch.dims[1] = c, launch.dims[2] = cells;
        launch.from_strides[1] = 1, launch.from_strides[2] = c;
        launch.to_strides[1] = cells, launch.to_strides[2] = 1;
    }
    return cuda_launched(call, cuda_strided(&launch, cuda_compute(call)));
}

/* ---- products ---- */

/* The memory of a computation in NHWC. */
struct conv_data {
    char *image, *filter, *output, *matrix;
    char *sums; /* of the filter's gradient: itself, or wide sums */
    char *work; /* workspace of products */
};

static int run_chunks(struct kernel_call *call, const struct conv_steps *s,
                      const struct conv_data *data)
{
    const struct conv *c = s->conv;
    bool rolls = c->direction == CONV_IMAGE, is_filter = c->direction == CONV_FILTER;
    int code = KERNEL_ENQUEUED;
    for (int64_t i = 0; i < c->batch && code == KERNEL_ENQUEUED; i += s->chunk) {
        int64_t left = c->batch - i, n = left < s->chunk ? left : s->chunk;
        size_t offset = (size_t)(i * s->image_count) * dtype_bytes(c->type);
        struct cuda_unroll unroll = {.type = s->type,
                                     .batch = n,
                                     .channels = c->in_channels,
                                     .groups = c->groups,
                                     .y = c->window.y,
                                     .x = c->window.x,
                                     .image = data->image + offset,
                                     .matrix = data->matrix};
        if (!s->is_plain && !rolls)
            code = cuda_launched(call, cuda_unroll(&unroll, cuda_compute(call)));
        if (code == KERNEL_ENQUEUED) {
            struct cuda_gemm gemm = gemm_of(s, n);
            struct cuda_gemm_plan plan;
            char *output = data->output + (size_t)(i * s->output_count) * dtype_bytes(c->type);
            void *matrix = s->is_plain ? unroll.image : data->matrix;
            gemm.a = is_filter ? output : data->filter;
            gemm.b = rolls ? output : matrix;
            gemm.c = is_filter ? data->sums : rolls ? matrix : output;
            gemm.accumulate = is_filter && i > 0;
            cuda_gemm_plan(cuda_device(call->device), &gemm, &plan);
            code = cuda_gemm_run(call, &gemm, &plan, data->work);
        }
        if (code == KERNEL_ENQUEUED && !s->is_plain && rolls)
            code = cuda_launched(call, cuda_roll(&unroll, cuda_compute(call)));
    }
    if (code != KERNEL_ENQUEUED || data->sums == data->filter)
        return code;
    struct cuda_cast launch = {.from = CUDA_FLOAT32,
                               .to = s->type,
                               .n = shape_count(&s->conv->filter),
                               .x = data->sums,
                               .y = data->filter};
    return cuda_launched(call, cuda_cast(&launch, cuda_compute(call)));
}

/* ---- run ---- */

/* The image, the filter and the output. */
static int run_products(struct kernel_call *call, const struct conv *c, void *const all[3])
{
    struct conv_steps steps;
    plan_steps(&steps, c);
    plan_products(cuda_device(call->device), &steps);
    char *scratch = cuda_scratch(call, steps.bytes);
    if (steps.bytes && !scratch)
        return call->err->code;
    struct conv_data data = {.image = all[0], .filter = all[1], .output = all[2], .sums = all[1]};
    if (scratch) {
        data.matrix = scratch + steps.matrix;
        data.work = scratch + steps.work;
    }
    if (steps.is_wide && c->direction == CONV_FILTER)
        data.sums = scratch + steps.filter;
    if (!c->window.nchw)
        return run_chunks(call, &steps, &data);
    /* Operands are transposed to NHWC, and the result back. */
    struct conv_data inner = data;
    inner.image = scratch + steps.image;
    inner.output = scratch + steps.output;
    int code = KERNEL_ENQUEUED;
    if (c->direction != CONV_IMAGE)
        code =
            transpose(call, &c->image, c->type, (const void *[]){data.image, inner.image}, false);
    if (code == KERNEL_ENQUEUED && c->direction != CONV_FORWARD)
        code = transpose(call, &c->output, c->type, (const void *[]){data.output, inner.output},
                         false);
    if (code == KERNEL_ENQUEUED)
        code = run_chunks(call, &steps, &inner);
    if (code == KERNEL_ENQUEUED && c->direction == CONV_IMAGE)
        code = transpose(call, &c->image, c->type, (const void *[]){inner.image, data.image}, true);
    if (code == KERNEL_ENQUEUED && c->direction == CONV_FORWARD)
        code =
            transpose(call, &c->output, c->type, (const void *[]){inner.output, data.output}, true);
    return code;
}

static int run(struct kernel_call *call)
{
    const struct conv_cuda_state *state = call->state;
    struct conv conv;
    struct conv_dnn own;
    struct tensor *out = conv_output(call, &state->form, &conv);
    if (!out)
        return call->err->code;
    if (conv_is_empty(&conv)) /* empty sums */
        return strided_fill_bits(call, out, 0);
    void *all[3] = {call->in[0]->data, call->in[1]->data,
                    call->n_in > 2 ? call->in[2]->data : NULL};
    all[conv.direction == CONV_FORWARD ? 2 : conv.direction == CONV_IMAGE ? 0 : 1] = out->data;
    /* Uses cuDNN, by the plan made before, or a plan made for this call; else products. */
    const struct conv_dnn *dnn = state->has_dnn ? &state->dnn : NULL;
    if (state->has_dnn && !state->is_planned)
        dnn = conv_dnn_plan(cuda_device(call->device), &conv, state->exact, &own) ? &own : NULL;
    if (!dnn)
        return run_products(call, &conv, all);
    char *scratch = cuda_scratch(call, dnn->bytes);
    return scratch ? conv_dnn_run(call, dnn, all, scratch) : call->err->code;
}

const struct kernel_code kernel_cuda_conv = {.prepare = prepare, .run = run};
