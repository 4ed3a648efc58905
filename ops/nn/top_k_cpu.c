/* SPDX-License-Identifier: Apache-2.0
 *
 * Per row, a heap of the k best so far, with the worst on top, is then emptied from the worst on.
 */
#include <math.h>

#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/nn/checks.h"

struct top_k_rows {
    int64_t n, k;
    const void *in;
    void *values;
    int32_t *indices;
};

typedef void row_loop(const struct top_k_rows *w, int64_t row);

/* `before`: larger, NaN largest, lower index first. Parents come after their children. */
#define TOP_K(type)                                                                                \
    static bool before_##type(const type *x, int32_t i, int32_t j)                                 \
    {                                                                                              \
        bool i_nan = x[i] != x[i], j_nan = x[j] != x[j];                                           \
        if (i_nan || j_nan)                                                                        \
            return i_nan && j_nan ? i < j : i_nan;                                                 \
        return x[i] > x[j] || (x[i] == x[j] && i < j);                                             \
    }                                                                                              \
    static void sift_##type(const type *x, int32_t *heap, int64_t n, int64_t at)                   \
    {                                                                                              \
        for (int64_t child; (child = 2 * at + 1) < n; at = child) {                                \
            if (child + 1 < n && before_##type(x, heap[child], heap[child + 1]))                   \
                child++;                                                                           \
            if (!before_##type(x, heap[at], heap[child]))                                          \
                return;                                                                            \
            int32_t swap = heap[at];                                                               \
            heap[at] = heap[child];                                                                \
            heap[child] = swap;                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void row_##type(const struct top_k_rows *w, int64_t row)                                \
    {                                                                                              \
        const type *x = (const type *)w->in + row * w->n;                                          \
        type *values = (type *)w->values + row * w->k;                                             \
        int32_t *heap = w->indices + row * w->k;                                                   \
        int64_t k = w->k;                                                                          \
        for (int64_t i = 0; i < k; i++)                                                            \
            heap[i] = (int32_t)i;                                                                  \
        for (int64_t i = k / 2 - 1; i >= 0; i--)                                                   \
            sift_##type(x, heap, k, i);                                                            \
        for (int64_t i = k; i < w->n && k; i++)                                                    \
            if (before_##type(x, (int32_t)i, heap[0])) {                                           \
                heap[0] = (int32_t)i;                                                              \
                sift_##type(x, heap, k, 0);                                                        \
            }                                                                                      \
        for (int64_t i = k - 1; i > 0; i--) {                                                      \
            int32_t worst = heap[0];                                                               \
            heap[0] = heap[i];                                                                     \
            heap[i] = worst;                                                                       \
            sift_##type(x, heap, i, 0);                                                            \
        }                                                                                          \
        for (int64_t i = 0; i < k; i++)                                                            \
            values[i] = x[heap[i]];                                                                \
    }

TOP_K(float)
TOP_K(double)
TOP_K(int32_t)
TOP_K(int64_t)
TOP_K(uint64_t)

struct top_k_work {
    const struct top_k_rows *work;
    row_loop *loop;
};

static int top_k_part(void *context, int64_t begin, int64_t end)
{
    const struct top_k_work *part = context;
    for (int64_t i = begin; i < end; i++)
        part->loop(part->work, i);
    return 0;
}

static int top_k_run(struct kernel_call *call)
{
    static row_loop *const loops[] = {[FLOAT32] = row_float,
                                      [FLOAT64] = row_double,
                                      [INT32] = row_int32_t,
                                      [INT64] = row_int64_t,
                                      [UINT64] = row_uint64_t};
    const struct tensor *in = call->in[0];
    const struct tensor *values = top_k_outputs(call);
    if (!values)
        return call->err->code;
    int last = in->shape.rank - 1;
    struct top_k_rows w = {.in = in->data,
                           .n = in->shape.dims[last],
                           .k = values->shape.dims[last],
                           .values = values->data,
                           .indices = call->out[1]->data};
    struct top_k_work part = {&w, loops[in->type]};
    parallel_for(call->threads, w.k ? tensor_count(values) / w.k : 0,
                 PARALLEL_GRAIN_COMPUTE / (w.n + 1) + 1, top_k_part, &part);
    return KERNEL_DONE;
}

#define IN_TOP_K(type)                                                                             \
    static bool in_top_k_##type(const type *row, int64_t n, int64_t target, int64_t k)             \
    {                                                                                              \
        if (target < 0 || target >= n || !isfinite(row[target]))                                   \
            return false;                                                                          \
        int64_t better = 0;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            if (!isfinite(row[i]))                                                                 \
                return false;                                                                      \
            better += row[i] > row[target];                                                        \
        }                                                                                          \
        return better < k;                                                                         \
    }

IN_TOP_K(float)
IN_TOP_K(double)

static int in_top_k_run(struct kernel_call *call)
{
    const struct tensor *predictions = call->in[0], *targets = call->in[1];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    int64_t n = predictions->shape.dims[1], k = *(const int64_t *)call->state;
    for (int64_t i = 0; i < targets->shape.dims[0]; i++) {
        int64_t target = tensor_get_int64(targets, i);
        ((bool *)out->data)[i] =
            predictions->type == FLOAT64
                ? in_top_k_double((const double *)predictions->data + i * n, n, target, k)
                : in_top_k_float((const float *)predictions->data + i * n, n, target, k);
    }
    return KERNEL_DONE;
}

const struct kernel_code kernel_top_k = {.run = top_k_run};
const struct kernel_code kernel_in_top_k = {.prepare = in_top_k_prepare, .run = in_top_k_run};
