/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and cross entropies, row by row. Sums have a fixed number of lanes, so that the bits
 * depend neither on the instruction set nor on the team.
 */
#include <math.h>

#include "base/memory.h"
#include "exec/device/step_block.h"
#include "ops/array/strided.h"
#include "ops/device/form_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/vmath.h"

#define LANES 16
#define RUN 1024 /* elements added in their own type before a sum in double */

struct softmax_rows;

/* Computes row `i`; one function for each form. */
typedef void row_loop(const struct softmax_rows *rows, int64_t i);

/* Rows of n elements; labels as a distribution, or as class numbers. */
struct softmax_rows {
    row_loop *loop;
    int64_t n;
    const void *x, *labels;
    const int64_t *classes;
    void *y, *loss;
};

/* Adds x[0, n) in lanes of the type `sums`, then the lanes. */
#define LANE_SUM(sums)                                                                             \
    {                                                                                              \
        sums lanes[LANES] = {0}, sum = 0;                                                          \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++)                                                        \
                lanes[j] += x[i + j];                                                              \
        for (; i < n; i++)                                                                         \
            sum += x[i];                                                                           \
        for (int j = 0; j < LANES; j++)                                                            \
            sum += lanes[j];                                                                       \
        return sum;                                                                                \
    }

#define EACH(begin, end) _Pragma("omp simd") for (int64_t j = begin; j < (end); j++)

#define ROW_LOOPS(type, EXP, LOG)                                                                  \
    static type max_##type(const type *x, int64_t n)                                               \
    {                                                                                              \
        type lanes[LANES], max;                                                                    \
        for (int j = 0; j < LANES; j++)                                                            \
            lanes[j] = -INFINITY;                                                                  \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            EACH(0, LANES) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];                   \
        for (max = -INFINITY; i < n; i++)                                                          \
            max = x[i] > max ? x[i] : max;                                                         \
        for (int j = 0; j < LANES; j++)                                                            \
            max = lanes[j] > max ? lanes[j] : max;                                                 \
        return max;                                                                                \
    }                                                                                              \
    static type add_run_##type(const type *x, int64_t n)                                           \
        LANE_SUM(type) static double add_wide_##type(const type *x, int64_t n)                     \
            LANE_SUM(double) /* y = exp(x - max), and its sum; y is x or does not overlap it. */   \
        static type exponentials_##type(const type *x, type *y, type max, int64_t n)               \
    {                                                                                              \
        double sum = 0;                                                                            \
        for (int64_t i = 0; i < n; i += RUN) {                                                     \
            int64_t end = n - i < RUN ? n : i + RUN;                                               \
            EACH(i, end) y[j] = EXP(x[j] - max);                                                   \
            sum += add_run_##type(y + i, end - i);                                                 \
        }                                                                                          \
        return (type)sum;                                                                          \
    }                                                                                              \
    static void softmax_##type(const struct softmax_rows *r, int64_t i)                            \
    {                                                                                              \
        const int64_t n = r->n;                                                                    \
        const type *x = (const type *)r->x + i * n;                                                \
        type *y = (type *)r->y + i * n, sum = exponentials_##type(x, y, max_##type(x, n), n);      \
        EACH(0, n) y[j] /= sum;                                                                    \
    }                                                                                              \
    static void log_softmax_##type(const struct softmax_rows *r, int64_t i)                        \
    {                                                                                              \
        const int64_t n = r->n;                                                                    \
        const type *x = (const type *)r->x + i * n;                                                \
        type *y = (type *)r->y + i * n, max = max_##type(x, n), part[64];                          \
        double sum = 0;                                                                            \
        for (int64_t k = 0; k < n; k += 64)                                                        \
            sum += exponentials_##type(x + k, part, max, n - k < 64 ? n - k : 64);                 \
        type ln = LOG((type)sum);                                                                  \
        EACH(0, n) y[j] = x[j] - max - ln;                                                         \
    }                                                                                              \
    static void entropy_##type(const struct softmax_rows *r, int64_t i)                            \
    {                                                                                              \
        const int64_t n = r->n;                                                                    \
        const type *x = (const type *)r->x + i * n, *labels = (const type *)r->labels + i * n;     \
        type *y = (type *)r->y + i * n, max = max_##type(x, n);                                    \
        type sum = exponentials_##type(x, y, max, n), ln = LOG(sum), terms[RUN];                   \
        double loss = 0;                                                                           \
        for (int64_t k = 0; k < n; k += RUN) {                                                     \
            int64_t end = n - k < RUN ? n : k + RUN;                                               \
            EACH(k, end)                                                                           \
            {                                                                                      \
                type term = labels[j] * (ln - (x[j] - max));                                       \
                terms[j - k] = labels[j] == 0 ? 0 : term;                                          \
                y[j] = y[j] / sum - labels[j];                                                     \
            }                                                                                      \
            loss += add_wide_##type(terms, end - k);                                               \
        }                                                                                          \
        ((type *)r->loss)[i] = (type)loss;                                                         \
    }                                                                                              \
    static void sparse_entropy_##type(const struct softmax_rows *r, int64_t i)                     \
    {                                                                                              \
        const int64_t n = r->n, label = r->classes[i];                                             \
        const type *x = (const type *)r->x + i * n;                                                \
        type *y = (type *)r->y + i * n, max = max_##type(x, n), at_label = x[label] - max;         \
        type sum = exponentials_##type(x, y, max, n);                                              \
        EACH(0, n) y[j] /= sum;                                                                    \
        y[label] -= 1;                                                                             \
        ((type *)r->loss)[i] = LOG(sum) - at_label;                                                \
    }

ROW_LOOPS(float, vmath_exp, logf)
ROW_LOOPS(double, exp, log)

struct softmax_row {
    const char *op;
    row_loop *float32, *float64;
    int over; /* the output that may overwrite x; -1: none may */
};

static const struct softmax_row forms[] = {
    {"Softmax", softmax_float, softmax_double, 0},
    {"LogSoftmax", log_softmax_float, log_softmax_double, 0},
    {"SoftmaxCrossEntropyWithLogits", entropy_float, entropy_double, -1},
    {"SparseSoftmaxCrossEntropyWithLogits", sparse_entropy_float, sparse_entropy_double, 1},
};

struct softmax_state {
    row_loop *loop;
};

static int prepare(struct kernel_setup *setup)
{
    const struct softmax_row *form = FORM_FIND(setup, forms);
    if (!form)
        return setup->err->code;
    struct softmax_state *state = setup->state = mem_alloc(sizeof *state);
    state->loop = setup->in_types[0].type == FLOAT32 ? form->float32 : form->float64;
    if (form->over >= 0)
        setup->out[form->over].forward = FORWARD_REUSE;
    return 0;
}

static int softmax_part(void *context, int64_t begin, int64_t end)
{
    const struct softmax_rows *rows = context;
    for (int64_t i = begin; i < end; i++)
        rows->loop(rows, i);
    return 0;
}

static int run_rows(struct kernel_call *call, struct softmax_rows *rows, int64_t n)
{
    int64_t grain = PARALLEL_GRAIN_COMPUTE / (rows->n > 0 ? rows->n : 1) + 1;
    rows->loop = ((const struct softmax_state *)call->state)->loop;
    parallel_for(call->threads, n, grain, softmax_part, rows);
    return KERNEL_DONE;
}

static int softmax_run(struct kernel_call *call)
{
    const struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    struct softmax_rows rows = {
        .n = out->shape.dims[out->shape.rank - 1], .x = call->in[0]->data, .y = out->data};
    return run_rows(call, &rows, rows.n ? tensor_count(out) / rows.n : 0);
}

/* Makes the loss of each row, and the gradient. */
static int make_outputs(struct kernel_call *call, struct softmax_rows *rows)
{
    const struct tensor *loss = result_outputs(call, 0, 0), *gradient = call->out[1];
    if (!loss)
        return call->err->code;
    *rows = (struct softmax_rows){.n = gradient->shape.dims[1],
                                  .x = call->in[0]->data,
                                  .y = gradient->data,
                                  .loss = loss->data};
    return 0;
}

/* Returns the input as a matrix of that shape: itself, or repeated. NULL: out of memory.
 */
static const void *broadcast_to(struct kernel_call *call, int input, const struct shape *shape)
{
    const struct tensor *in = call->in[input];
    if (shape_equal(&in->shape, shape) || !shape_count(shape))
        return in->data;
    void *matrix = kernel_temporary(call, (size_t)shape_bytes(shape, in->type));
    if (!matrix)
        return NULL;
    struct strided s = strided_repeated(in, shape);
    strided_copy(&s, matrix, in->data, call->threads);
    return matrix;
}

static int cross_entropy_run(struct kernel_call *call)
{
    struct softmax_rows rows;
    if (make_outputs(call, &rows))
        return call->err->code;
    const struct shape *shape = &call->out[1]->shape;
    rows.x = broadcast_to(call, 0, shape);
    rows.labels = broadcast_to(call, 1, shape);
    if (shape_count(shape) && (!rows.x || !rows.labels))
        return call->err->code;
    return run_rows(call, &rows, shape->dims[0]);
}

/* Reads class numbers as int64, and checks them. */
static int64_t *read_classes(struct kernel_call *call, int64_t n, int64_t classes)
{
    int64_t *labels = kernel_temporary(call, (size_t)(n + 1) * sizeof *labels);
    for (int64_t i = 0; labels && i < n; i++) {
        labels[i] = tensor_get_int64(call->in[1], i);
        if (labels[i] < 0 || labels[i] >= classes) {
            kernel_fault(call, &(struct fault){.code = FAULT_LABEL,
                                               .input = 1,
                                               .at = i,
                                               .value = labels[i],
                                               .limit = classes});
            return NULL;
        }
    }
    return labels;
}

static int sparse_cross_entropy_run(struct kernel_call *call)
{
    const struct shape *shape = &call->in[0]->shape;
    struct softmax_rows rows;
    if (make_outputs(call, &rows))
        return call->err->code;
    rows.classes = read_classes(call, shape->dims[0], shape->dims[1]);
    return rows.classes ? run_rows(call, &rows, shape->dims[0]) : call->err->code;
}

const struct kernel_code kernel_softmax = {.prepare = prepare, .run = softmax_run};
const struct kernel_code kernel_cross_entropy = {.prepare = prepare, .run = cross_entropy_run};
const struct kernel_code kernel_sparse_cross_entropy = {.prepare = prepare,
                                                        .run = sparse_cross_entropy_run};
