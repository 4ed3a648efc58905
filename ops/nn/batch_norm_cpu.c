/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization, a slice of channels at a time: sums in double precision, position by
 * position, so that the bits do not depend on the team.
 *
 * Backward, in training: with xc = x - mean and r = 1 / sqrt(variance + epsilon),
 * dx = scale r (g - mean(g) - xc r^2 mean(g xc)); else dx = scale r g.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/device/cpu.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/checks.h"

#define SLICE 16

struct batch_norm_work {
    const struct norm *norm;
    struct channels channels;
    int64_t count; /* positions per channel */
    bool backward;
    const void *x, *g, *scale, *offset, *mean, *variance;
    void *out[5];
};

/* Runs the body for each position's part of the slice [begin, end); `at` is its first element. */
#define EACH_POSITION(c)                                                                           \
    for (int64_t o = 0; o < (c)->outer; o++)                                                       \
        for (int64_t b = begin / (c)->block; b * (c)->block < end; b++)                            \
            for (int64_t i = 0, first = b * (c)->block, from = first > begin ? first : begin,      \
                         to = first + (c)->block < end ? first + (c)->block : end,                 \
                         at = (o * (c)->blocks + b) * (c)->inner * (c)->block + from - first;      \
                 i < (c)->inner; i++, at += (c)->block)
#define EACH_CHANNEL for (int64_t j = 0; j < to - from; j++)

#define NORM_LOOPS(type)                                                                           \
    static void moments_##type(const struct batch_norm_work *w, int64_t begin, int64_t end,        \
                               double *mean, double *variance)                                     \
    {                                                                                              \
        const struct channels *c = &w->channels;                                                   \
        const type *x = w->x;                                                                      \
        double n = (double)w->count;                                                               \
        EACH_POSITION(c) EACH_CHANNEL mean[from - begin + j] += x[at + j];                         \
        for (int64_t k = 0; k < end - begin; k++)                                                  \
            mean[k] /= n;                                                                          \
        EACH_POSITION(c) EACH_CHANNEL                                                              \
        {                                                                                          \
            double d = x[at + j] - mean[from - begin + j];                                         \
            variance[from - begin + j] += d * d;                                                   \
        }                                                                                          \
        for (int64_t k = 0; k < end - begin; k++)                                                  \
            variance[k] /= n;                                                                      \
    }                                                                                              \
    static void forward_##type(const struct batch_norm_work *w, int64_t begin, int64_t end)        \
    {                                                                                              \
        const struct channels *c = &w->channels;                                                   \
        const type *x = w->x;                                                                      \
        type *y = w->out[0], factor[SLICE], shift[SLICE];                                          \
        double mean[SLICE] = {0}, variance[SLICE] = {0}, n = (double)w->count;                     \
        if (w->norm->training)                                                                     \
            moments_##type(w, begin, end, mean, variance);                                         \
        for (int64_t k = 0; k < end - begin; k++) {                                                \
            int64_t channel = begin + k;                                                           \
            if (!w->norm->training) {                                                              \
                mean[k] = ((const type *)w->mean)[channel];                                        \
                variance[k] = ((const type *)w->variance)[channel];                                \
            }                                                                                      \
            double r = 1 / sqrt(variance[k] + w->norm->epsilon);                                   \
            factor[k] = (type)(((const type *)w->scale)[channel] * r);                             \
            shift[k] = ((const type *)w->offset)[channel];                                         \
            double unbiased = w->norm->training && n > 1 ? n / (n - 1) : 1;                        \
            ((type *)w->out[1])[channel] = ((type *)w->out[3])[channel] = (type)mean[k];           \
            ((type *)w->out[2])[channel] = (type)(variance[k] * unbiased);                         \
            ((type *)w->out[4])[channel] = (type)variance[k];                                      \
        }                                                                                          \
        EACH_POSITION(c) EACH_CHANNEL                                                              \
        {                                                                                          \
            int64_t k = from - begin + j;                                                          \
            y[at + j] = (x[at + j] - (type)mean[k]) * factor[k] + shift[k];                        \
        }                                                                                          \
    }                                                                                              \
    static void backward_##type(const struct batch_norm_work *w, int64_t begin, int64_t end)       \
    {                                                                                              \
        const struct channels *c = &w->channels;                                                   \
        const type *x = w->x, *g = w->g, *means = w->mean;                                         \
        type *dx = w->out[0], factor[SLICE], slope[SLICE], shift[SLICE];                           \
        double sum[SLICE] = {0}, product[SLICE] = {0}, n = (double)w->count;                       \
        EACH_POSITION(c) EACH_CHANNEL                                                              \
        {                                                                                          \
            int64_t k = from - begin + j;                                                          \
            sum[k] += g[at + j];                                                                   \
            product[k] += (double)g[at + j] * (x[at + j] - means[from + j]);                       \
        }                                                                                          \
        for (int64_t k = 0; k < end - begin; k++) {                                                \
            int64_t channel = begin + k;                                                           \
            double r = 1 / sqrt(((const type *)w->variance)[channel] + w->norm->epsilon);          \
            bool training = w->norm->training;                                                     \
            factor[k] = (type)(((const type *)w->scale)[channel] * r);                             \
            shift[k] = (type)(training ? sum[k] / n : 0);                                          \
            slope[k] = (type)(training ? product[k] / n * r * r : 0);                              \
            ((type *)w->out[1])[channel] = (type)(product[k] * r);                                 \
            ((type *)w->out[2])[channel] = (type)sum[k];                                           \
        }                                                                                          \
        EACH_POSITION(c) EACH_CHANNEL                                                              \
        {                                                                                          \
            int64_t k = from - begin + j;                                                          \
            type centred = x[at + j] - means[from + j];                                            \
            dx[at + j] = factor[k] * (g[at + j] - shift[k] - centred * slope[k]);                  \
        }                                                                                          \
    }                                                                                              \
    static int run_##type(void *context, int64_t begin, int64_t end)                               \
    {                                                                                              \
        const struct batch_norm_work *w = context;                                                 \
        for (int64_t i = begin; i < end; i++) {                                                    \
            int64_t first = i * SLICE, last = first + SLICE;                                       \
            last = last < w->channels.n ? last : w->channels.n;                                    \
            if (w->backward)                                                                       \
                backward_##type(w, first, last);                                                   \
            else                                                                                   \
                forward_##type(w, first, last);                                                    \
        }                                                                                          \
        return 0;                                                                                  \
    }

NORM_LOOPS(float)
NORM_LOOPS(double)

static int prepare(struct kernel_setup *setup)
{
    struct norm *state = setup->state = mem_alloc(sizeof *state);
    norm_init(state, setup->node);
    return 0;
}

static void describe(struct kernel_call *call, const struct tensor *image,
                     struct batch_norm_work *w)
{
    const struct norm *norm = call->state;
    *w = (struct batch_norm_work){.norm = norm, .x = image->data};
    w->channels = cpu_channels(&image->shape, norm->nchw ? 1 : 3);
    w->count = w->channels.n ? shape_count(&image->shape) / w->channels.n : 0;
}

static int run_slices(struct kernel_call *call, struct batch_norm_work *w)
{
    int64_t slices = (w->channels.n + SLICE - 1) / SLICE;
    int64_t grain = PARALLEL_GRAIN_COMPUTE / (w->count * SLICE + 1) + 1;
    bool single = call->in[0]->type == FLOAT32;
    parallel_for(call->threads, slices, grain, single ? run_float : run_double, w);
    return KERNEL_DONE;
}

/* Runs the op, or its gradient, whose input 0 is the incoming gradient. */
static int norm_run(struct kernel_call *call)
{
    struct batch_norm_work w;
    int back = call->form;
    const struct tensor *image = call->in[back];
    if (back ? norm_grad_check(call, call->state) : norm_check(call, call->state))
        return call->err->code;
    describe(call, image, &w);
    int64_t n = w.channels.n, moments = back ? 0 : n;
    if (norm_outputs(call, &image->shape, (int64_t[]){n, n, moments, moments}, w.out))
        return call->err->code;
    w.backward = back;
    w.g = back ? call->in[0]->data : NULL;
    w.scale = call->in[1 + back]->data;
    w.offset = back ? NULL : call->in[2]->data;
    w.mean = call->in[3]->data;
    w.variance = call->in[4]->data;
    return run_slices(call, &w);
}

const struct kernel_code kernel_batch_norm = {.prepare = prepare, .run = norm_run, .form = NORM};
const struct kernel_code kernel_batch_norm_grad = {
    .prepare = prepare, .run = norm_run, .form = NORM_GRAD};
