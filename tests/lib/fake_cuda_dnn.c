/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN in the tests: loops over images and filters in the layouts of its manual, which refuse what
 * it refuses: no stream, output sizes that are not those of its formula, less workspace than an
 * algorithm needs. Sums are in float64. Algorithm 0 is fast and needs no workspace, but adds in
 * another order each time; 1 is the best by shapes, 2 by measurement: it is called Winograd's and
 * is not used where results must be exact. TF_TEST_DEVICE_LACKS=dnn: there is no such library.
 */
#include <string.h>

#include "base/memory.h"
#include "lib/fake_cuda_dnn.h"
#include "ops/device/kernel_cuda.h"

enum { FAST, BY_SHAPES, BY_TIME, N_ALGORITHMS };

static int load(struct error *err)
{
    return fake_load("dnn", "convolutions", err);
}

static int version(void)
{
    return 90000;
}

static int handle_new(void **handle)
{
    *handle = mem_alloc(sizeof(struct fake_dnn));
    return 0;
}

static void handle_free(void *handle)
{
    mem_free(handle);
}

static int use(void *handle, struct CUstream_st *stream, void *no_workspace)
{
    (void)no_workspace;
    ((struct fake_dnn *)handle)->stream = (struct cuda_stream *)stream;
    return stream ? 0 : DNN_BAD_PARAM;
}

/* ---- what it takes ---- */

bool fake_dnn_is_axis(const struct cuda_dnn_axis *a)
{
    int span = (a->size - 1) * a->dilation + 1;
    return a->in > 0 && a->size > 0 && a->stride > 0 && a->dilation > 0 && a->pad >= 0 &&
           a->in + 2 * a->pad >= span && a->out == (a->in + 2 * a->pad - span) / a->stride + 1;
}

static bool is_valid(const struct cuda_dnn_conv *c)
{
    return c->type <= CUDA_BFLOAT16 && c->batch > 0 && c->in_channels > 0 && c->out_channels > 0 &&
           c->groups > 0 && c->in_channels % c->groups == 0 && c->out_channels % c->groups == 0 &&
           fake_dnn_is_axis(&c->y) && fake_dnn_is_axis(&c->x);
}

static size_t workspace_of(const struct cuda_dnn_conv *c, int algorithm)
{
    return algorithm == FAST ? 0 : (size_t)algorithm * 4 * (size_t)c->y.out * (size_t)c->x.out;
}

static int find(void *handle, const struct cuda_dnn_conv *c, const struct cuda_dnn_data *data,
                size_t limit, struct cuda_dnn_algorithm *found)
{
    if (!((const struct fake_dnn *)handle)->stream)
        return DNN_NO_STREAM;
    if (!is_valid(c) || (data && (!data->image || !data->filter || !data->output ||
                                  !data->workspace || data->workspace_bytes < limit)))
        return DNN_BAD_PARAM;
    int best = c->fast ? FAST : data && !c->exact ? BY_TIME : BY_SHAPES;
    *found = (struct cuda_dnn_algorithm){best, workspace_of(c, best)};
    if (found->workspace_bytes > limit)
        found->number = -1;
    return 0;
}

/* ---- the loops ---- */

struct fake_steps fake_dnn_steps(bool nchw, int64_t channels, int64_t height, int64_t width)
{
    return nchw ? (struct fake_steps){channels * height * width, height * width, width, 1}
                : (struct fake_steps){height * width * channels, 1, width * channels, channels};
}

struct tensor fake_dnn_array(enum cuda_type type, const void *data)
{
    struct shape shape = shape_vector(INT32_MAX);
    return tensor_borrow(cuda_dtype(type), &shape, (void *)(uintptr_t)data);
}

struct loops {
    const struct cuda_dnn_conv *c;
    struct tensor image, filter, output;
    struct fake_steps of_image, of_filter, of_output;
    bool backwards; /* through what is added */
};

/* To the 11 bits of TF32, where that is asked for; to the nearest, ties away from zero. */
static double element(const struct loops *l, const struct tensor *t, int64_t i)
{
    double x = tensor_get_float64(t, i);
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&value, &bits, sizeof bits);
    return l->c->tf32 ? (double)value : x;
}

/* A term of group g: image b at (y, x), its channel c; its filter k at (ky, kx); output at (oy,
 * ox). */
struct term {
    int64_t b, g, c, k, y, x, ky, kx, oy, ox;
};

static double product(const struct loops *l, const struct term *t)
{
    const struct fake_steps *i = &l->of_image, *f = &l->of_filter, *o = &l->of_output;
    int64_t c = t->g * (l->c->in_channels / l->c->groups) + t->c;
    int64_t k = t->g * (l->c->out_channels / l->c->groups) + t->k;
    int64_t image = t->b * i->outer + c * i->channel + t->y * i->y + t->x * i->x;
    int64_t filter = k * f->outer + t->c * f->channel + t->ky * f->y + t->kx * f->x;
    int64_t output = t->b * o->outer + k * o->channel + t->oy * o->y + t->ox * o->x;
    switch (l->c->direction) {
    case CUDA_DNN_FORWARD:
        return element(l, &l->image, image) * element(l, &l->filter, filter);
    case CUDA_DNN_IMAGE:
        return element(l, &l->filter, filter) * element(l, &l->output, output);
    default:
        return element(l, &l->image, image) * element(l, &l->output, output);
    }
}

/* Finds the cell of the image under a window's cell; false: it lies outside. */
static bool cell_of(const struct cuda_dnn_axis *a, int64_t out, int64_t k, int64_t *in)
{
    *in = out * a->stride + k * a->dilation - a->pad;
    return *in >= 0 && *in < a->in;
}

/* Finds the output to which a window's cell over a cell of the image adds; false: there is none. */
static bool window_of(const struct cuda_dnn_axis *a, int64_t in, int64_t k, int64_t *out)
{
    int64_t start = in + a->pad - k * a->dilation;
    *out = start / a->stride;
    return start >= 0 && start % a->stride == 0 && *out < a->out;
}

/* The terms of an element of a result: how many, and which number `at` is; false: there is none,
 * since it would be a zero beside the image. */
struct terms {
    int64_t n;
    bool (*find)(const struct cuda_dnn_conv *c, int64_t at, struct term *t);
};

static double sum_of(const struct loops *l, const struct terms *terms, struct term t)
{
    double sum = 0;
    for (int64_t i = 0; i < terms->n; i++)
        if (terms->find(l->c, l->backwards ? terms->n - 1 - i : i, &t))
            sum += product(l, &t);
    return sum;
}

static bool term_of_output(const struct cuda_dnn_conv *c, int64_t at, struct term *t)
{
    t->kx = at % c->x.size, t->ky = at / c->x.size % c->y.size;
    t->c = at / c->x.size / c->y.size;
    return cell_of(&c->y, t->oy, t->ky, &t->y) && cell_of(&c->x, t->ox, t->kx, &t->x);
}

static bool term_of_image(const struct cuda_dnn_conv *c, int64_t at, struct term *t)
{
    t->kx = at % c->x.size, t->ky = at / c->x.size % c->y.size;
    t->k = at / c->x.size / c->y.size;
    return window_of(&c->y, t->y, t->ky, &t->oy) && window_of(&c->x, t->x, t->kx, &t->ox);
}

static bool term_of_filter(const struct cuda_dnn_conv *c, int64_t at, struct term *t)
{
    t->ox = at % c->x.out, t->oy = at / c->x.out % c->y.out;
    t->b = at / c->x.out / c->y.out;
    return cell_of(&c->y, t->oy, t->ky, &t->y) && cell_of(&c->x, t->ox, t->kx, &t->x);
}

static void set_outputs(struct loops *l)
{
    const struct cuda_dnn_conv *c = l->c;
    const struct fake_steps *s = &l->of_output;
    const int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups;
    const struct terms terms = {in * c->y.size * c->x.size, term_of_output};
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t k = 0; k < c->out_channels; k++)
            for (int64_t y = 0; y < c->y.out; y++)
                for (int64_t x = 0; x < c->x.out; x++)
                    tensor_set_float64(
                        &l->output, b * s->outer + k * s->channel + y * s->y + x * s->x,
                        sum_of(
                            l, &terms,
                            (struct term){.b = b, .g = k / out, .k = k % out, .oy = y, .ox = x}));
}

static void set_image(struct loops *l)
{
    const struct cuda_dnn_conv *c = l->c;
    const struct fake_steps *s = &l->of_image;
    const int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups;
    const struct terms terms = {out * c->y.size * c->x.size, term_of_image};
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t k = 0; k < c->in_channels; k++)
            for (int64_t y = 0; y < c->y.in; y++)
                for (int64_t x = 0; x < c->x.in; x++)
                    tensor_set_float64(
                        &l->image, b * s->outer + k * s->channel + y * s->y + x * s->x,
                        sum_of(l, &terms,
                               (struct term){.b = b, .g = k / in, .c = k % in, .y = y, .x = x}));
}

static void set_filter(struct loops *l)
{
    const struct cuda_dnn_conv *c = l->c;
    const struct fake_steps *s = &l->of_filter;
    const int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups;
    const struct terms terms = {(int64_t)c->batch * c->y.out * c->x.out, term_of_filter};
    for (int64_t k = 0; k < c->out_channels; k++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t y = 0; y < c->y.size; y++)
                for (int64_t x = 0; x < c->x.size; x++)
                    tensor_set_float64(
                        &l->filter, k * s->outer + i * s->channel + y * s->y + x * s->x,
                        sum_of(
                            l, &terms,
                            (struct term){.g = k / out, .k = k % out, .c = i, .ky = y, .kx = x}));
}

static int conv(void *handle, const struct cuda_dnn_conv *c, const struct cuda_dnn_data *data,
                int algorithm)
{
    struct fake_dnn *dnn = handle;
    if (!dnn->stream)
        return DNN_NO_STREAM;
    if (!is_valid(c) || !data->image || !data->filter || !data->output)
        return DNN_BAD_PARAM;
    size_t bytes = workspace_of(c, algorithm);
    if (algorithm < 0 || algorithm >= N_ALGORITHMS)
        return DNN_NOT_SUPPORTED;
    if (data->workspace_bytes < bytes || (bytes && !data->workspace))
        return DNN_BAD_PARAM;
    if (bytes)
        memset(data->workspace, 0xff, bytes);
    struct loops l = {.c = c,
                      .image = fake_dnn_array(c->type, data->image),
                      .filter = fake_dnn_array(c->type, data->filter),
                      .output = fake_dnn_array(c->type, data->output),
                      .of_image = fake_dnn_steps(c->nchw, c->in_channels, c->y.in, c->x.in),
                      .of_filter =
                          fake_dnn_steps(c->nchw, c->in_channels / c->groups, c->y.size, c->x.size),
                      .of_output = fake_dnn_steps(c->nchw, c->out_channels, c->y.out, c->x.out),
                      .backwards = algorithm == BY_TIME || (algorithm == FAST && dnn->runs++ % 2)};
    if (c->direction == CUDA_DNN_FORWARD)
        set_outputs(&l);
    else if (c->direction == CUDA_DNN_IMAGE)
        set_image(&l);
    else
        set_filter(&l);
    return 0;
}

static const char *spreads(enum cuda_dnn_direction direction, int algorithm)
{
    (void)direction;
    return algorithm == BY_TIME ? "winograd" : NULL;
}

static const char *error_text(int status)
{
    return status == DNN_NO_STREAM   ? "no stream is set"
           : status == DNN_BAD_PARAM ? "an argument is invalid"
                                     : "it has no such algorithm";
}

const struct cuda_dnn fake_cuda_dnn = {
    .calls = {"cuDNN", load, error_text, handle_new, handle_free, use, 0},
    .version = version,
    .find = find,
    .conv = conv,
    .spreads = spreads,
    .ops = &fake_cuda_dnn_ops};
