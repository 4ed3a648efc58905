/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates that become one on devices that ask for it: which ones, and that variables change as on a
 * device that joins none, and as on the CPU. UPDATES is how many random graphs (default 150),
 * UPDATES_SEED the first one's seed.
 */
#include "lib/on_device.h"

#include "base/str.h"
#include "lib/random_updates.h"

/* ---- which are joined ---- */

#define V(i) "v" #i " = Variable() {dtype=float32, shape=[2]}\n"
#define HEAD                                                                                       \
    V(0)                                                                                           \
    V(1)                                                                                           \
    V(2)                                                                                           \
    "x = Placeholder() {dtype=float32, shape=[2]}\ng = Neg(x)\n"                                   \
    "r = Const() {dtype=float32, value=0.5}\n"
#define DOWN(i, rate, gradient) "u" #i " = ApplyGradientDescent(v" #i ", " rate ", " gradient ")\n"
#define MOMENTUM(i, gradient, nesterov)                                                            \
    "m" #i " = Variable() {dtype=float32, shape=[2]}\nu" #i " = ApplyMomentum(v" #i ", m" #i       \
    ", r, " gradient ", r) {use_nesterov=" nesterov "}\n"
#define BOTH "n = NoOp(^u0, ^u1)\n"
#define RECV(name)                                                                                 \
    name " = Recv() {tensor_type=float32, tensor_name=\"" name                                     \
         "\", send_device=\"/job:a/task:0/device:CPU:0\", recv_device=\"/device:CPU:0\", "         \
         "shape=[2]}\n"

#define POOL "{ksize=[1,2,2,1], strides=[1,2,2,1], padding=\"SAME\"}\n"
#define HALF                                                                                       \
    "b = Cast(x) {DstT=bfloat16}\nc = Neg(b)\nd = Cast(c) {DstT=float32}\n"                        \
    "e = Cast(b) {DstT=float32}\n"

static const struct which {
    const char *text, *keep; /* keep: fetched, or NULL */
    int n_gone;
} which[] = {
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g"), NULL, 1},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "x") DOWN(2, "r", "g") BOTH, NULL, 1},
    {HEAD MOMENTUM(0, "x", "true") MOMENTUM(1, "g", "true"), NULL, 1},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") BOTH, NULL, 1},
    /* other scalars, attributes, rules, types, devices */
    {HEAD "q = Const() {dtype=float32, value=0.5}\n" DOWN(0, "r", "x") DOWN(1, "q", "g"), NULL, 1},
    {HEAD "q = Const() {dtype=float32, value=0.25}\n" DOWN(0, "r", "x") DOWN(1, "q", "g"), NULL, 0},
    {HEAD "q = Placeholder() {dtype=float32, shape=[]}\n" DOWN(0, "r", "x") DOWN(1, "q", "g"), NULL,
     0},
    {HEAD MOMENTUM(0, "x", "true") MOMENTUM(1, "g", "false"), NULL, 0},
    {HEAD MOMENTUM(0, "x", "true") DOWN(1, "r", "g"), NULL, 0},
    {HEAD "w = Variable() {dtype=float64, shape=[2]}\ny = Cast(x) {DstT=float64}\n"
          "s = Const() {dtype=float64, value=0.5}\n" DOWN(
              0, "r", "x") "u1 = ApplyGradientDescent(w, s, y)\n",
     NULL, 0},
    {HEAD DOWN(0, "r", "x") "u1 = ApplyGradientDescent(v1, r, g) @?/device:CPU:1\n", NULL, 0},
    /* another node waits for one of them, consumes it, or it is fetched */
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") "n = NoOp(^u0)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") BOTH "p = NoOp(^u1)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") "y = Neg(u0)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g"), "u1", 0},
    {HEAD DOWN(0, "r", "x") "u1 = ApplyGradientDescent(v1, r, g) {_after=[\"u0\"]}\n", NULL, 0},
    /* one comes after the other, or sees the other's change */
    {HEAD DOWN(0, "r", "x") "u1 = ApplyGradientDescent(v1, r, g, ^u0)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") "y = Neg(x, ^u0)\n" DOWN(1, "r", "y") "n = NoOp(^u1)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") "y = Identity(v0)\n" DOWN(1, "r", "y"), NULL, 0},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "v0"), NULL, 0},
    {HEAD DOWN(0, "r", "x") "y = Neg(v0)\n" DOWN(1, "r", "y"), NULL, 1},
    {HEAD "a = Assign(v2, g)\n" DOWN(0, "r", "x") "u1 = ApplyGradientDescent(v1, r, g, ^a)\n", NULL,
     0},
    /* another node writes the variable, under this or another name */
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") "a = AssignAdd(v1, x)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") "u2 = ApplyGradientDescent(v1, r, x)\n", NULL, 0},
    {HEAD "o = Variable() {dtype=float32, shape=[2], shared_name=\"v0\"}\n" DOWN(
         0, "r", "x") "u1 = ApplyGradientDescent(o, r, g)\n",
     NULL, 0},
    {HEAD "a = AssignAdd(v1, x)\n" DOWN(0, "r", "x") DOWN(1, "r", "g") BOTH
     "entry e = ^n\nentry f = ^a\n",
     NULL, 1},
    /* also where an earlier pass has changed the graph */
    {HEAD "i = Placeholder() {dtype=float32, shape=[2,4,4,3]}\n"
          "p = MaxPool(i) " POOL "t = MaxPoolGrad(i, p, p) " POOL "a = AssignAdd(v1, x)\n" DOWN(
              0, "r", "x") DOWN(1, "r", "g") BOTH "entry e = ^n, t\nentry f = ^a\n",
     NULL, 1},
    {HEAD "a = AssignAdd(v1, x)\n" DOWN(0, "r", "x") DOWN(1, "r", "g") BOTH "entry e = ^n, ^a\n",
     NULL, 0},
    /* writes of another variable that only names order */
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") "a = Assign(v2, x)\nb = Assign(v2, g)\n", NULL, 0},
    {HEAD DOWN(0, "r", "x") DOWN(1, "r", "g") "a = Assign(v2, x)\nb = Assign(v2, g, ^a)\n", NULL,
     1},
    /* they wait for other values, or may not run */
    {HEAD RECV("c") DOWN(0, "r", "x") DOWN(1, "r", "c"), NULL, 0},
    {HEAD RECV("c") "y = Neg(c)\n" DOWN(0, "r", "c") DOWN(1, "r", "y"), NULL, 1},
    {HEAD RECV("c") RECV("d") DOWN(0, "r", "c") DOWN(1, "r", "d"), NULL, 0},
    {HEAD "p = Placeholder() {dtype=bool, shape=[]}\ns = Switch(x, p)\n" DOWN(0, "r", "s")
         DOWN(1, "r", "s:1"),
     NULL, 0},
    {HEAD "p = Placeholder() {dtype=bool, shape=[]}\ns = Switch(x, p)\ny = Neg(s:1)\n" DOWN(
         0, "r", "y") DOWN(1, "r", "s:1"),
     NULL, 1},
    /* the size of a gradient that may wait is limited, and must be known */
    {HEAD "w = Variable() {dtype=float32, shape=[1024,513]}\n"
          "y = Placeholder() {dtype=float32, shape=[1024,513]}\n" DOWN(
              0, "r", "x") "u1 = ApplyGradientDescent(w, r, y)\n",
     NULL, 0},
    {HEAD "w = Variable() {dtype=float32, shape=[1024,512]}\n"
          "y = Placeholder() {dtype=float32, shape=[1024,512]}\n" DOWN(
              0, "r", "x") "u1 = ApplyGradientDescent(w, r, y)\n",
     NULL, 1},
    {HEAD "y = Placeholder() {dtype=float32, shape=[?]}\n" DOWN(0, "r", "x") DOWN(1, "r", "y"),
     NULL, 0},
};

static struct graph *parse(const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph;
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &graph, &err))
        fail_msg("%s%s", text, err.text);
    return graph;
}

/* Returns how many updates went, and checks the new nodes: as many variables as updates, and
 * gradients of 16 bits. */
static int joined(const struct graph *graph, const char *device, struct edge *keep, int n_keep,
                  int n_narrow)
{
    struct fuse_options options = {
        .kernels = ops_kernels(), .device = device, .keep = keep, .n_keep = n_keep};
    struct fusion fused;
    int n_casts = n_narrow, n_gone[N_DEVICE_PASSES], pass = device_pass_find("updates"), n = 0;
    fuse_graph(graph, &options, &fused, n_gone);
    for (size_t i = 0; fused.graph && i < fused.graph->nodes.n; i++)
        if (node_is(graph_node(fused.graph, (int)i), "FusedApply")) {
            const struct node *node = graph_node(fused.graph, (int)i);
            n += (int)node_int(node, "N") - 1;
            if (node_type(node, "G") != node_type(node, "T"))
                n_narrow -= (int)node_int(node, "N");
        }
    assert_int_equal(n_narrow, 0);
    assert_int_equal(n + n_casts, n_gone[pass]);
    fusion_release(&fused);
    return n;
}

static void those_that_nothing_tells_apart_are_joined(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        struct graph *graph = parse(which[i].text);
        struct edge keep = {which[i].keep ? graph_find(graph, which[i].keep)->id : 0, 0};
        int n = joined(graph, "CUDA", &keep, which[i].keep != NULL, 0);
        if (n != which[i].n_gone)
            fail_msg("%s%d went, not %d", which[i].text, n, which[i].n_gone);
        n = joined(graph, "CPU", &keep, which[i].keep != NULL, 0);
        assert_int_equal(n, 0);
        graph_free(graph);
    }
}

/* Gradients of 16 bits, named or not, without other consumers. */
static const struct halved {
    const char *text, *keep;
    int n_gone, n_narrow; /* updates; Casts, on any device */
} halved[] = {
    {HEAD HALF DOWN(0, "r", "d") DOWN(1, "r", "e"), NULL, 1, 2},
    {HEAD HALF "f = Identity(d) {_gradient=\"v0\"}\n" DOWN(0, "r", "f") DOWN(1, "r", "x"), NULL, 0,
     1},
    {HEAD HALF "f = Identity(d) {_gradient=\"v0\"}\n" DOWN(0, "r", "f"), "f", 0, 0},
    {HEAD HALF "y = Neg(d)\n" DOWN(0, "r", "d") DOWN(1, "r", "e"), NULL, 0, 1},
    {HEAD HALF DOWN(0, "r", "d") DOWN(1, "r", "d"), NULL, 1, 0},
    {HEAD HALF DOWN(0, "r", "d") "y = Neg(u0)\n", NULL, 0, 0},
};

static void gradients_of_16_bits_are_read_as_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof halved / sizeof *halved; i++) {
        const struct halved *h = &halved[i];
        struct graph *graph = parse(h->text);
        struct edge keep = {h->keep ? graph_find(graph, h->keep)->id : 0, 0};
        assert_int_equal(joined(graph, "CUDA", &keep, h->keep != NULL, h->n_narrow), h->n_gone);
        assert_int_equal(joined(graph, "CPU", &keep, h->keep != NULL, h->n_narrow), 0);
        graph_free(graph);
    }
}

/* Joining 40 updates keeps no more than 32 gradients at a time. */
static void many_are_several(void **state)
{
    struct str text = STR_INIT;
    (void)state;
    str_append(&text, HEAD);
    for (int i = 10; i < 50; i++)
        str_printf(&text,
                   "v%d = Variable() {dtype=float32, shape=[2]}\n"
                   "u%d = ApplyGradientDescent(v%d, r, x)\n",
                   i, i, i);
    struct graph *graph = parse(str_text(&text));
    assert_int_equal(joined(graph, "CUDA", NULL, 0, 0), 38);
    graph_free(graph);
    str_release(&text);
}

/* ---- what they do ---- */

/* Every op that can be joined is joined, or none is. */
static void open_on(struct fixture *f, const char *text, struct device *device, unsigned without)
{
    memset(f, 0, sizeof *f);
    f->graph = parse(text);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = device, .without = without}};
    f->session = session_new(f->graph, &options);
}

static int step(struct fixture *f, int64_t number, const char *what, int32_t index)
{
    static const struct shape shape = {.rank = 1, .dims = {UPDATES_LENGTH}};
    int32_t indices[UPDATES_LENGTH] = {0, 1, 2, index};
    struct tensor x = tensor_borrow(INT32, &shape, indices);
    struct edge feed = {graph_find(f->graph, "x")->id, 0};
    int target = graph_find(f->graph, what)->id;
    struct step step = {.number = number, .seed = 5};
    struct plan_request call = {
        .feeds = &feed, .feed_values = &x, .n_feeds = 1, .targets = &target, .n_targets = 1};
    return session_run(f->session, &call, &step, NULL, &f->err);
}

static void variable_of(struct fixture *f, const char *name, struct tensor *value)
{
    if (fixture_run(f, name, NULL, NULL, value))
        fail_msg("%s", f->err.text);
}

static void expect_equal(struct fixture *a, struct fixture *b, const char *name, const char *text,
                         uint64_t seed)
{
    struct tensor x, y;
    variable_of(a, name, &x);
    variable_of(b, name, &y);
    if (!equal_but_nan(&x, &y))
        fail_msg("UPDATES_SEED=%llu: %s differs\n%s", (unsigned long long)seed, name, text);
    tensor_release(&x);
    tensor_release(&y);
}

static void expect_equal_variables(struct fixture *a, struct fixture *b, const char *text,
                                   uint64_t seed)
{
    for (size_t i = 0; i < a->graph->nodes.n; i++)
        if (node_is(graph_node(a->graph, (int)i), "Variable"))
            expect_equal(a, b, graph_node(a->graph, (int)i)->name, text, seed);
}

/* Runs on f[0] joined, f[1] one by one, f[2] on the CPU. Returns whether no step failed. */
static bool run_all(struct fixture f[3], int n, const char *text, uint64_t seed)
{
    uint64_t random = seed;
    for (int k = 0; k < 3; k++)
        if (step(&f[k], 0, "init", 0))
            fail_msg("%s", f[k].err.text);
    for (int64_t i = 1; i <= 5; i++) {
        int32_t index = unit_random(&random) % 12 ? 3 : 4;
        int codes[3];
        for (int k = 0; k < 3; k++)
            codes[k] = step(&f[k], i, "done", index);
        if (codes[0] != codes[1] || codes[0] != codes[2])
            fail_msg("UPDATES_SEED=%llu: %s / %s / %s\n%s", (unsigned long long)seed, f[0].err.text,
                     f[1].err.text, f[2].err.text, text);
        if (codes[0]) /* which updates came before the failure may differ */
            return false;
        for (int k = 1; k < n; k++)
            expect_equal_variables(&f[0], &f[k], text, seed);
    }
    return true;
}

static void check(uint64_t seed, struct device *cpu, int *n_joined, int *n_whole)
{
    struct str text = STR_INIT;
    struct fixture f[3];
    struct device *devices[2];
    unsigned joins = DEVICE_PASSES_ALL & ~(1u << device_pass_find("updates"));
    bool races = random_updates(&text, seed);
    for (int k = 0; k < 2; k++)
        devices[k] = device_open_with("TF_TEST_DEVICE_SEED", (long)seed);
    open_on(&f[0], str_text(&text), devices[0], seed % 3 ? joins : 0);
    open_on(&f[1], str_text(&text), devices[1], DEVICE_PASSES_ALL);
    open_on(&f[2], str_text(&text), cpu, DEVICE_PASSES_ALL);
    *n_joined += joined(f[0].graph, "CUDA", NULL, 0, 0);
    *n_whole += run_all(f, races ? 2 : 3, str_text(&text), seed);
    for (int k = 0; k < 3; k++)
        fixture_close(&f[k]);
    for (int k = 0; k < 2; k++)
        device_free(devices[k]);
    str_release(&text);
}

static void they_change_variables_as_one_by_one(void **state)
{
    struct seed_range seeds = seeds_of("UPDATES", 150);
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 2}, &err);
    int n_joined = 0, n_whole = 0;
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        check(seeds.first + (uint64_t)i, cpu, &n_joined, &n_whole);
    assert_true(seeds.given || n_joined > seeds.n);
    assert_true(seeds.given || (n_whole > seeds.n / 3 && n_whole < seeds.n));
    device_free(cpu);
}

/* Of two joined updates neither is made if anything before either of them failed. */
static const char failing[] =
    "x = Placeholder() {dtype=int32, shape=[4]}\nr = Const() {dtype=float32, value=1}\n"
    "table = Const() {dtype=float32, value=[1,2,3,4]}\ng = Gather(table, x)\n"
    "a = Variable() {dtype=float32, shape=[4]}\nb = Variable() {dtype=float32, shape=[4]}\n"
    "init = NoOp(^i, ^k)\ni = Assign(a, table)\nk = Assign(b, table)\n"
    "u = ApplyGradientDescent(a, r, table)\nw = ApplyGradientDescent(b, r, g)\n"
    "done = NoOp(^u, ^w)\n";

static void a_fault_leaves_all_of_them_as_they_are(void **state)
{
    static const float before[] = {1, 2, 3, 4}, after[][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    struct device *device = device_open_with(NULL, 0);
    struct fixture f;
    struct tensor value;
    (void)state;
    open_on(&f, failing, device, 0);
    assert_int_equal(step(&f, 1, "init", 0), 0);
    for (int captured = 0; captured < 3; captured++) {
        assert_int_equal(step(&f, 2, "done", 9), ERR_DATA);
        assert_non_null(strstr(f.err.text, "9"));
        for (int i = 0; i < 2; i++) {
            variable_of(&f, i ? "b" : "a", &value);
            assert_memory_equal(value.data, before, sizeof before);
            tensor_release(&value);
        }
    }
    assert_int_equal(step(&f, 3, "done", 3), 0);
    for (int i = 0; i < 2; i++) {
        variable_of(&f, i ? "b" : "a", &value);
        assert_memory_equal(value.data, after[i], sizeof after[i]);
        tensor_release(&value);
    }
    fixture_close(&f);
    device_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_nothing_tells_apart_are_joined),
        cmocka_unit_test(gradients_of_16_bits_are_read_as_they_are),
        cmocka_unit_test(many_are_several),
        cmocka_unit_test(they_change_variables_as_one_by_one),
        cmocka_unit_test(a_fault_leaves_all_of_them_as_they_are),
    };
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
