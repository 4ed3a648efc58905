/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as matrix products: an image's windows are unrolled into the rows of a matrix
 * [positions, window * channels], which the filter, seen as [window * channels, out channels],
 * multiplies. The gradients are the products of the same matrices.
 */
#include <string.h>

#include "ops/device/blas_cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/conv_cpu.h"

struct unroll {
    const struct conv *conv;
    size_t size;                               /* of an element */
    int64_t stride_c, stride_x, stride_y, row; /* of the image; `row` of the matrix, in elements */
};

/* Copies one row of the matrix from the image or, with `add`, adds it to the image. */
#define UNROLL_ROW(type)                                                                           \
    static void unroll_##type(const struct unroll *u, int64_t position, type *image, type *matrix, \
                              bool add)                                                            \
    {                                                                                              \
        const struct window *w = &u->conv->window;                                                 \
        int64_t y0 = position / w->x.out * w->y.stride - w->y.before;                              \
        int64_t x0 = position % w->x.out * w->x.stride - w->x.before;                              \
        int64_t channels = u->conv->in_channels;                                                   \
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
};

static void unroll_part(void *context, int part, int parts)
{
    const struct unroll_job *all = context;
    const struct unroll *u = all->unroll;
    int64_t end = all->n * (part + 1) / parts;
    for (int64_t i = all->n * part / parts; i < end; i++)
        u->size == 4 ? unroll_float(u, i, all->image, all->matrix, false)
                     : unroll_double(u, i, all->image, all->matrix, false);
}

/* Computes one image. NCHW outputs are [out channels, positions], that is, transposed. */
static int one_image(const struct unroll *u, struct kernel_call *call, bool deterministic,
                     void *const data[4], bool first)
{
    const struct conv *c = u->conv;
    void *image = data[0], *filter = data[1], *output = data[2], *matrix = data[3];
    int64_t positions = c->window.y.out * c->window.x.out;
    bool nchw = c->window.nchw;
    struct gemm g = {.type = c->type, .deterministic = deterministic};
    const void *a, *b;
    void *result;
    if (c->direction != CONV_IMAGE) {
        struct unroll_job all = {u, image, matrix, positions};
        if (call->threads > 1 && all.n * u->row > PARALLEL_WORTH(32768))
            team_run(call->threads, unroll_part, &all);
        else
            unroll_part(&all, 0, 1);
    }
    if (c->direction == CONV_FORWARD && nchw) {
        g.m = c->out_channels, g.n = positions, g.k = u->row;
        g.transpose_a = g.transpose_b = true;
        a = filter, b = matrix, result = output;
    } else if (c->direction == CONV_FORWARD) {
        g.m = positions, g.n = c->out_channels, g.k = u->row;
        a = matrix, b = filter, result = output;
    } else if (c->direction == CONV_IMAGE) {
        g.m = positions, g.n = u->row, g.k = c->out_channels;
        g.transpose_a = nchw, g.transpose_b = true;
        a = output, b = filter, result = matrix;
    } else {
        g.m = u->row, g.n = c->out_channels, g.k = positions;
        g.transpose_a = true, g.transpose_b = nchw, g.accumulate = !first;
        a = matrix, b = output, result = filter;
    }
    int code = gemm_run(&g, a, b, result, call->threads, call->err);
    if (!code && c->direction == CONV_IMAGE) {
        /* Windows overlap, so one thread does it. */
        memset(image, 0, (size_t)(c->window.y.in * c->window.x.in * c->in_channels) * u->size);
        for (int64_t i = 0; i < positions; i++)
            u->size == 4 ? unroll_float(u, i, image, matrix, true)
                         : unroll_double(u, i, image, matrix, true);
    }
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
                       .row = w->y.size * w->x.size * c->in_channels};
    u.stride_y = u.stride_x * w->x.in;
    int64_t positions = w->y.out * w->x.out;
    size_t image_bytes = (size_t)(w->y.in * w->x.in * c->in_channels) * u.size;
    size_t output_bytes = (size_t)(positions * c->out_channels) * u.size;
    void *matrix = kernel_temporary(call, (size_t)(positions * u.row + 1) * u.size);
    if (!matrix)
        return call->err->code;
    for (int64_t i = 0; i < c->batch; i++) {
        void *data[4] = {(char *)operands[0]->data + (size_t)i * image_bytes, operands[1]->data,
                         (char *)operands[2]->data + (size_t)i * output_bytes, matrix};
        int code = one_image(&u, call, deterministic, data, i == 0);
        if (code)
            return code;
    }
    return KERNEL_DONE;
}
