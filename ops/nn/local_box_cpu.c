/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/local_cpu.h"

#include <string.h>

/* Up to this many multiplications a loop is faster than the setup of a library call. */
#define LOOP_WORK 512

#define BOXES(type)                                                                                \
    static void move_##type(const struct local_box *box, type *tensor, type *matrix, bool take)    \
    {                                                                                              \
        for (int64_t x = 0; x < box->width; x++)                                                   \
            for (int64_t c = 0; c < box->channels; c++) {                                          \
                type *there = tensor + x * box->column + c * box->channel;                         \
                type *here = matrix + x * box->channels + c;                                       \
                if (take)                                                                          \
                    *here = *there;                                                                \
                else                                                                               \
                    *there = *here;                                                                \
            }                                                                                      \
    }                                                                                              \
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

BOXES(float)
BOXES(double)

static void move(const struct local_box *box, char *tensor, char *matrix, bool take)
{
    int64_t size = (int64_t)dtype_bytes(box->type);
    size_t run = (size_t)(box->width * box->channels * size);
    /* In channels-last order, an image's cells are contiguous. */
    bool is_run = (box->channel == 1 || box->channels == 1) &&
                  (box->column == box->channels || box->width == 1);
    for (int64_t i = 0; i < box->n; i++) {
        char *there = tensor + i * box->image * size, *here = matrix + i * box->line * size;
        if (is_run)
            memcpy(take ? here : there, take ? there : here, run);
        else if (box->type == FLOAT32)
            move_float(box, (float *)there, (float *)here, take);
        else
            move_double(box, (double *)there, (double *)here, take);
    }
}

void local_take(const struct local_box *box, const void *tensor, void *matrix)
{
    move(box, (char *)tensor, matrix, true);
}

void local_leave(const struct local_box *box, const void *matrix, void *tensor)
{
    move(box, tensor, (char *)matrix, false);
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
