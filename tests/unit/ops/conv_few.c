/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of a filter in float32, compared with float64, which uses matrix products: images of
 * few channels and of more, gradients that are fed and gradients in a layout that a convolution
 * chose. Random geometry; CONVOLUTIONS: number of further cases.
 */
#include <math.h>

#include "base/memory.h"
#include "lib/random.h"
#include "lib/session.h"

struct geometry {
    int batch, height, width, channels, out, window_y, window_x, stride_y, stride_x, dilation;
    bool same, nchw;
};

static int one_to(uint64_t *random, int most)
{
    return 1 + (int)(unit_random(random) % (uint64_t)most);
}

static struct geometry any_geometry(uint64_t *random)
{
    struct geometry g = {.batch = one_to(random, 4)};
    g.channels = one_to(random, 6);
    g.out = one_to(random, 40);
    g.window_y = one_to(random, 5);
    g.window_x = one_to(random, 7);
    g.stride_y = one_to(random, 3);
    g.stride_x = one_to(random, 3);
    g.dilation =
        unit_random(random) % 4 ? 1 : 2; /* of the rows alone, unless the windows are one */
    g.height = (g.window_y - 1) * g.dilation + one_to(random, 12);
    g.width = g.window_x + one_to(random, 20) - 1;
    g.same = unit_random(random) % 2;
    g.nchw = unit_random(random) % 4 == 0;
    return g;
}

static void write_dims(struct str *text, const struct geometry *g, int height, int width,
                       int channels)
{
    if (g->nchw)
        str_printf(text, "[%d,%d,%d,%d]", g->batch, channels, height, width);
    else
        str_printf(text, "[%d,%d,%d,%d]", g->batch, height, width, channels);
}

static void write_attrs(struct str *text, const struct geometry *g)
{
    const char *pairs = g->nchw ? "strides=[1,1,%d,%d], dilations=[1,1,%d,1]"
                                : "strides=[1,%d,%d,1], dilations=[1,%d,1,1]";
    str_printf(text, " {");
    str_printf(text, pairs, g->stride_y, g->stride_x, g->dilation);
    str_printf(text, ", padding=\"%s\", data_format=\"%s\"}\n", g->same ? "SAME" : "VALID",
               g->nchw ? "NCHW" : "NHWC");
}

static int cells(int image, int window, int stride, bool same)
{
    return same ? (image + stride - 1) / stride : (image - window + stride) / stride;
}

/* `made`: the gradient comes from a convolution. */
static void write_graph(struct str *text, const struct geometry *g, bool made)
{
    int span = (g->window_y - 1) * g->dilation + 1;
    str_printf(text, "image_shape = Const() {dtype=int32, value=");
    write_dims(text, g, g->height, g->width, g->channels);
    str_printf(text,
               "}\nimage = RandomUniform(image_shape) {dtype=float32, seed=1}\n"
               "filter_shape = Const() {dtype=int32, value=[%d,%d,%d,%d]}\n",
               g->window_y, g->window_x, g->channels, g->out);
    if (made) {
        str_printf(text, "filter = RandomUniform(filter_shape) {dtype=float32, seed=2}\n"
                         "output = Conv2D(image, filter)");
        write_attrs(text, g);
        str_printf(text, "d = Relu(output)\n");
    } else {
        str_printf(text, "output_shape = Const() {dtype=int32, value=");
        write_dims(text, g, cells(g->height, span, g->stride_y, g->same),
                   cells(g->width, g->window_x, g->stride_x, g->same), g->out);
        str_printf(text, "}\nd = RandomUniform(output_shape) {dtype=float32, seed=2}\n");
    }
    str_printf(text, "short = Conv2DBackpropFilter(image, filter_shape, d)");
    write_attrs(text, g);
    str_printf(text, "long_image = Cast(image) {DstT=float64}\nlong_d = Cast(d) {DstT=float64}\n"
                     "long = Conv2DBackpropFilter(long_image, filter_shape, long_d)");
    write_attrs(text, g);
    str_printf(text, "wide = Cast(short) {DstT=float64}\ndifference = Sub(wide, long)\n");
}

static double largest(struct fixture *f, const char *node)
{
    struct tensor result;
    double most = 0;
    if (fixture_run(f, node, NULL, NULL, &result))
        fail_msg("%s", f->err.text);
    for (int64_t i = 0; i < tensor_count(&result); i++) {
        double value = fabs(tensor_get_float64(&result, i));
        if (!(value <= most))
            most = value;
    }
    tensor_release(&result);
    return most;
}

static void check(const struct geometry *g, bool made)
{
    struct str text = STR_INIT;
    struct fixture f;
    write_graph(&text, g, made);
    fixture_open(&f, text.data, false);
    double difference = largest(&f, "difference"), value = largest(&f, "long");
    if (!(difference <= 2e-5 * value + 1e-12))
        fail_msg("%g of %g in\n%s", difference, value, text.data);
    fixture_close(&f);
    str_release(&text);
}

static void test_random(void **state)
{
    const char *more = getenv("CONVOLUTIONS");
    int n = more ? atoi(more) : 150;
    uint64_t random = 1;
    (void)state;
    for (int i = 0; i < n; i++) {
        struct geometry g = any_geometry(&random);
        check(&g, i % 2);
    }
}

/* First layers of well-known nets. */
static void test_known(void **state)
{
    static const struct geometry lenet = {3, 28, 28, 1, 32, 5, 5, 1, 1, 1, true, false};
    static const struct geometry alexnet = {2, 227, 227, 3, 64, 11, 11, 4, 4, 1, false, false};
    static const struct geometry vgg = {1, 64, 64, 3, 64, 3, 3, 1, 1, 1, true, true};
    (void)state;
    for (int made = 0; made < 2; made++) {
        check(&lenet, made);
        check(&alexnet, made);
        check(&vgg, made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
