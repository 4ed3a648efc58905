/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as matrix products, for each group of channels: an image's windows are unrolled into
 * the rows of a matrix [positions, window * channels], which the filter, seen as [window *
 * channels, out channels], multiplies. The gradients are the products of the same matrices.
 */
#include <string.h>

#include "ops/device/blas_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/conv_cpu.h"

struct unroll {
    const struct conv *conv;
    size_t size;                          /* of an element */
    int64_t stride_c, stride_x, stride_y; /* of the image */
    int64_t channels, row;                /* of a group; elements of a row of its matrix */
};

/* Copies one row of the matrix from the image or, with `add`, adds it to the image. */
#define UNROLL_ROW(type)                                                                           \
    static void unroll_##type(const struct unroll *u, int64_t position, type *image, type *matrix, \
                              bool add)                                                            \
    {                                                                                              \
        const struct window *w = &u->conv->window;                                                 \
        int64_t y0 = position / w->x.out * w->y.stride - w->y.before;                              \
        int64_t x0 = position % w->x.out * w->x.stride - w->x.before;                              \
        int64_t channels = u->channels;                                                            \
        type *row = matrix + position * u->row;                                                    \
        for (int64_t ky = 0; ky < w->y.size; ky++)                                                 \
            for (int64_t kx = 0; kx < w->x.size; kx++, row += channels) {                          \
                int64_t y = y0 + ky * w->y.dilation, x = x0 + kx * w->x.dilation;                  \
                bool inside = y >= 0 && y < w->y.in && x >= 0 && x < w->x.in;                      \
                type *cell = inside ? image + y * u->stride_y + x * u->stride_x : NULL;            \
                for (int64_t c = 0; c < channels; c++)                                             \
                    if (!add)                                                                      \
                        row[c] = inside ? cell[c * u->stride_c] : 0;                               \
                    else if (inside)                                                               \
                        cell[c * u->stride_c] += row[c];                                           \
            }                                                                                      \
    }

UNROLL_ROW(float)
UNROLL_ROW(double)

struct unroll_job {
    const struct unroll *unroll;
    void *image, *matrix;
    int64_t n; /* rows */
    bool add;  /* to the image; windows overlap, so one thread does it */
};

static void unroll_part(void *context, int part, int parts)
{
    const struct unroll_job *job = context;
    const struct unroll *u = job->unroll;
    int64_t end = job->n * (part + 1) / parts;
    for (int64_t i = job->n * part / parts; i < end; i++)
        u->size == 4 ? unroll_float(u, i, job->image, job->matrix, job->add)
                     : unroll_double(u, i, job->image, job->matrix, job->add);
}

/* Computes a group of one image. NCHW outputs are [out channels, positions], that is, transposed.
 */
static int one_group(const struct unroll *u, struct kernel_call *call, bool deterministic,
                     void *const data[4], bool first)
{
    const struct conv *c = u->conv;
    void *image = data[0], *filter = data[1], *output = data[2], *matrix = data[3];
    int64_t positions = c->window.y.out * c->window.x.out;
    bool nchw = c->window.nchw;
    int64_t all = c->out_channels, own = all / c->groups;
    struct gemm g = {.type = c->type, .deterministic = deterministic};
    const void *a, *b;
    void *result;
    struct unroll_job job = {u, image, matrix, positions, c->direction == CONV_IMAGE};
    if (!job.add && call->threads > 1 && job.n * u->row > PARALLEL_WORTH(32768))
        team_run(call->threads, unroll_part, &job);
    else if (!job.add)
        unroll_part(&job, 0, 1);
    if (c->direction == CONV_FORWARD && nchw) {
        g.m = own, g.n = positions, g.k = u->row;
        g.transpose_a = g.transpose_b = true, g.lda = all;
        a = filter, b = matrix, result = output;
    } else if (c->direction == CONV_FORWARD) {
        g.m = positions, g.n = own, g.k = u->row, g.ldb = g.ldc = all;
        a = matrix, b = filter, result = output;
    } else if (c->direction == CONV_IMAGE) {
        g.m = positions, g.n = u->row, g.k = own;
        g.transpose_a = nchw, g.transpose_b = true, g.lda = nchw ? 0 : all, g.ldb = all;
        a = output, b = filter, result = matrix;
    } else {
        g.m = u->row, g.n = own, g.k = positions, g.accumulate = !first;
        g.transpose_a = true, g.transpose_b = nchw, g.ldb = nchw ? 0 : all, g.ldc = all;
        a = matrix, b = output, result = filter;
    }
    int code = gemm_run(&g, a, b, result, call->threads, call->err);
    if (!code && job.add)
        unroll_part(&job, 0, 1);
    return code;
}

int conv_by_gemm(const struct conv *c, struct kernel_call *call, bool deterministic,
                 const struct tensor *const operands[3])
{
    const struct window *w = &c->window;
    struct unroll u = {.conv = c,
                       .size = dtype_bytes(c->type),
                       .stride_c = w->nchw ? w->y.in * w->x.in : 1,
                       .stride_x = w->nchw ? 1 : c->in_channels,
                       .channels = c->in_channels / c->groups,
                       .row = w->y.size * w->x.size * c->in_channels / c->groups};
    u.stride_y = u.stride_x * w->x.in;
    int64_t positions = w->y.out * w->x.out;
    size_t image_bytes = (size_t)(w->y.in * w->x.in * c->in_channels) * u.size;
    size_t output_bytes = (size_t)(positions * c->out_channels) * u.size;
    void *matrix = kernel_temporary(call, (size_t)(positions * u.row + 1) * u.size);
    if (!matrix)
        return call->err->code;
    if (c->direction == CONV_IMAGE)
        memset(operands[0]->data, 0, tensor_bytes(operands[0]));
    /* Of the operands, from a group to the next. */
    size_t image_step = (size_t)(u.channels * u.stride_c) * u.size;
    size_t filter_step = (size_t)(c->out_channels / c->groups) * u.size;
    size_t output_step = filter_step * (size_t)(w->nchw ? positions : 1);
    for (int64_t i = 0; i < c->batch * c->groups; i++) {
        size_t image = (size_t)(i / c->groups), group = (size_t)(i % c->groups);
        char *to[3] = {operands[0]->data, operands[1]->data, operands[2]->data};
        void *data[4] = {to[0] + image * image_bytes + group * image_step,
                         to[1] + group * filter_step,
                         to[2] + image * output_bytes + group * output_step, matrix};
        int code = one_group(&u, call, deterministic, data, image == 0);
        if (code)
            return code;
    }
    return KERNEL_DONE;
}
