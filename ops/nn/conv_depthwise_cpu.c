/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution in NHWC, a filter and an output for each channel: for each cell of each
 * window, a row of channels of the result grows by the product of two other rows. Channels are
 * shared among threads, so the order of each sum is the same for any team.
 */
#include <string.h>

#include "ops/math/parallel_cpu.h"
#include "ops/nn/conv_cpu.h"

#define CHANNELS_MIN 8 /* for a thread: adjacent ones share a cache line */

struct depthwise {
    const struct conv *conv;
    void *image, *filter, *output;
};

/* Adds the products of channels [begin, end) for the window of an output.
 */
#define ADD_WINDOW(type)                                                                           \
    static void add_##type(const struct depthwise *d, int64_t at, int64_t begin, int64_t end)      \
    {                                                                                              \
        const struct window_axis *y = &d->conv->window.y, *x = &d->conv->window.x;                 \
        int64_t n = d->conv->in_channels, row = at / x->out, first = row / y->out * y->in;         \
        int64_t y0 = row % y->out * y->stride - y->before;                                         \
        int64_t x0 = at % x->out * x->stride - x->before;                                          \
        type *output = (type *)d->output + at * n, *filter = d->filter;                            \
        for (int64_t ky = 0; ky < y->size; ky++)                                                   \
            for (int64_t kx = 0; kx < x->size; kx++, filter += n) {                                \
                int64_t iy = y0 + ky * y->dilation, ix = x0 + kx * x->dilation;                    \
                if (iy < 0 || iy >= y->in || ix < 0 || ix >= x->in)                                \
                    continue;                                                                      \
                type *image = (type *)d->image + ((first + iy) * x->in + ix) * n;                  \
                type *rows[3] = {image, filter, output};                                           \
                type *restrict to = rows[result_of[d->conv->direction]];                           \
                const type *a = rows[d->conv->direction == CONV_IMAGE ? 2 : 0];                    \
                const type *b = rows[d->conv->direction == CONV_FILTER ? 2 : 1];                   \
                for (int64_t c = begin; c < end; c++)                                              \
                    to[c] += a[c] * b[c];                                                          \
            }                                                                                      \
    }

static const int result_of[] = {[CONV_FORWARD] = 2, [CONV_IMAGE] = 0, [CONV_FILTER] = 1};

ADD_WINDOW(float)
ADD_WINDOW(double)

static int add_channels(void *context, int64_t begin, int64_t end)
{
    const struct depthwise *d = context;
    const struct window *w = &d->conv->window;
    for (int64_t i = 0; i < d->conv->batch * w->y.out * w->x.out; i++)
        (d->conv->type == FLOAT32 ? add_float : add_double)(d, i, begin, end);
    return 0;
}

bool conv_is_depthwise(const struct conv *c)
{
    return !c->window.nchw && c->groups == c->in_channels && c->groups == c->out_channels;
}

int conv_depthwise(const struct conv *c, struct kernel_call *call,
                   const struct tensor *const operands[3])
{
    struct depthwise d = {c, operands[0]->data, operands[1]->data, operands[2]->data};
    const struct tensor *out = operands[result_of[c->direction]];
    int64_t products = shape_count(&c->output) / c->groups * c->window.y.size * c->window.x.size;
    memset(out->data, 0, tensor_bytes(out));
    parallel_for(call->threads, c->groups, PARALLEL_GRAIN_COMPUTE / products + CHANNELS_MIN,
                 add_channels, &d);
    return KERNEL_DONE;
}
