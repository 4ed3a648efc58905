/* SPDX-License-Identifier: Apache-2.0
 *
 * With n_k = bias + alpha sum_{|j - k| <= r} x_j^2 and y_k = x_k n_k^-beta:
 * dx_j = g_j n_j^-beta - 2 alpha beta x_j sum_{|k - j| <= r} g_k y_k / n_k.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/vmath.h"
#include "ops/nn/checks.h"

#define SPANS 64

struct lrn_work {
    const struct lrn *lrn;
    bool backward;
    int64_t channels;
    const void *x, *y, *g;
    void *out, *rows; /* rows: two scratch rows per span */
    int64_t n;        /* positions, split into spans */
};

static inline float power_float(float base, float exponent)
{
    return vmath_exp(exponent * vmath_log(base));
}

static inline double power_double(double base, double exponent)
{
    return pow(base, exponent);
}

/* sums[c] = sum of v over the channels within the radius of c. */
#define LRN_LOOPS(type)                                                                            \
    static void neighbours_##type(const type *v, int64_t n, int64_t radius, type *sums)            \
    {                                                                                              \
        memset(sums, 0, (size_t)n * sizeof *sums);                                                 \
        for (int64_t d = -radius; d <= radius; d++)                                                \
            for (int64_t c = d < 0 ? -d : 0, end = d > 0 ? n - d : n; c < end; c++)                \
                sums[c] += v[c + d];                                                               \
    }                                                                                              \
    static void norms_##type(const struct lrn_work *w, const type *x, type *part, type *norms)     \
    {                                                                                              \
        type alpha = (type)w->lrn->alpha, bias = (type)w->lrn->bias;                               \
        for (int64_t c = 0; c < w->channels; c++)                                                  \
            part[c] = x[c] * x[c];                                                                 \
        neighbours_##type(part, w->channels, w->lrn->radius, norms);                               \
        for (int64_t c = 0; c < w->channels; c++)                                                  \
            norms[c] = bias + alpha * norms[c];                                                    \
    }                                                                                              \
    static void forward_##type(const struct lrn_work *w, int64_t at, type *part, type *norms)      \
    {                                                                                              \
        const type *x = (const type *)w->x + at * w->channels;                                     \
        type *out = (type *)w->out + at * w->channels, beta = (type)w->lrn->beta;                  \
        norms_##type(w, x, part, norms);                                                           \
        for (int64_t c = 0; c < w->channels; c++)                                                  \
            out[c] = x[c] * power_##type(norms[c], -beta);                                         \
    }                                                                                              \
    static void backward_##type(const struct lrn_work *w, int64_t at, type *part, type *norms)     \
    {                                                                                              \
        const type *x = (const type *)w->x + at * w->channels;                                     \
        const type *y = (const type *)w->y + at * w->channels;                                     \
        const type *g = (const type *)w->g + at * w->channels;                                     \
        type *out = (type *)w->out + at * w->channels, beta = (type)w->lrn->beta;                  \
        type factor = 2 * (type)w->lrn->alpha * beta;                                              \
        norms_##type(w, x, part, norms);                                                           \
        for (int64_t c = 0; c < w->channels; c++) {                                                \
            part[c] = g[c] * y[c] / norms[c];                                                      \
            out[c] = g[c] * power_##type(norms[c], -beta);                                         \
        }                                                                                          \
        neighbours_##type(part, w->channels, w->lrn->radius, norms);                               \
        for (int64_t c = 0; c < w->channels; c++)                                                  \
            out[c] -= factor * x[c] * norms[c];                                                    \
    }                                                                                              \
    static int run_##type(void *context, int64_t begin, int64_t end)                               \
    {                                                                                              \
        const struct lrn_work *w = context;                                                        \
        type *part = (type *)w->rows + begin * 2 * w->channels;                                    \
        for (int64_t i = w->n * begin / SPANS; i < w->n * end / SPANS; i++)                        \
            if (w->backward)                                                                       \
                backward_##type(w, i, part, part + w->channels);                                   \
            else                                                                                   \
                forward_##type(w, i, part, part + w->channels);                                    \
        return 0;                                                                                  \
    }

LRN_LOOPS(float)
LRN_LOOPS(double)

static int prepare(struct kernel_setup *setup)
{
    struct lrn *state = setup->state = mem_alloc(sizeof *state);
    lrn_init(state, setup->node);
    return 0;
}

static int run(struct kernel_call *call)
{
    if (lrn_check(call))
        return call->err->code;
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &in->shape);
    if (!out)
        return call->err->code;
    bool backward = call->n_in == 3;
    struct lrn_work w = {.lrn = call->state, .channels = in->shape.dims[3], .out = out->data};
    int64_t positions = w.channels ? tensor_count(in) / w.channels : 0;
    w.backward = backward;
    w.x = backward ? call->in[1]->data : in->data;
    w.y = backward ? call->in[2]->data : NULL;
    w.g = backward ? in->data : NULL;
    struct lrn lrn = *w.lrn;
    if (lrn.radius > w.channels)
        lrn.radius = w.channels;
    w.lrn = &lrn;
    w.rows = kernel_temporary(call, (size_t)(SPANS * 2) * (size_t)(w.channels + 1) * 8);
    if (!w.rows)
        return call->err->code;
    w.n = positions;
    parallel_for(call->threads, SPANS, positions * w.channels < PARALLEL_GRAIN_COMPUTE ? SPANS : 1,
                 in->type == FLOAT32 ? run_float : run_double, &w);
    return KERNEL_DONE;
}

const struct kernel_code kernel_lrn = {.prepare = prepare, .run = run};
