/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and its gradient by places: which nodes are rewritten, and that no bit changes, for
 * random windows over images with NaN, infinities and zeros of both signs. POOLS is how many random
 * nets (default 120), POOLS_SEED the first one's seed.
 */
#include "lib/fused.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "lib/unit.h"

/* ---- which are rewritten ---- */

#define X                                                                                          \
    "x = Placeholder() {dtype=float32, shape=[2,6,6,3]}\n"                                         \
    "g = Placeholder() {dtype=float32, shape=[2,3,3,3]}\n"
#define WINDOW(of) "{ksize=[1," of "," of ",1], strides=[1,2,2,1], padding=\"SAME\"}\n"
#define POOL "p = MaxPool(x) " WINDOW("3")

static const struct which {
    const char *text, *kept; /* kept: fetched besides y, or NULL */
    const char *op, *pool;   /* of y, of p */
} which[] = {
    {X POOL "y = MaxPoolGrad(x, p, g) " WINDOW("3"), NULL, "MaxPoolPlaceGrad", "MaxPoolWithPlace"},
    {X POOL "y = MaxPoolGrad(x, p, g) " WINDOW("3"), "p", "MaxPoolPlaceGrad", "MaxPoolWithPlace"},
    /* a mask made from the image is folded in */
    {X POOL "d = MaxPoolGrad(x, p, g) " WINDOW("3") "y = ReluGrad(d, x)\n", NULL,
     "MaxPoolPlaceGrad", "MaxPoolWithPlace"},
    {X POOL "d = MaxPoolGrad(x, p, g) " WINDOW("3") "y = ReluGrad(d, x)\n", "d", "ReluGrad",
     "MaxPoolWithPlace"},
    {X POOL "d = MaxPoolGrad(x, p, g) " WINDOW("3") "y = ReluGrad(x, d)\n", NULL, "ReluGrad",
     "MaxPoolWithPlace"},
    {X POOL "z = Neg(x)\nd = MaxPoolGrad(x, p, g) " WINDOW("3") "y = ReluGrad(d, z)\n", NULL,
     "ReluGrad", "MaxPoolWithPlace"},
    {X POOL "d = MaxPoolGrad(x, p, g) " WINDOW("3") "e = MaxPoolGrad(x, p, p) " WINDOW(
         "3") "r = ReluGrad(d, x)\ny = Add(r, e)\n",
     NULL, "Add", "MaxPoolWithPlace"},
    /* another image, another window, no result of MaxPool, a window too large for a byte */
    {X POOL "z = Neg(x)\ny = MaxPoolGrad(z, p, g) " WINDOW("3"), NULL, "MaxPoolGrad", "MaxPool"},
    {X POOL "y = MaxPoolGrad(x, p, g) " WINDOW("2"), NULL, "MaxPoolGrad", "MaxPool"},
    {X "p = Neg(g)\ny = MaxPoolGrad(x, p, g) " WINDOW("3"), NULL, "MaxPoolGrad", "Neg"},
    {X "p = MaxPool(x) " WINDOW("16") "y = MaxPoolGrad(x, p, g) " WINDOW("16"), NULL, "MaxPoolGrad",
     "MaxPool"},
    /* a variable is read at its own moment; a control edge, a snapshot, an unknown shape */
    {"x = Variable() {dtype=float32, shape=[2,6,6,3]}\n"
     "g = Placeholder() {dtype=float32, shape=[2,3,3,3]}\n" POOL
     "y = MaxPoolGrad(x, p, g) " WINDOW("3"),
     NULL, "MaxPoolGrad", "MaxPool"},
    {X POOL "n = NoOp(^p)\ny = MaxPoolGrad(x, p, g, ^n) " WINDOW("3"), NULL, "MaxPoolGrad",
     "MaxPool"},
    {"x = Placeholder() {dtype=float32, shape=[?,6,6,3]}\n"
     "g = Placeholder() {dtype=float32, shape=[?,3,3,3]}\n" POOL
     "y = MaxPoolGrad(x, p, g) " WINDOW("3"),
     NULL, "MaxPoolGrad", "MaxPool"},
};

static void expect(const struct which *of)
{
    struct fixture f;
    struct fusion fused;
    fixture_open(&f, of->text, false);
    const struct graph *graph = fuse_by_pass("pools", f.graph, "y", of->kept, &fused);
    const struct node *y = graph_find(graph, "y"), *p = graph_find(graph, "p");
    if (!node_is(y, of->op) || !node_is(p, of->pool))
        fail_msg("%sy is %s, p %s", of->text, y->op->def->name, p->op->def->name);
    fusion_release(&fused);
    fixture_close(&f);
}

static void pairs_that_count_a_window_are_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        expect(&which[i]);
}

/* ---- bits ---- */

static int below(uint64_t *random, int n)
{
    return (int)(unit_random(random) % (uint64_t)n);
}

/* Sometimes puts a convolution first, so that images come in a layout. */
static void make_net(struct str *text, uint64_t *random, bool wide)
{
    bool nchw = below(random, 2), same = below(random, 2), is_masked = below(random, 2);
    int channels = (int[]){1, 3, 16, 17, 40}[below(random, 5)], batch = 1 + below(random, 3);
    int size[2], stride[2], in[2], out[2], n[4];
    char window[256];
    for (int i = 0; i < 2; i++) {
        size[i] = 1 + below(random, 5);
        stride[i] = 1 + below(random, 3);
        in[i] = size[i] + below(random, 9);
        out[i] = same ? (in[i] + stride[i] - 1) / stride[i] : (in[i] - size[i]) / stride[i] + 1;
    }
    memcpy(n,
           nchw ? (int[]){batch, channels, in[0], in[1]} : (int[]){batch, in[0], in[1], channels},
           sizeof n);
    const char *type = wide ? "float64" : "float32", *format = nchw ? "NCHW" : "NHWC";
    str_printf(text, "i0 = Placeholder() {dtype=%s, shape=[%d,%d,%d,%d]}\n", type, n[0], n[1], n[2],
               n[3]);
    memcpy(n,
           nchw ? (int[]){batch, channels, out[0], out[1]}
                : (int[]){batch, out[0], out[1], channels},
           sizeof n);
    str_printf(text, "i1 = Placeholder() {dtype=%s, shape=[%d,%d,%d,%d]}\n", type, n[0], n[1], n[2],
               n[3]);
    str_printf(text, "i2 = Placeholder() {dtype=%s, shape=[1,1,%d,%d]}\n", type, channels,
               channels);
    if (below(random, 2))
        str_printf(text,
                   "c = Conv2D(i0, i2) {strides=[1,1,1,1], padding=\"SAME\", data_format=\"%s\"}\n",
                   format);
    else
        str_append(text, "c = Identity(i0)\n");
    str_append(text, below(random, 2) ? "x = Relu(c)\n" : "x = Identity(c)\n");
    snprintf(window, sizeof window,
             nchw
                 ? "{ksize=[1,1,%d,%d], strides=[1,1,%d,%d], padding=\"%s\", data_format=\"%s\"}\n"
                 : "{ksize=[1,%d,%d,1], strides=[1,%d,%d,1], padding=\"%s\", data_format=\"%s\"}\n",
             size[0], size[1], stride[0], stride[1], same ? "SAME" : "VALID", format);
    str_printf(text, "n0 = MaxPool(x) %sd = MaxPoolGrad(x, n0, i1) %s", window, window);
    str_append(text, is_masked ? "n1 = ReluGrad(d, x)\n" : "n1 = Identity(d)\n");
}

/* Draws from few values, so that some are equal, with special ones among them. */
static void fill(struct tensor *t, uint64_t *random)
{
    static const double odd[] = {NAN, -INFINITY, INFINITY, -0.0, 0.0, -0.0};
    int rare = below(random, 3) ? 9 : 400;
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set_float64(t, i,
                           below(random, rare) ? below(random, 9) - 4.0 : odd[below(random, 6)]);
}

#define N_INPUTS 3

static void run(const struct graph *graph, uint64_t random, unsigned without,
                struct tensor results[2])
{
    struct error err = ERROR_INIT;
    char name[16];
    struct edge feeds[N_INPUTS], fetches[2];
    struct tensor values[N_INPUTS];
    struct step step = {.number = 1};
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device(), .without = without}};
    struct session *session = session_new(graph, &options);
    for (int i = 0; i < N_INPUTS; i++) {
        snprintf(name, sizeof name, "i%d", i);
        const struct node *node = graph_find(graph, name);
        feeds[i] = (struct edge){node->id, 0};
        assert_int_equal(
            tensor_alloc(&values[i], node->outputs[0].type, &node->outputs[0].shape, &err), 0);
        fill(&values[i], &random);
    }
    for (int i = 0; i < 2; i++)
        fetches[i] = (struct edge){graph_find(graph, i ? "n1" : "n0")->id, 0};
    struct plan_request call = {.feeds = feeds,
                                .feed_values = values,
                                .n_feeds = N_INPUTS,
                                .fetches = fetches,
                                .n_fetches = 2};
    if (session_run(session, &call, &step, results, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < N_INPUTS; i++)
        tensor_release(&values[i]);
    session_free(session);
}

static void they_change_no_bit(void **state)
{
    struct seed_range seeds = seeds_of("POOLS", 120);
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        struct str text = STR_INIT;
        struct graph *graph;
        struct error err = ERROR_INIT;
        struct tensor fused[2], plain[2];
        uint64_t random = seed;
        make_net(&text, &random, seed % 4 == 0);
        if (graph_parse_text(text.data, text.n, "test", ops_registry(), &graph, &err))
            fail_msg("POOLS_SEED=%llu: %s", (unsigned long long)seed, err.text);
        run(graph, random, 0, fused);
        run(graph, random, DEVICE_PASSES_ALL, plain);
        for (int i = 0; i < 2; i++) {
            if (!equal_but_nan(&fused[i], &plain[i]))
                fail_msg("POOLS_SEED=%llu: other bits of n%d\n%s", (unsigned long long)seed, i,
                         str_text(&text));
            tensor_release(&fused[i]);
            tensor_release(&plain[i]);
        }
        graph_free(graph);
        str_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_that_count_a_window_are_made),
        cmocka_unit_test(they_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
