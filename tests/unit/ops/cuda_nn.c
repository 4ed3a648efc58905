/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling, local response normalization and batch normalization on emulated CUDA, compared with the
 * CPU's: random windows, shapes and formats. All have the CPU's bits except batch normalization,
 * which adds in another order.
 */
#include <stdio.h>

#include "lib/cuda_beside.h"
#include "ops/nn/launchers_cuda.h"

#define SEEDS 3

static uint64_t random_state = 37;

static int64_t below(int64_t n)
{
    return (int64_t)(unit_random(&random_state) % (uint64_t)n);
}

static double unit_value(void)
{
    return (double)(unit_random(&random_state) >> 11) * 0x1p-53;
}

/* Values whose sums are exact, if `plain`; else special ones, too. */
static struct tensor values(enum dtype type, const struct shape *shape, bool plain)
{
    struct tensor t = beside_random(type, shape, &random_state);
    for (int64_t i = 0; plain && i < tensor_count(&t); i++)
        tensor_set_float64(&t, i, unit_value() * 4 - 1);
    return t;
}

/* A launch that runs under several seeds, with `out` for its result; all runs must have the same
 * bits. */
struct launching {
    const char *what;
    int (*launch)(const void *call, struct CUstream_st *stream);
    const void *call;
    struct guarded *out;
};

static void run(const struct launching *l)
{
    void *first = malloc(l->out->bytes + 1);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cuda_emulator_seed(seed);
        memset(l->out->data, 0x5a, l->out->bytes);
        beside_launched(l->what, l->launch(l->call, NULL));
        if (!seed)
            memcpy(first, l->out->data, l->out->bytes);
        if (memcmp(first, l->out->data, l->out->bytes))
            fail_msg("%s: other bits under seed %d", l->what, (int)seed);
    }
    free(first);
}

/* ---- pooling ---- */

static const char *const pools[] = {[POOL_MAX] = "MaxPool",
                                    [POOL_MAX_GRAD] = "MaxPoolGrad",
                                    [POOL_MAX_GRAD_GRAD] = "MaxPoolGradGrad",
                                    [POOL_AVG] = "AvgPool",
                                    [POOL_AVG_GRAD] = "AvgPoolGrad"};

struct pool_case {
    enum dtype type;
    bool nchw, same;
    struct shape image, output;
    struct window_axis y, x;
    char ksize[32], strides[32];
};

static void pick_axis(struct window_axis *w, bool same)
{
    w->size = 1 + below(4);
    w->stride = 1 + below(3);
    w->in = below(8) + (same ? 0 : w->size);
    w->out = same ? (w->in + w->stride - 1) / w->stride : (w->in - w->size) / w->stride + 1;
    int64_t total = w->out ? (w->out - 1) * w->stride + w->size - w->in : 0;
    w->before = same && total > 0 ? total / 2 : 0;
}

static void print_list(char *to, bool nchw, int64_t y, int64_t x)
{
    snprintf(to, 32, nchw ? "[1,1,%d,%d]" : "[1,%d,%d,1]", (int)y, (int)x);
}

static void pick_pooling(struct pool_case *p, enum dtype type)
{
    int64_t batch = below(3), channels = below(4) ? 1 + below(5) : 8 * (1 + below(2));
    *p = (struct pool_case){.type = type, .nchw = below(2), .same = below(2)};
    pick_axis(&p->y, p->same);
    pick_axis(&p->x, p->same);
    p->image = p->nchw ? (struct shape){4, {batch, channels, p->y.in, p->x.in}}
                       : (struct shape){4, {batch, p->y.in, p->x.in, channels}};
    p->output = p->nchw ? (struct shape){4, {batch, channels, p->y.out, p->x.out}}
                        : (struct shape){4, {batch, p->y.out, p->x.out, channels}};
    print_list(p->ksize, p->nchw, p->y.size, p->x.size);
    print_list(p->strides, p->nchw, p->y.stride, p->x.stride);
}

static void run_cpu(const struct pool_case *p, enum pool_kind kind, const struct tensor *in, int n,
                    struct eager_result *result)
{
    struct error err = ERROR_INIT;
    struct eager_attr attrs[] = {{"ksize", p->ksize},
                                 {"strides", p->strides},
                                 {"padding", p->same ? "SAME" : "VALID"},
                                 {"data_format", p->nchw ? "NCHW" : "NHWC"}};
    if (beside_run(pools[kind], in, n, attrs, 4, result, &err))
        fail_msg("%s: %s", pools[kind], err.text);
}

static struct tensor sizes_of(const struct shape *shape)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    struct shape vector = shape_vector(shape->rank);
    assert_int_equal(tensor_alloc(&t, INT32, &vector, &err), 0);
    for (int i = 0; i < shape->rank; i++)
        tensor_set_int64(&t, i, shape->dims[i]);
    return t;
}

/* MaxPool lacks some types of its gradients; for these any output will do. */
static bool is_of_gradients_alone(enum dtype type)
{
    return type == UINT32 || type == UINT64;
}

/* Makes the inputs of the op; returns how many. */
static int inputs_of(const struct pool_case *p, enum pool_kind kind, struct tensor *in)
{
    bool of_image = kind == POOL_MAX_GRAD_GRAD;
    struct eager_result largest = {0};
    if (kind == POOL_AVG_GRAD) {
        in[0] = sizes_of(&p->image);
        in[1] = values(p->type, &p->output, false);
        return 2;
    }
    in[0] = values(p->type, &p->image, false);
    if (kind == POOL_MAX || kind == POOL_AVG)
        return 1;
    if (is_of_gradients_alone(p->type)) {
        in[1] = values(p->type, &p->output, false);
    } else {
        struct error err = ERROR_INIT;
        run_cpu(p, POOL_MAX, in, 1, &largest);
        in[1] = (struct tensor)TENSOR_INIT;
        assert_int_equal(tensor_copy(&in[1], &largest.outputs[0], &err), 0);
        eager_release(&largest);
    }
    in[2] = values(p->type, of_image ? &p->image : &p->output, false);
    return 3;
}

static int launch_pool(const void *call, struct CUstream_st *stream)
{
    return cuda_pool(call, stream);
}

static void check_pool(enum pool_kind kind, enum dtype type)
{
    struct pool_case p;
    struct tensor in[3];
    struct guarded placed[3];
    struct eager_result expected = {0};
    char what[160];
    pick_pooling(&p, type);
    int n = inputs_of(&p, kind, in);
    snprintf(what, sizeof what, "%s of %s %s, ksize %s, strides %s, %s", pools[kind],
             dtype_name(type), shape_text(&p.image), p.ksize, p.strides, p.same ? "SAME" : "VALID");
    run_cpu(&p, kind, in, n, &expected);
    bool at_end = below(2);
    for (int i = 0; i < n; i++)
        placed[i] = beside_place(&in[i], at_end);
    struct guarded out = guarded_new(tensor_bytes(&expected.outputs[0]), at_end);
    int64_t channels = p.image.dims[p.nchw ? 1 : 3];
    struct cuda_pool call = {.kind = kind,
                             .type = beside_type(type),
                             .planes = p.image.dims[0] * (p.nchw ? channels : 1),
                             .block = p.nchw ? 1 : channels,
                             .y = p.y,
                             .x = p.x,
                             .image = n == 2 ? NULL : placed[0].data,
                             .output = n == 3 ? placed[1].data : NULL,
                             .gradient = n > 1 ? placed[n - 1].data : NULL,
                             .result = out.data};
    run(&(struct launching){what, launch_pool, &call, &out});
    beside_compare(what, &expected.outputs[0], out.data);
    for (int i = 0; i < n; i++) {
        guarded_free(&placed[i]);
        tensor_release(&in[i]);
    }
    guarded_free(&out);
    eager_release(&expected);
}

static void test_pools(void **state)
{
    (void)state;
    for (enum pool_kind kind = POOL_MAX; kind <= POOL_AVG_GRAD; kind++)
        for (int type = 1; type < 32; type++) {
            bool has = beside_types(pools[kind], "T") & DTYPE_BIT(type) &&
                       !(kind == POOL_MAX && is_of_gradients_alone((enum dtype)type));
            for (int i = 0; has && i < 25; i++)
                check_pool(kind, (enum dtype)type);
        }
}

static void means_are_of_floats(void **state)
{
    struct cuda_pool call = {.kind = POOL_AVG, .type = CUDA_INT32};
    (void)state;
    assert_int_equal(cuda_pool(&call, NULL), CUDA_INVALID_VALUE);
}

/* ---- by places ---- */

static void run_relu_grad(const struct tensor *gradient, const struct tensor *image,
                          struct eager_result *result)
{
    struct error err = ERROR_INIT;
    struct tensor in[] = {*gradient, *image};
    if (beside_run("ReluGrad", in, 2, NULL, 0, result, &err))
        fail_msg("%s", err.text);
}

/* The value is MaxPool's, the gradient MaxPoolGrad's, and with a mask ReluGrad's of that. */
static void check_places(enum dtype type, bool masked)
{
    struct pool_case p;
    struct tensor in[3];
    struct eager_result expected = {0}, rest = {0};
    char what[160];
    pick_pooling(&p, type);
    inputs_of(&p, POOL_MAX_GRAD, in);
    snprintf(what, sizeof what, "places%s of %s %s, ksize %s, strides %s, %s",
             masked ? ", masked," : "", dtype_name(type), shape_text(&p.image), p.ksize, p.strides,
             p.same ? "SAME" : "VALID");
    run_cpu(&p, POOL_MAX_GRAD, in, 3, masked ? &rest : &expected);
    if (masked)
        run_relu_grad(&rest.outputs[0], &in[0], &expected);
    bool at_end = below(2);
    struct guarded image = beside_place(&in[0], at_end), gradient = beside_place(&in[2], at_end);
    struct guarded value = guarded_new(tensor_bytes(&in[1]), at_end);
    struct guarded place = guarded_new((size_t)tensor_count(&in[1]), at_end);
    struct guarded out = guarded_new(tensor_bytes(&in[0]), at_end);
    int64_t channels = p.image.dims[p.nchw ? 1 : 3];
    struct cuda_pool call = {.kind = POOL_WITH_PLACE,
                             .type = beside_type(type),
                             .masked = masked,
                             .planes = p.image.dims[0] * (p.nchw ? channels : 1),
                             .block = p.nchw ? 1 : channels,
                             .y = p.y,
                             .x = p.x,
                             .image = image.data,
                             .place = place.data,
                             .result = value.data};
    run(&(struct launching){what, launch_pool, &call, &value});
    beside_compare(what, &in[1], value.data);
    call.kind = POOL_PLACE_GRAD;
    call.gradient = gradient.data;
    call.result = out.data;
    run(&(struct launching){what, launch_pool, &call, &out});
    beside_compare(what, &expected.outputs[0], out.data);
    struct guarded *all[] = {&image, &gradient, &value, &place, &out};
    for (int i = 0; i < 5; i++)
        guarded_free(all[i]);
    for (int i = 0; i < 3; i++)
        tensor_release(&in[i]);
    if (masked)
        eager_release(&rest);
    eager_release(&expected);
}

static void places_give_the_bits_of_images(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    (void)state;
    for (int i = 0; i < 400; i++)
        check_places(types[i % 4], i / 4 % 2);
}

/* ---- local response normalization ---- */

static int launch_lrn(const void *call, struct CUstream_st *stream)
{
    return cuda_lrn(call, stream);
}

/* Up to 9 channels on each side, or `wide`: more than a block adds at a time. */
static void check_lrn(enum dtype type, bool backward, bool wide)
{
    const char *op = backward ? "LRNGrad" : "LRN";
    struct error err = ERROR_INIT;
    struct shape shape = {4, {1 + below(2), 1 + below(3), below(4), 1 + below(wide ? 900 : 40)}};
    struct tensor in[3];
    struct guarded placed[3];
    struct eager_result expected = {0};
    char radius[8];
    int n = backward ? 3 : 1;
    snprintf(radius, sizeof radius, "%d", (int)below(wide ? 700 : 9));
    struct eager_attr attrs[] = {
        {"depth_radius", radius}, {"bias", "1.5"}, {"alpha", "0.3"}, {"beta", "0.75"}};
    for (int i = 0; i < n; i++) {
        in[i] = values(type, &shape, true);
        placed[i] = beside_place(&in[i], true);
    }
    if (beside_run(op, in, n, attrs, 4, &expected, &err))
        fail_msg("%s: %s", op, err.text);
    struct guarded out = guarded_new(tensor_bytes(&in[0]), below(2));
    struct cuda_lrn call = {.type = beside_type(type),
                            .positions = shape.dims[0] * shape.dims[1] * shape.dims[2],
                            .channels = shape.dims[3],
                            .radius = atoi(radius),
                            .bias = 1.5,
                            .alpha = 0.3,
                            .beta = 0.75,
                            .x = placed[backward ? 1 : 0].data,
                            .y = backward ? placed[2].data : NULL,
                            .g = backward ? placed[0].data : NULL,
                            .out = out.data};
    run(&(struct launching){op, launch_lrn, &call, &out});
    beside_compare(op, &expected.outputs[0], out.data);
    for (int i = 0; i < n; i++) {
        guarded_free(&placed[i]);
        tensor_release(&in[i]);
    }
    guarded_free(&out);
    eager_release(&expected);
}

static void test_lrn(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 20; i++)
            check_lrn(types[t], i % 2, i >= 16);
}

/* ---- batch normalization ---- */

struct normalizing {
    enum dtype type;
    bool nchw, training, backward;
    struct shape image;
    struct tensor in[5];
};

static void pick_normalizing(struct normalizing *t, int i)
{
    static const int64_t sides[] = {0, 1, 3, 9};
    int64_t batch = 1 + below(3), channels = 1 + below(70), side = sides[below(4)];
    if (i == 0) /* more than one part */
        batch = 3, channels = 2, side = 90;
    t->image = t->nchw ? (struct shape){4, {batch, channels, side, side + 1}}
                       : (struct shape){4, {batch, side, side + 1, channels}};
    struct shape vector = shape_vector(channels), none = shape_vector(0);
    bool given = t->backward || !t->training;
    struct tensor image = values(t->type, &t->image, true), first = values(t->type, &vector, true);
    struct tensor second = values(t->type, t->backward ? &t->image : &vector, true);
    struct tensor mean = values(t->type, given ? &vector : &none, true);
    struct tensor variance = values(t->type, given ? &vector : &none, true);
    for (int64_t k = 0; k < tensor_count(&variance); k++)
        tensor_set_float64(&variance, k, 0.5 + unit_value());
    struct tensor forward[] = {image, first, second, mean, variance};
    struct tensor backward[] = {second, image, first, mean, variance};
    memcpy(t->in, t->backward ? backward : forward, sizeof t->in);
}

/* Compares in units of the type's last place, relative to the addends' size. */
static void compare_near(const char *what, const struct tensor *expected, void *data)
{
    static const double unit[32] = {
        [FLOAT32] = 0x1p-19, [FLOAT64] = 1e-11, [FLOAT16] = 0x1p-8, [BFLOAT16] = 0x1p-5};
    struct tensor got = tensor_borrow(expected->type, &expected->shape, data);
    for (int64_t i = 0; i < tensor_count(expected); i++) {
        double a = tensor_get_float64(expected, i), b = tensor_get_float64(&got, i);
        double wide = sqrt((double)tensor_count(expected)) + fabs(a);
        if (!beside_same(expected, &got, i) && !(fabs(a - b) <= unit[expected->type] * wide))
            fail_msg("%s: element %d of %s is %.17g, not %.17g", what, (int)i,
                     shape_text_typed(expected->type, &expected->shape), b, a);
    }
}

static void check_norm(struct normalizing *t, int i)
{
    const char *op = t->backward ? "FusedBatchNormGrad" : "FusedBatchNorm";
    struct error err = ERROR_INIT;
    struct eager_result expected = {0};
    struct guarded placed[5], out[5];
    struct eager_attr attrs[] = {{"is_training", t->training ? "true" : "false"},
                                 {"epsilon", "0.0625"},
                                 {"data_format", t->nchw ? "NCHW" : "NHWC"}};
    pick_normalizing(t, i);
    if (beside_run(op, t->in, 5, attrs, 3, &expected, &err))
        fail_msg("%s: %s", op, err.text);
    const int64_t *dims = t->image.dims;
    struct cuda_batch_norm call = {.type = beside_type(t->type),
                                   .outer = t->nchw ? dims[0] : dims[0] * dims[1] * dims[2],
                                   .channels = dims[t->nchw ? 1 : 3],
                                   .inner = t->nchw ? dims[2] * dims[3] : 1,
                                   .training = t->training,
                                   .epsilon = 0.0625};
    for (int k = 0; k < 5; k++) {
        placed[k] = beside_place(&t->in[k], true);
        out[k] = guarded_new(tensor_bytes(&expected.outputs[k]), k % 2);
        call.out[k] = out[k].data;
    }
    struct guarded scratch =
        guarded_new(cuda_batch_norm_scratch(call.outer, call.channels, call.inner), false);
    call.scratch = scratch.data;
    call.g = t->backward ? placed[0].data : NULL;
    call.x = placed[t->backward ? 1 : 0].data;
    call.scale = placed[t->backward ? 2 : 1].data;
    call.offset = placed[2].data;
    call.mean = placed[3].data;
    call.variance = placed[4].data;
    cuda_emulator_seed((uint64_t)i);
    beside_launched(op, cuda_batch_norm(&call, NULL));
    for (int k = 0; k < 5; k++) {
        compare_near(op, &expected.outputs[k], out[k].data);
        guarded_free(&placed[k]);
        guarded_free(&out[k]);
        tensor_release(&t->in[k]);
    }
    guarded_free(&scratch);
    eager_release(&expected);
}

static void test_norms(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int form = 0; form < 8; form++)
            for (int i = 0; i < 6; i++) {
                struct normalizing of = {
                    .type = types[t], .nchw = form & 1, .training = form & 2, .backward = form & 4};
                check_norm(&of, i);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools),          cmocka_unit_test(places_give_the_bits_of_images),
        cmocka_unit_test(means_are_of_floats), cmocka_unit_test(test_lrn),
        cmocka_unit_test(test_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
