/* SPDX-License-Identifier: Apache-2.0
 *
 * The sum of squares in chunks of fixed size, so that the bits do not depend on the team.
 */
#include "exec/device/kernel.h"
#include "ops/math/parallel_cpu.h"

#define CHUNK 16384
#define LANES 16
#define RUN 512 /* elements added in their own type before a sum in double */

struct loss_work {
    const void *x;
    int64_t n;
    double *sums; /* per chunk */
    bool single;
};

#define SQUARES(type)                                                                              \
    static double squares_run_##type(const type *x, int64_t n)                                     \
    {                                                                                              \
        type lanes[LANES] = {0};                                                                   \
        double sum = 0;                                                                            \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                lanes[j] += x[i + j] * x[i + j];                                                   \
        for (; i < n; i++)                                                                         \
            sum += (double)x[i] * x[i];                                                            \
        for (int j = 0; j < LANES; j++)                                                            \
            sum += lanes[j];                                                                       \
        return sum;                                                                                \
    }                                                                                              \
    static double squares_##type(const type *x, int64_t n)                                         \
    {                                                                                              \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i += RUN)                                                       \
            sum += squares_run_##type(x + i, n - i < RUN ? n - i : RUN);                           \
        return sum;                                                                                \
    }

SQUARES(float)
SQUARES(double)

static int run_chunks(void *context, int64_t begin, int64_t end)
{
    const struct loss_work *w = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * CHUNK, n = w->n - first < CHUNK ? w->n - first : CHUNK;
        w->sums[i] = w->single ? squares_float((const float *)w->x + first, n)
                               : squares_double((const double *)w->x + first, n);
    }
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct tensor *in = call->in[0];
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    int64_t chunks = (tensor_count(in) + CHUNK - 1) / CHUNK;
    struct loss_work work = {.x = in->data, .n = tensor_count(in), .single = in->type == FLOAT32};
    work.sums = out ? kernel_temporary(call, ((size_t)chunks + 1) * sizeof *work.sums) : NULL;
    if (!work.sums)
        return call->err->code;
    parallel_for(call->threads, chunks, 4, run_chunks, &work);
    double sum = 0;
    for (int64_t i = 0; i < chunks; i++)
        sum += work.sums[i];
    tensor_set_float64(out, 0, sum / 2);
    return KERNEL_DONE;
}

const struct kernel_code kernel_l2_loss = {.run = run};
