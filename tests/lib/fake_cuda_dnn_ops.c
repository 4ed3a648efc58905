/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's ops other than convolutions in the tests: loops with the formulas of its manual, in
 * float64, from the last cell to the first. They refuse what it refuses: no stream, missing memory,
 * outputs that are inputs, windows that are not those of its formula or lie outside the image, LRN
 * beyond its limits. Pooling and softmax have no bfloat16, which shows only when they are run.
 * TF_TEST_DEVICE_LACKS=dnn-ops: the library has only convolutions. TF_TEST_DEVICE_SLOW=dnn-ops:
 * each takes a microsecond of the device's clock, while measured kernels else take none; =numbers:
 * each whose first element is not 0.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/fake_cuda_dnn.h"

static int load(struct error *err)
{
    if (fake_lacks("dnn-ops"))
        return error_set(err, ERR_UNAVAILABLE, "the fake library has convolutions alone");
    return 0;
}

/* ---- what it takes ---- */

static bool is_pool(const struct cuda_dnn_op *op)
{
    return op->kind <= CUDA_DNN_AVG_POOL_GRAD;
}

static bool is_norm(const struct cuda_dnn_op *op)
{
    return op->kind >= CUDA_DNN_NORM_TRAINING;
}

static bool is_axis(const struct cuda_dnn_op *op, const struct cuda_dnn_axis *a)
{
    bool has_window = a->size > 1 || a->stride > 1 || a->pad;
    return fake_dnn_is_axis(a) && a->dilation == 1 && a->pad < a->size &&
           (is_pool(op) || !has_window);
}

static bool is_valid(const struct cuda_dnn_op *op)
{
    if (op->batch <= 0 || op->channels <= 0 || !is_axis(op, &op->y) || !is_axis(op, &op->x))
        return false;
    if (op->kind == CUDA_DNN_LRN)
        return op->neighbours >= 1 && op->neighbours <= 16 && op->bias >= 1e-5 && op->beta >= 0.01;
    return !is_norm(op) || op->epsilon >= 0;
}

static int describe(const struct cuda_dnn_op *op, void **description)
{
    *description = NULL;
    if (!is_valid(op))
        return DNN_BAD_PARAM;
    if (op->type > CUDA_BFLOAT16 || (is_norm(op) && op->type > CUDA_FLOAT64))
        return DNN_NOT_SUPPORTED;
    struct cuda_dnn_op *own = *description = mem_alloc(sizeof *own);
    *own = *op;
    return 0;
}

static void undescribe(void *description)
{
    mem_free(description);
}

static bool has_operands(const struct cuda_dnn_op *op, const struct cuda_dnn_operands *o)
{
    bool is_mean_grad = op->kind == CUDA_DNN_AVG_POOL_GRAD;
    bool is_grad = is_mean_grad || op->kind == CUDA_DNN_NORM_GRAD;
    if (!o->out || o->out == o->x || o->out == o->g || (!is_mean_grad && !o->x) ||
        (is_grad && !o->g))
        return false;
    if (!is_norm(op))
        return true;
    bool needs_statistics = op->kind != CUDA_DNN_NORM_TRAINING;
    bool has_statistics = o->mean && o->variance, has_vectors = o->vectors[0] && o->vectors[1];
    return o->scale && (o->offset || is_grad) && (has_statistics || !needs_statistics) &&
           (has_vectors || op->kind == CUDA_DNN_NORM_INFERENCE);
}

/* ---- images ---- */

struct op_loops {
    const struct cuda_dnn_op *op;
    struct tensor x, g, out;
    struct fake_steps in_steps, out_steps; /* of images as the op's, and as pooling makes them */
};

struct image_cell {
    int64_t b, c, y, x;
};

static int64_t at(const struct fake_steps *s, struct image_cell i)
{
    return i.b * s->outer + i.c * s->channel + i.y * s->y + i.x * s->x;
}

static double get(const struct tensor *t, const struct fake_steps *s, struct image_cell i)
{
    return tensor_get_float64(t, at(s, i));
}

/* Of an image that is so high and wide; false: it was the last one. */
static bool next_cell(const struct cuda_dnn_op *op, int64_t height, int64_t width,
                      struct image_cell *i)
{
    if (++i->x < width)
        return true;
    i->x = 0;
    if (++i->y < height)
        return true;
    i->y = 0;
    if (++i->c < op->channels)
        return true;
    i->c = 0;
    return ++i->b < op->batch;
}

/* ---- pooling ---- */

/* A window's cells inside the image, from the last to the first. */
struct cell_range {
    int64_t last, first;
};

static struct cell_range range_of(const struct cuda_dnn_axis *a, int64_t out)
{
    int64_t first = out * a->stride - a->pad, last = first + a->size - 1;
    return (struct cell_range){last < a->in ? last : a->in - 1, first > 0 ? first : 0};
}

static double pooled(const struct op_loops *l, struct image_cell o)
{
    struct cell_range y = range_of(&l->op->y, o.y), x = range_of(&l->op->x, o.x);
    double sum = 0, n = 0;
    for (int64_t i = y.last; i >= y.first; i--)
        for (int64_t k = x.last; k >= x.first; k--, n++)
            sum += get(&l->x, &l->in_steps, (struct image_cell){o.b, o.c, i, k});
    return sum / n;
}

static void pool(struct op_loops *l)
{
    struct image_cell o = {0};
    do
        tensor_set_float64(&l->out, at(&l->out_steps, o), pooled(l, o));
    while (next_cell(l->op, l->op->y.out, l->op->x.out, &o));
}

static void pool_grad(struct op_loops *l)
{
    const struct cuda_dnn_op *op = l->op;
    int64_t n = (int64_t)op->batch * op->channels * op->y.in * op->x.in;
    double *sums = mem_array((size_t)n, sizeof *sums);
    struct image_cell o = {0};
    do {
        struct cell_range y = range_of(&op->y, o.y), x = range_of(&op->x, o.x);
        double cells = (double)((y.last - y.first + 1) * (x.last - x.first + 1));
        for (int64_t i = y.last; i >= y.first; i--)
            for (int64_t k = x.last; k >= x.first; k--)
                sums[at(&l->in_steps, (struct image_cell){o.b, o.c, i, k})] +=
                    get(&l->g, &l->out_steps, o) / cells;
    } while (next_cell(op, op->y.out, op->x.out, &o));
    for (int64_t i = 0; i < n; i++)
        tensor_set_float64(&l->out, i, sums[i]);
    mem_free(sums);
}

/* ---- LRN ---- */

/* Parameters are of the elements' type. */
static double typed(const struct op_loops *l, double parameter)
{
    return l->op->type == CUDA_FLOAT64 ? parameter : (double)(float)parameter;
}

static struct cell_range neighbours(const struct op_loops *l, int64_t c)
{
    int behind = (l->op->neighbours - 1) / 2, ahead = l->op->neighbours - behind - 1;
    int64_t last = c + ahead < l->op->channels ? c + ahead : l->op->channels - 1;
    return (struct cell_range){last, c > behind ? c - behind : 0};
}

static double norm_at(const struct op_loops *l, struct image_cell i)
{
    struct cell_range all = neighbours(l, i.c);
    double sum = 0;
    for (int64_t c = all.last; c >= all.first; c--) {
        double x = get(&l->x, &l->in_steps, (struct image_cell){i.b, c, i.y, i.x});
        sum += x * x;
    }
    return typed(l, l->op->bias) + typed(l, l->op->alpha) / l->op->neighbours * sum;
}

static void lrn(struct op_loops *l)
{
    struct image_cell i = {0};
    do {
        double value = get(&l->x, &l->in_steps, i) * pow(norm_at(l, i), -typed(l, l->op->beta));
        tensor_set_float64(&l->out, at(&l->in_steps, i), value);
    } while (next_cell(l->op, l->op->y.in, l->op->x.in, &i));
}

/* ---- softmax ---- */

static void softmax(struct op_loops *l)
{
    int64_t n = (int64_t)l->op->channels * l->op->y.in * l->op->x.in;
    for (int64_t b = 0, first = 0; b < l->op->batch; b++, first += n) {
        double largest = -INFINITY, sum = 0;
        for (int64_t i = first; i < first + n; i++)
            largest = fmax(largest, tensor_get_float64(&l->x, i));
        for (int64_t i = first + n - 1; i >= first; i--)
            sum += exp(tensor_get_float64(&l->x, i) - largest);
        for (int64_t i = first; i < first + n; i++) {
            double off = tensor_get_float64(&l->x, i) - largest;
            tensor_set_float64(&l->out, i,
                               l->op->kind == CUDA_DNN_SOFTMAX ? exp(off) / sum : off - log(sum));
        }
    }
}

/* ---- batch normalization ---- */

struct norm_vectors {
    struct tensor scale, offset, mean, variance, results[2];
};

/* Of the channel's positions: sum of x, or of (x - centre)^2. */
static double sum_of(const struct op_loops *l, int64_t c, bool of_squares, double centre)
{
    double sum = 0;
    for (int64_t b = 0; b < l->op->batch; b++)
        for (int64_t y = 0; y < l->op->y.in; y++)
            for (int64_t x = 0; x < l->op->x.in; x++) {
                double value = get(&l->x, &l->in_steps, (struct image_cell){b, c, y, x}) - centre;
                sum += of_squares ? value * value : value;
            }
    return sum;
}

/* Sets running statistics with a factor of 1: the old value has weight 0. */
static void set_running(struct tensor *t, int64_t c, double value)
{
    tensor_set_float64(t, c, tensor_get_float64(t, c) * 0 + value);
}

static void norm_channel(struct op_loops *l, struct norm_vectors *v, int64_t c)
{
    double n = (double)l->op->batch * l->op->y.in * l->op->x.in, mean, variance;
    if (l->op->kind == CUDA_DNN_NORM_TRAINING) {
        mean = sum_of(l, c, false, 0) / n;
        variance = sum_of(l, c, true, mean) / n;
        set_running(&v->results[0], c, mean);
        set_running(&v->results[1], c, variance * n / (n - 1));
    } else {
        mean = tensor_get_float64(&v->mean, c);
        variance = tensor_get_float64(&v->variance, c);
    }
    double factor = tensor_get_float64(&v->scale, c) / sqrt(variance + l->op->epsilon);
    double offset = tensor_get_float64(&v->offset, c);
    for (int64_t b = 0; b < l->op->batch; b++)
        for (int64_t y = 0; y < l->op->y.in; y++)
            for (int64_t x = 0; x < l->op->x.in; x++) {
                struct image_cell i = {b, c, y, x};
                tensor_set_float64(&l->out, at(&l->in_steps, i),
                                   (get(&l->x, &l->in_steps, i) - mean) * factor + offset);
            }
}

/* Uses the saved statistics: the mean, and 1 / sqrt(variance + epsilon). */
static void norm_grad_channel(struct op_loops *l, struct norm_vectors *v, int64_t c)
{
    double n = (double)l->op->batch * l->op->y.in * l->op->x.in, sum = 0, product = 0;
    double mean = tensor_get_float64(&v->mean, c), r = tensor_get_float64(&v->variance, c);
    struct image_cell i = {.c = c};
    for (i.b = 0; i.b < l->op->batch; i.b++)
        for (i.y = 0; i.y < l->op->y.in; i.y++)
            for (i.x = 0; i.x < l->op->x.in; i.x++) {
                double g = get(&l->g, &l->in_steps, i);
                sum += g;
                product += g * (get(&l->x, &l->in_steps, i) - mean) * r;
            }
    tensor_set_float64(&v->results[0], c, product);
    tensor_set_float64(&v->results[1], c, sum);
    double scale = tensor_get_float64(&v->scale, c);
    for (i.b = 0; i.b < l->op->batch; i.b++)
        for (i.y = 0; i.y < l->op->y.in; i.y++)
            for (i.x = 0; i.x < l->op->x.in; i.x++) {
                double off = (get(&l->x, &l->in_steps, i) - mean) * r;
                double inner = get(&l->g, &l->in_steps, i) - sum / n - off * product / n;
                tensor_set_float64(&l->out, at(&l->in_steps, i), scale * r * inner);
            }
}

static void norm(struct op_loops *l, const struct cuda_dnn_operands *o)
{
    enum cuda_type type = l->op->type;
    struct norm_vectors v = {
        fake_dnn_array(type, o->scale),
        fake_dnn_array(type, o->offset),
        fake_dnn_array(type, o->mean),
        fake_dnn_array(type, o->variance),
        {fake_dnn_array(type, o->vectors[0]), fake_dnn_array(type, o->vectors[1])}};
    for (int64_t c = 0; c < l->op->channels; c++)
        if (l->op->kind == CUDA_DNN_NORM_GRAD)
            norm_grad_channel(l, &v, c);
        else
            norm_channel(l, &v, c);
}

/* ---- run ---- */

static void take_time(struct cuda_stream *stream, const void *first)
{
    const char *slow = getenv("TF_TEST_DEVICE_SLOW");
    bool is_number = *(const uint32_t *)first != 0;
    if (!slow || (strcmp(slow, "dnn-ops") != 0 && (strcmp(slow, "numbers") != 0 || !is_number)))
        return;
    fake_take_time(stream);
}

static int run(void *handle, void *description, const struct cuda_dnn_operands *o)
{
    const struct cuda_dnn_op *op = description;
    struct cuda_stream *stream = ((const struct fake_dnn *)handle)->stream;
    if (!stream)
        return DNN_NO_STREAM;
    if (!has_operands(op, o))
        return DNN_BAD_PARAM;
    if (op->type == CUDA_BFLOAT16)
        return DNN_NOT_SUPPORTED;
    take_time(stream, o->x ? o->x : o->g);
    struct op_loops l = {.op = op,
                         .x = fake_dnn_array(op->type, o->x),
                         .g = fake_dnn_array(op->type, o->g),
                         .out = fake_dnn_array(op->type, o->out),
                         .in_steps = fake_dnn_steps(op->nchw, op->channels, op->y.in, op->x.in),
                         .out_steps = fake_dnn_steps(op->nchw, op->channels, op->y.out, op->x.out)};
    if (is_norm(op))
        norm(&l, o);
    else if (op->kind == CUDA_DNN_LRN)
        lrn(&l);
    else if (!is_pool(op))
        softmax(&l);
    else if (op->kind == CUDA_DNN_AVG_POOL_GRAD)
        pool_grad(&l);
    else
        pool(&l);
    return 0;
}

const struct cuda_dnn_ops fake_cuda_dnn_ops = {
    .calls = {.load = load}, .describe = describe, .free = undescribe, .run = run};
