/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization, a slice of channels at a time: sums in double precision, position by
 * position, so that the bits do not depend on the team.
 *
 * Backward, in training: with xc = x - mean and r = 1 / sqrt(variance + epsilon),
 * dx = scale r (g - mean(g) - xc r^2 mean(g xc)); else dx = scale r g.
 */
#include <math.h>

#include "base/memory.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/checks.h"

/* Channels of row-major positions are summed up to SLICE at a time, and threads take UNIT of them
 * at least, which are a line of the cache. */
#define SLICE 64
#define UNIT 16

struct batch_norm_work {
    const struct norm *norm;
    int64_t channels, count;    /* count: positions per channel, which are: */
    int64_t outer, inner, step; /* elements from one of the inner positions to the next */
    int64_t plane;              /* elements from one channel to the next */
    int64_t unit;               /* channels that a thread takes at least */
    const void *x, *g, *scale, *offset, *mean, *variance;
    void *out[5];
};

/* Runs the body for each position; `at` is the element of its channel `first`. */
#define EACH_POSITION(w, first)                                                                    \
    for (int64_t o = 0; o < (w)->outer; o++)                                                       \
        for (int64_t i = 0, at = (o * (w)->channels + (first)) * (w)->plane; i < (w)->inner;       \
             i++, at += (w)->step)
#define EACH_CHANNEL _Pragma("omp simd") for (int64_t k = 0; k < width; k++)

/* With a constant width sums stay in registers. */
#define INLINE static inline __attribute__((always_inline))

#define NORM_LOOPS(type)                                                                           \
    INLINE void moments_##type(const struct batch_norm_work *w, int64_t first, int64_t width,      \
                               double *mean, double *variance)                                     \
    {                                                                                              \
        const type *x = w->x;                                                                      \
        const double n = (double)w->count;                                                         \
        EACH_POSITION(w, first) EACH_CHANNEL mean[k] += x[at + k];                                 \
        EACH_CHANNEL mean[k] /= n;                                                                 \
        EACH_POSITION(w, first) EACH_CHANNEL                                                       \
        {                                                                                          \
            double d = x[at + k] - mean[k];                                                        \
            variance[k] += d * d;                                                                  \
        }                                                                                          \
        EACH_CHANNEL variance[k] /= n;                                                             \
    }                                                                                              \
    INLINE void forward_##type(const struct batch_norm_work *w, int64_t first, int64_t width)      \
    {                                                                                              \
        const type *x = w->x, *means = w->mean, *variances = w->variance;                          \
        const type *scale = (const type *)w->scale + first,                                        \
                   *offset = (const type *)w->offset + first;                                      \
        type *y = w->out[0], centre[SLICE], factor[SLICE], shift[SLICE];                           \
        double mean[SLICE] = {0}, variance[SLICE] = {0}, n = (double)w->count;                     \
        if (w->norm->training)                                                                     \
            moments_##type(w, first, width, mean, variance);                                       \
        EACH_CHANNEL                                                                               \
        {                                                                                          \
            int64_t channel = first + k;                                                           \
            if (!w->norm->training) {                                                              \
                mean[k] = means[channel];                                                          \
                variance[k] = variances[channel];                                                  \
            }                                                                                      \
            double r = 1 / sqrt(variance[k] + w->norm->epsilon);                                   \
            factor[k] = (type)(scale[k] * r);                                                      \
            shift[k] = offset[k];                                                                  \
            double unbiased = w->norm->training && n > 1 ? n / (n - 1) : 1;                        \
            ((type *)w->out[1])[channel] = ((type *)w->out[3])[channel] = centre[k] =              \
                (type)mean[k];                                                                     \
            ((type *)w->out[2])[channel] = (type)(variance[k] * unbiased);                         \
            ((type *)w->out[4])[channel] = (type)variance[k];                                      \
        }                                                                                          \
        EACH_POSITION(w, first)                                                                    \
        {                                                                                          \
            EACH_CHANNEL y[at + k] = (x[at + k] - centre[k]) * factor[k] + shift[k];               \
        }                                                                                          \
    }                                                                                              \
    INLINE void backward_##type(const struct batch_norm_work *w, int64_t first, int64_t width)     \
    {                                                                                              \
        const type *x = w->x, *g = w->g, *means = (const type *)w->mean + first;                   \
        type *dx = w->out[0], centre[SLICE], factor[SLICE], slope[SLICE], shift[SLICE];            \
        double sum[SLICE] = {0}, product[SLICE] = {0}, n = (double)w->count;                       \
        EACH_CHANNEL centre[k] = means[k];                                                         \
        EACH_POSITION(w, first) EACH_CHANNEL                                                       \
        {                                                                                          \
            sum[k] += g[at + k];                                                                   \
            product[k] += (double)g[at + k] * (x[at + k] - centre[k]);                             \
        }                                                                                          \
        EACH_CHANNEL                                                                               \
        {                                                                                          \
            int64_t channel = first + k;                                                           \
            double r = 1 / sqrt(((const type *)w->variance)[channel] + w->norm->epsilon);          \
            bool training = w->norm->training;                                                     \
            factor[k] = (type)(((const type *)w->scale)[channel] * r);                             \
            shift[k] = (type)(training ? sum[k] / n : 0);                                          \
            slope[k] = (type)(training ? product[k] / n * r * r : 0);                              \
            ((type *)w->out[1])[channel] = (type)(n > 0 ? product[k] * r : 0);                     \
            ((type *)w->out[2])[channel] = (type)sum[k];                                           \
        }                                                                                          \
        EACH_POSITION(w, first)                                                                    \
        {                                                                                          \
            EACH_CHANNEL dx[at + k] =                                                              \
                factor[k] * (g[at + k] - shift[k] - (x[at + k] - centre[k]) * slope[k]);           \
        }                                                                                          \
    }                                                                                              \
    INLINE void slice_##type(const struct batch_norm_work *w, int64_t first, int64_t width)        \
    {                                                                                              \
        if (w->offset)                                                                             \
            forward_##type(w, first, width);                                                       \
        else                                                                                       \
            backward_##type(w, first, width);                                                      \
    }                                                                                              \
    static int run_##type(void *context, int64_t begin, int64_t end)                               \
    {                                                                                              \
        const struct batch_norm_work *w = context;                                                 \
        int64_t last = end * w->unit < w->channels ? end * w->unit : w->channels, width;           \
        for (int64_t first = begin * w->unit; first < last; first += width) {                      \
            width = last - first;                                                                  \
            if (w->unit == 1)                                                                      \
                slice_##type(w, first, width = 1);                                                 \
            else if (width >= SLICE)                                                               \
                slice_##type(w, first, width = SLICE);                                             \
            else if (width >= UNIT)                                                                \
                slice_##type(w, first, width = UNIT);                                              \
            else                                                                                   \
                slice_##type(w, first, width);                                                     \
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
    *w = (struct batch_norm_work){.norm = norm, .x = image->data, .plane = 1};
    w->channels = image->shape.dims[norm->nchw ? 1 : 3];
    w->count = w->channels ? shape_count(&image->shape) / w->channels : 0;
    w->outer = norm->nchw ? image->shape.dims[0] : 1;
    w->inner = w->outer ? w->count / w->outer : 0;
    w->step = norm->nchw ? 1 : w->channels;
    w->plane = norm->nchw ? w->inner : 1;
    w->unit = norm->nchw ? 1 : UNIT;
}

static int run_slices(struct kernel_call *call, struct batch_norm_work *w)
{
    int64_t slices = (w->channels + w->unit - 1) / w->unit;
    int64_t grain = PARALLEL_GRAIN_COMPUTE / (w->count * w->unit + 1) + 1;
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
    if (!result_outputs(call, 0, 0))
        return call->err->code;
    describe(call, image, &w);
    for (int i = 0; i < 5; i++)
        w.out[i] = call->out[i]->data;
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
