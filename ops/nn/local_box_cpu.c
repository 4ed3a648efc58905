/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/local_cpu.h"

#include <string.h>

#include "ops/array/strided.h"

/* Up to this many multiplications a loop is faster than the setup of a library call. */
#define LOOP_WORK 512

#define LOOPS(type)                                                                                \
    static void add_##type(int64_t n, const type *from, type *to)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] += from[i];                                                                      \
    }                                                                                              \
    static void loop_##type(const struct gemm *g, const type *a, const type *b, type *c)           \
    {                                                                                              \
        for (int64_t i = 0; i < g->m; i++, c += g->n) {                                            \
            if (!g->accumulate)                                                                    \
                memset(c, 0, (size_t)g->n * sizeof *c);                                            \
            for (int64_t p = 0; p < g->k; p++) {                                                   \
                type x = g->transpose_a ? a[p * g->m + i] : a[i * g->k + p];                       \
                if (g->transpose_b)                                                                \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] += x * b[j * g->k + p];                                               \
                else                                                                               \
                    for (int64_t j = 0; j < g->n; j++)                                             \
                        c[j] += x * b[p * g->n + j];                                               \
            }                                                                                      \
        }                                                                                          \
    }

LOOPS(float)
LOOPS(double)

static void move(const struct local_box *box, const void *from, void *to, bool take)
{
    int64_t size = (int64_t)dtype_bytes(box->type);
    const int64_t dims[] = {box->n, box->width, box->channels};
    const int64_t there[] = {box->image, box->column, box->channel};
    const int64_t here[] = {box->line, box->channels, 1};
    struct strided s = {.item_bytes = (size_t)size};
    for (int i = 0; i < 3; i++)
        strided_add(&s, dims[i], (take ? here : there)[i] * size, (take ? there : here)[i] * size);
    strided_copy(&s, to, from, 1);
}

void local_take(const struct local_box *box, const void *tensor, void *matrix)
{
    move(box, tensor, matrix, true);
}

void local_leave(const struct local_box *box, const void *matrix, void *tensor)
{
    move(box, matrix, tensor, false);
}

void local_add(const struct local_box *box, int64_t step, const void *rows, void *matrix)
{
    int64_t run = box->width * box->channels;
    for (int64_t i = 0; i < box->n; i++)
        if (box->type == FLOAT32)
            add_float(run, (const float *)rows + i * step, (float *)matrix + i * box->line);
        else
            add_double(run, (const double *)rows + i * step, (double *)matrix + i * box->line);
}

int local_product(const struct gemm *g, const void *a, const void *b, void *c, struct error *err)
{
    if ((double)g->m * (double)g->n * (double)g->k > LOOP_WORK)
        return gemm_run(g, a, b, c, 1, err);
    if (g->type == FLOAT32)
        loop_float(g, a, b, c);
    else
        loop_double(g, a, b, c);
    return 0;
}
