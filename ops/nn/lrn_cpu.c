/* SPDX-License-Identifier: Apache-2.0
 *
 * With n_k = bias + alpha sum_{|j - k| <= r} x_j^2 and y_k = x_k n_k^-beta:
 * dx_j = g_j n_j^-beta - 2 alpha beta x_j sum_{|k - j| <= r} g_k y_k / n_k.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/vmath.h"
#include "ops/nn/checks.h"

#define SPANS 64

struct lrn_work {
    const struct lrn *lrn;
    int64_t channels;
    const void *x, *y, *g; /* y, g: of the gradient; else NULL */
    void *out, *rows;      /* rows: two scratch rows per span */
    int64_t n;             /* positions, split into spans */
};

/* powers = base^exponent. The logarithm has a loop of its own: in one with the exponential gcc
 * makes branches of their special cases, and no vectors. */
static void powers_float(const float *restrict base, int64_t n, float exponent,
                         float *restrict powers)
{
    for (int64_t c = 0; c < n; c++)
        powers[c] = vmath_log(base[c]);
    for (int64_t c = 0; c < n; c++)
        powers[c] = vmath_exp(exponent * powers[c]);
}

static void powers_double(const double *base, int64_t n, double exponent, double *powers)
{
    for (int64_t c = 0; c < n; c++)
        powers[c] = pow(base[c], exponent);
}

/* sums[c] = sum of v over the channels within the radius of c. */
#define LRN_LOOPS(type)                                                                            \
    static void neighbours_##type(const type *restrict v, int64_t n, int64_t radius,               \
                                  type *restrict sums)                                             \
    {                                                                                              \
        memset(sums, 0, (size_t)n * sizeof *sums);                                                 \
        for (int64_t d = -radius; d <= radius; d++)                                                \
            for (int64_t c = d < 0 ? -d : 0, end = d > 0 ? n - d : n; c < end; c++)                \
                sums[c] += v[c + d];                                                               \
    }                                                                                              \
    static void position_##type(const struct lrn_work *w, int64_t at, type *restrict part,         \
                                type *restrict norms)                                              \
    {                                                                                              \
        const int64_t n = w->channels;                                                             \
        const type *restrict x = (const type *)w->x + at * n;                                      \
        const type *restrict y = w->y ? (const type *)w->y + at * n : NULL;                        \
        const type *restrict g = w->g ? (const type *)w->g + at * n : x;                           \
        type *restrict out = (type *)w->out + at * n, beta = (type)w->lrn->beta;                   \
        type alpha = (type)w->lrn->alpha, bias = (type)w->lrn->bias, factor = 2 * alpha * beta;    \
        for (int64_t c = 0; c < n; c++)                                                            \
            part[c] = x[c] * x[c];                                                                 \
        neighbours_##type(part, n, w->lrn->radius, norms);                                         \
        for (int64_t c = 0; c < n; c++)                                                            \
            norms[c] = bias + alpha * norms[c];                                                    \
        powers_##type(norms, n, -beta, out);                                                       \
        for (int64_t c = 0; c < n; c++)                                                            \
            out[c] *= g[c];                                                                        \
        if (!w->g)                                                                                 \
            return;                                                                                \
        for (int64_t c = 0; c < n; c++)                                                            \
            part[c] = g[c] * y[c] / norms[c];                                                      \
        neighbours_##type(part, n, w->lrn->radius, norms);                                         \
        for (int64_t c = 0; c < n; c++)                                                            \
            out[c] -= factor * x[c] * norms[c];                                                    \
    }                                                                                              \
    static int run_##type(void *context, int64_t begin, int64_t end)                               \
    {                                                                                              \
        const struct lrn_work *w = context;                                                        \
        type *part = (type *)w->rows + begin * 2 * w->channels;                                    \
        for (int64_t i = w->n * begin / SPANS; i < w->n * end / SPANS; i++)                        \
            position_##type(w, i, part, part + w->channels);                                       \
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
    const struct tensor *in = call->in[0];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    bool backward = call->n_in == 3;
    struct lrn_work w = {.lrn = call->state, .channels = in->shape.dims[3], .out = out->data};
    w.n = w.channels ? tensor_count(in) / w.channels : 0;
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
    parallel_for(call->threads, SPANS, w.n * w.channels < PARALLEL_GRAIN_COMPUTE ? SPANS : 1,
                 in->type == FLOAT32 ? run_float : run_double, &w);
    return KERNEL_DONE;
}

const struct kernel_code kernel_lrn = {.prepare = prepare, .run = run};
