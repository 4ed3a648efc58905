/* SPDX-License-Identifier: Apache-2.0
 *
 * Products that plans fuse with the ops after them: which ones, and that no bit changes. PRODUCTS
 * is how many random graphs (default 60), PRODUCTS_SEED the first one's seed.
 */
#include "lib/fused.h"

#include <math.h>

#include "base/str.h"
#include "lib/unit.h"

/* ---- which are fused ---- */

#define PLACE "Placeholder() {dtype=float32, shape="
#define X "x = " PLACE "[3,4]}\nw = " PLACE "[4,5]}\nb = " PLACE "[5]}\n"
#define V "v = Variable() {dtype=float32, shape=[5]}\n"
#define PRODUCT "p = MatMul(x, w)\n"
#define IMAGES "x = " PLACE "[2,3,6,6]}\nw = " PLACE "[3,3,3,4]}\nb = " PLACE "[4]}\n"
#define CONV(format)                                                                               \
    "p = Conv2D(x, w) {strides=[1,1,1,1], padding=\"SAME\", data_format=\"" format "\"}\n"

static const struct which {
    const char *text, *kept; /* kept: fetched besides y, or NULL */
    int n_gone;
    const char *op; /* of y */
} which[] = {
    {X PRODUCT "a = BiasAdd(p, b)\ny = Relu(a)\n", NULL, 2, "FusedMatMul"},
    {X PRODUCT "a = BiasAdd(p, b)\ny = Tanh(a)\n", NULL, 2, "FusedMatMul"},
    {X PRODUCT "y = Relu6(p)\n", NULL, 1, "FusedMatMul"},
    /* a single element-wise op needs a pass over memory either way */
    {X PRODUCT "y = Tanh(p)\n", NULL, 0, "Tanh"},
    {X PRODUCT "y = Neg(p)\n", NULL, 0, "Neg"},
    /* a value with another consumer stays */
    {X PRODUCT "a = BiasAdd(p, b)\ny = Relu(a)\n", "a", 1, "Relu"},
    {X PRODUCT "a = BiasAdd(p, b)\ny = Relu(a)\n", "p", 0, "Relu"},
    {X PRODUCT "a = BiasAdd(p, b)\nr = Relu(a)\ny = Add(a, r)\n", NULL, 1, "Add"},
    {X PRODUCT "a = BiasAdd(p, b)\nn = NoOp(^a)\ny = Relu(a, ^n)\n", NULL, 1, "Relu"},
    {X "p = MatMul(x, w) {_order=[\"a\"]}\ny = Relu(p)\n", NULL, 0, "Relu"},
    /* a bias alone, on a product of one column */
    {"x = " PLACE "[3,5]}\nc = " PLACE "[5,1]}\nd = " PLACE "[1]}\nm = MatMul(x, c)\n"
     "y = BiasAdd(m, d)\n",
     NULL, 1, "FusedMatMul"},
    /* a variable is read at its own moment */
    {X V PRODUCT "a = BiasAdd(p, v)\ny = Relu(a)\n", NULL, 1, "Relu"},
    {X "v = Variable() {dtype=float32, shape=[4,5]}\np = MatMul(x, v)\ny = Relu(p)\n", NULL, 0,
     "Relu"},
    {X V PRODUCT "r = Identity(v)\na = BiasAdd(p, r)\ny = Relu(a)\n", NULL, 2, "FusedMatMul"},
    /* other types, unknown shapes, other channels */
    {"x = Placeholder() {dtype=int32, shape=[3,4]}\np = MatMul(x, x) {transpose_b=true}\n"
     "y = Relu(p)\n",
     NULL, 0, "Relu"},
    {"x = " PLACE "[?,4]}\np = MatMul(x, x) {transpose_b=true}\ny = Relu(p)\n", NULL, 0, "Relu"},
    {IMAGES CONV("NCHW") "a = BiasAdd(p, b) {data_format=\"NCHW\"}\ny = Relu(a)\n", NULL, 2,
     "FusedConv2D"},
    {"x = " PLACE "[2,3,4,4]}\nw = " PLACE "[3,3,3,4]}\nb = " PLACE
     "[4]}\n" CONV("NCHW") "a = BiasAdd(p, b)\ny = Relu(a)\n",
     NULL, 0, "Relu"},
};

static void expect(const struct which *of)
{
    struct fixture f;
    struct fusion fused;
    fixture_open(&f, of->text, false);
    const struct graph *graph = fuse_by_pass("products", f.graph, "y", of->kept, &fused);
    if (fused.n_gone != of->n_gone || !node_is(graph_find(graph, "y"), of->op))
        fail_msg("%s%d went, y is %s", of->text, fused.n_gone,
                 graph_find(graph, "y")->op->def->name);
    fusion_release(&fused);
    fixture_close(&f);
}

static void what_nobody_else_wants_is_fused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        expect(&which[i]);
}

/* ---- bits ---- */

static int below(uint64_t *state, int n)
{
    return (int)(unit_random(state) % (uint64_t)n);
}

struct net {
    struct str text;
    uint64_t random;
    bool is_image, nchw;
    int64_t dims[4]; /* of the value so far: batch, height, width, channels, or rows and columns */
    int n;           /* its number */
    int n_inputs;
};

/* Adds values made by a formula, with some NaN and infinities. */
static void add_values(struct net *net, const char *type, const int64_t *dims, int rank)
{
    str_printf(&net->text, "i%d = Placeholder() {dtype=%s, shape=[", net->n_inputs++, type);
    for (int i = 0; i < rank; i++)
        str_printf(&net->text, "%s%lld", i ? "," : "", (long long)dims[i]);
    str_append(&net->text, "]}\n");
}

static const char *format_of(const struct net *net)
{
    return net->is_image && net->nchw ? "NCHW" : "NHWC";
}

static void add_product(struct net *net, const char *type)
{
    static const int channels[] = {1, 3, 8, 17, 32};
    int64_t *last = &net->dims[net->is_image ? 3 : 1], before = *last;
    *last = channels[below(&net->random, 5)];
    int64_t filter[] = {3, 3, before, *last}, flipped[] = {*last, before};
    bool transposed = below(&net->random, 2);
    const int64_t *matrix = transposed ? flipped : filter + 2;
    add_values(net, type, net->is_image ? filter : matrix, net->is_image ? 4 : 2);
    int from = net->n++, by = net->n_inputs - 1;
    if (net->is_image)
        str_printf(&net->text,
                   "n%d = Conv2D(n%d, i%d) {strides=[1,1,1,1], padding=\"SAME\", "
                   "data_format=\"%s\"}\n",
                   net->n, from, by, format_of(net));
    else
        str_printf(&net->text, "n%d = MatMul(n%d, i%d) {transpose_b=%s}\n", net->n, from, by,
                   transposed ? "true" : "false");
}

static void add_bias(struct net *net, const char *type)
{
    add_values(net, type, &net->dims[net->is_image ? 3 : 1], 1);
    str_printf(&net->text, "n%d = BiasAdd(n%d, i%d) {data_format=\"%s\"}\n", net->n + 1, net->n,
               net->n_inputs - 1, format_of(net));
    net->n++;
}

static void add_activation(struct net *net)
{
    static const char *const ops[] = {"Relu", "Relu6", "Elu", "Softplus", "Tanh", "Sigmoid", "Neg"};
    str_printf(&net->text, "n%d = %s(n%d)\n", net->n + 1, ops[below(&net->random, 7)], net->n);
    net->n++;
}

/* Makes some layers, and sometimes another consumer of a value in the middle. */
static void make_net(struct net *net, const char *type)
{
    net->is_image = below(&net->random, 2);
    net->nchw = below(&net->random, 2);
    int64_t batch = 1 + below(&net->random, 9), side = 4 + below(&net->random, 9);
    int64_t nhwc[] = {batch, side, side + 1, 1 + below(&net->random, 20)};
    int64_t nchw[] = {batch, nhwc[3], side, side + 1}, matrix[] = {batch * 3, nhwc[3]};
    memcpy(net->dims, net->is_image ? nhwc : matrix, net->is_image ? sizeof nhwc : sizeof matrix);
    add_values(net, type, net->is_image ? (net->nchw ? nchw : nhwc) : matrix,
               net->is_image ? 4 : 2);
    str_append(&net->text, "n0 = Identity(i0)\n");
    for (int layers = 1 + below(&net->random, 3); layers--;) {
        add_product(net, type);
        int middle = net->n;
        if (below(&net->random, 4))
            add_bias(net, type);
        if (below(&net->random, 4))
            add_activation(net);
        if (!below(&net->random, 5)) {
            str_printf(&net->text, "n%d = Maximum(n%d, n%d)\n", net->n + 1, net->n, middle);
            net->n++;
        }
    }
}

static void fill(struct tensor *t, uint64_t *random)
{
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set_float64(t, i, sin((double)below(random, 1000)) * 2);
    if (!below(random, 6) && tensor_count(t))
        tensor_set_float64(t, below(random, (int)tensor_count(t)),
                           below(random, 2) ? NAN : -INFINITY);
}

#define INPUTS_MAX 16

static void run(const struct graph *graph, const struct net *net, unsigned without, bool dynamic,
                struct tensor *result)
{
    struct error err = ERROR_INIT;
    uint64_t random = net->random;
    char name[16];
    struct edge feeds[INPUTS_MAX], fetch;
    struct tensor values[INPUTS_MAX];
    struct step step = {.number = 1};
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE,
                                               .without = without}};
    struct session *session = session_new(graph, &options);
    for (int i = 0; i < net->n_inputs; i++) {
        snprintf(name, sizeof name, "i%d", i);
        const struct node *node = graph_find(graph, name);
        feeds[i] = (struct edge){node->id, 0};
        assert_int_equal(
            tensor_alloc(&values[i], node->outputs[0].type, &node->outputs[0].shape, &err), 0);
        fill(&values[i], &random);
    }
    snprintf(name, sizeof name, "n%d", net->n);
    fetch = (struct edge){graph_find(graph, name)->id, 0};
    struct plan_request call = {.feeds = feeds,
                                .feed_values = values,
                                .n_feeds = net->n_inputs,
                                .fetches = &fetch,
                                .n_fetches = 1};
    if (session_run(session, &call, &step, result, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < net->n_inputs; i++)
        tensor_release(&values[i]);
    session_free(session);
}

static int count_fused(const struct graph *graph, const struct net *net)
{
    char name[16];
    struct fusion fused;
    snprintf(name, sizeof name, "n%d", net->n);
    fuse_by_pass("products", graph, name, NULL, &fused);
    int n = fused.n_gone;
    fusion_release(&fused);
    return n;
}

static void they_change_no_bit(void **state)
{
    struct seed_range seeds = seeds_of("PRODUCTS", 60);
    int n_fused = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        struct net net = {.text = STR_INIT, .random = seed};
        struct graph *graph;
        struct error err = ERROR_INIT;
        struct tensor fused, plain;
        make_net(&net, seed % 4 ? "float32" : "float64");
        if (graph_parse_text(net.text.data, net.text.n, "test", ops_registry(), &graph, &err))
            fail_msg("PRODUCTS_SEED=%llu: %s", (unsigned long long)seed, err.text);
        n_fused += count_fused(graph, &net);
        run(graph, &net, 0, seed % 3 == 0, &fused);
        run(graph, &net, DEVICE_PASSES_ALL, false, &plain);
        if (!equal_but_nan(&fused, &plain))
            fail_msg("PRODUCTS_SEED=%llu: other bits\n%s", (unsigned long long)seed,
                     str_text(&net.text));
        tensor_release(&fused);
        tensor_release(&plain);
        graph_free(graph);
        str_release(&net.text);
    }
    assert_true(seeds.given || n_fused > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_else_wants_is_fused),
        cmocka_unit_test(they_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
