/* SPDX-License-Identifier: Apache-2.0
 *
 * LocallyConnected2D and its gradients: float32 compared with float64, which is partitioned
 * differently, for random geometry; the bits of one thread and of several; the declared cost. If
 * the filter is the same everywhere, the values equal Conv2D's. LOCALS: number of cases.
 */
#include <math.h>

#include "base/memory.h"
#include "base/str.h"
#include "graph/op_cost.h"
#include "lib/random.h"
#include "lib/session.h"

struct geometry {
    int batch, in, channels, window, out_channels, stride;
    bool same, nchw;
};

static int one_to(uint64_t *random, int most)
{
    return 1 + (int)(unit_random(random) % (uint64_t)most);
}

static struct geometry any_geometry(uint64_t *random)
{
    struct geometry g = {.batch = one_to(random, 4) == 1 ? one_to(random, 600) : one_to(random, 9)};
    g.channels = one_to(random, 24);
    g.out_channels = one_to(random, 40);
    g.window = one_to(random, 4);
    g.stride = one_to(random, 3);
    g.in = g.window - 1 + one_to(random, g.batch > 9 ? 3 : 6);
    g.same = unit_random(random) % 2;
    g.nchw = unit_random(random) % 3 == 0;
    return g;
}

static int positions(const struct geometry *g)
{
    return g->same ? (g->in + g->stride - 1) / g->stride : (g->in - g->window) / g->stride + 1;
}

static void write_image(struct str *text, const struct geometry *g, const char *name, int size,
                        int channels)
{
    str_printf(text, "%s_shape = Const() {dtype=int32, value=", name);
    if (g->nchw)
        str_printf(text, "[%d,%d,%d,%d]}\n", g->batch, channels, size, size);
    else
        str_printf(text, "[%d,%d,%d,%d]}\n", g->batch, size, size, channels);
}

static void write_op(struct str *text, const struct geometry *g, const char *what)
{
    str_printf(text, "%s {strides=[1,%d,%d,%d], padding=\"%s\", data_format=\"%s\"}\n", what,
               g->nchw ? 1 : g->stride, g->stride, g->nchw ? g->stride : 1,
               g->same ? "SAME" : "VALID", g->nchw ? "NCHW" : "NHWC");
}

/* Writes y, dx and df in float32, and yw, dxw and dfw of the same numbers in float64; if filters
 * are `shared`, also c, by Conv2D. */
static void write_graph(struct str *text, const struct geometry *g)
{
    int n = positions(g);
    write_image(text, g, "x", g->in, g->channels);
    write_image(text, g, "d", n, g->out_channels);
    str_printf(text,
               "f_shape = Const() {dtype=int32, value=[%d,%d,%d,%d,%d,%d]}\n"
               "s_shape = Const() {dtype=int32, value=[%d,%d,%d,%d]}\n"
               "tiles = Const() {dtype=int32, value=[%d,%d,1,1,1,1]}\n"
               "t_shape = Const() {dtype=int32, value=[1,1,%d,%d,%d,%d]}\n",
               n, n, g->window, g->window, g->channels, g->out_channels, g->window, g->window,
               g->channels, g->out_channels, n, n, g->window, g->window, g->channels,
               g->out_channels);
    str_append(text, "x = RandomUniform(x_shape) {dtype=float32, seed=1}\n"
                     "f = RandomUniform(f_shape) {dtype=float32, seed=2}\n"
                     "d = RandomUniform(d_shape) {dtype=float32, seed=3}\n"
                     "s = RandomUniform(s_shape) {dtype=float32, seed=4}\n"
                     "t = Reshape(s, t_shape)\nshared = Tile(t, tiles)\n"
                     "xw = Cast(x) {DstT=float64}\nfw = Cast(f) {DstT=float64}\n"
                     "dw = Cast(d) {DstT=float64}\n");
    write_op(text, g, "y = LocallyConnected2D(x, f)");
    write_op(text, g, "dx = LocallyConnected2DBackpropInput(x_shape, f, d)");
    write_op(text, g, "df = LocallyConnected2DBackpropFilter(x, f_shape, d)");
    write_op(text, g, "yw = LocallyConnected2D(xw, fw)");
    write_op(text, g, "dxw = LocallyConnected2DBackpropInput(x_shape, fw, dw)");
    write_op(text, g, "dfw = LocallyConnected2DBackpropFilter(xw, f_shape, dw)");
    write_op(text, g, "e = LocallyConnected2D(x, shared)");
    write_op(text, g, "ew = Conv2D(x, s)");
}

static struct tensor value_of(struct fixture *f, const char *name)
{
    struct tensor value;
    if (fixture_run(f, name, NULL, NULL, &value))
        fail_msg("%s", f->err.text);
    return value;
}

static void compare(struct fixture *f, const char *name, const char *exact, const char *text)
{
    struct tensor a = value_of(f, name), b = value_of(f, exact);
    double most = 0, off = 0;
    for (int64_t i = 0; i < tensor_count(&a); i++) {
        most = fmax(most, fabs(tensor_get_float64(&b, i)));
        off = fmax(off, fabs(tensor_get_float64(&a, i) - tensor_get_float64(&b, i)));
    }
    if (!(off <= 2e-5 * most + 1e-12))
        fail_msg("%s is off by %g of %g in\n%s", name, off, most, text);
    tensor_release(&a);
    tensor_release(&b);
}

/* Plans without a team have the same bits. */
static void compare_bits(struct fixture *f, struct session *team, const char *name)
{
    struct session *alone = f->session;
    struct tensor a = value_of(f, name);
    f->session = team;
    struct tensor b = value_of(f, name);
    f->session = alone;
    if (!tensor_equal(&a, &b))
        fail_msg("%s has other bits by another number of threads", name);
    tensor_release(&a);
    tensor_release(&b);
}

static struct session *open_with(const struct graph *graph, int threads)
{
    static struct device *devices[5];
    struct error err = ERROR_INIT;
    if (!devices[threads])
        devices[threads] =
            device_open("CPU", 0, &(struct device_options){.threads = threads}, &err);
    if (!devices[threads])
        fail_msg("%s", err.text);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = devices[threads], .threads = threads}};
    return session_new(graph, &options);
}

static void check(const struct geometry *g)
{
    static const char *const pairs[][2] = {{"y", "yw"}, {"dx", "dxw"}, {"df", "dfw"}, {"e", "ew"}};
    struct str text = STR_INIT;
    struct fixture f;
    write_graph(&text, g);
    fixture_open(&f, str_text(&text), false);
    session_free(f.session);
    f.session = open_with(f.graph, 1);
    struct session *team = open_with(f.graph, 4);
    for (int i = 0; i < 4; i++) {
        compare(&f, pairs[i][0], pairs[i][1], str_text(&text));
        if (i < 3)
            compare_bits(&f, team, pairs[i][0]);
    }
    session_free(team);
    fixture_close(&f);
    str_release(&text);
}

static void test_random(void **state)
{
    const char *more = getenv("LOCALS");
    int n = more ? atoi(more) : 40;
    uint64_t random = 1;
    (void)state;
    for (int i = 0; i < n; i++) {
        struct geometry g = any_geometry(&random);
        check(&g);
    }
}

/* Large enough that a team computes all three, in several blocks of images. */
static void test_of_a_team(void **state)
{
    static const struct geometry several = {130, 12, 24, 3, 32, 1, true, false};
    static const struct geometry turned = {70, 9, 32, 3, 40, 2, false, true};
    (void)state;
    check(&several);
    check(&turned);
}

static void check_cost(struct fixture *f, const char *name, double bytes)
{
    struct cost_query query = {graph_find(f->graph, name), f->graph, 1};
    struct op_cost cost = cost_of(&query);
    double multiplications = 2.0 * 3 * 3 * 5 * 5 * 7 * 11; /* batch, positions, window, channels */
    assert_true(cost.operations == 2 * multiplications);
    assert_true(cost.bytes == bytes);
}

static void test_cost(void **state)
{
    static const struct geometry g = {2, 5, 7, 5, 11, 2, true, false};
    double image = 4.0 * 2 * 5 * 5 * 7, filter = 4.0 * 3 * 3 * 5 * 5 * 7 * 11;
    double output = 4.0 * 2 * 3 * 3 * 11;
    struct str text = STR_INIT;
    struct fixture f;
    (void)state;
    write_graph(&text, &g);
    fixture_open(&f, str_text(&text), false);
    check_cost(&f, "y", image + filter + output);
    check_cost(&f, "dx", image + filter + output + 4 * 4);
    check_cost(&f, "df", image + filter + output + 4 * 6);
    fixture_close(&f);
    str_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_of_a_team),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
