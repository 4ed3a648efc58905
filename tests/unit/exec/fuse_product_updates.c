/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates by a product that plans fuse with it: which ones, and that variables and slots have the
 * same bits as when the product is made first. MATRICES is how many random graphs (default 60),
 * MATRICES_SEED the first one's seed.
 */
#include "lib/fused.h"

#include "base/str.h"
#include "lib/unit.h"

/* ---- which are fused ---- */

#define PLACE "Placeholder() {dtype=float32, shape="
#define HEAD                                                                                       \
    "v = Variable() {dtype=float32, shape=[4,4]}\nr = Const() {dtype=float32, value=0.5}\n"        \
    "a = " PLACE "[2,4]}\nb = " PLACE "[2,4]}\n"
#define P(left, right) "p = MatMul(" left ", " right ") {transpose_a=true}\n"
#define DOWN(gradient) "y = ApplyGradientDescent(v, r, " gradient ")\n"

static const struct which {
    const char *text, *kept;
    int n_gone;
} which[] = {
    {HEAD P("a", "b") DOWN("p"), NULL, 1},
    {HEAD P("a", "b") "g = Identity(p) {_gradient=\"v\"}\n" DOWN("g"), NULL, 1},
    {HEAD P("a", "b") "n = NoOp(^a)\ny = ApplyGradientDescent(v, r, p, ^n) {_class=[\"loc:@v\"]}\n",
     NULL, 1},
    /* it is fetched, itself or by the gradient's name; a control edge or an attribute forbids it */
    {HEAD P("a", "b") DOWN("p"), "p", 0},
    {HEAD P("a", "b") "g = Identity(p) {_gradient=\"v\"}\n" DOWN("g"), "g", 0},
    {HEAD P("a", "b") "g = Identity(p, ^b)\n" DOWN("g"), NULL, 0},
    {HEAD P("a", "b") "y = ApplyGradientDescent(v, r, p) {_after=[\"b\"]}\n", NULL, 0},
    /* an operand is a variable that changes: this one or another, itself or through a view */
    {HEAD "i = Identity(v)\n" P("i", "i") DOWN("p"), NULL, 0},
    {HEAD "w = Variable() {dtype=float32, shape=[2,4]}\ni = Identity(w)\n" P("i", "b") DOWN("p"),
     NULL, 1},
    {HEAD "w = Variable() {dtype=float32, shape=[2,4]}\ni = Identity(w)\nz = AssignAdd(w, a)\n" P(
         "i", "b") DOWN("p"),
     "z", 0},
    {HEAD "w = Variable() {dtype=float32, shape=[8]}\nz = AssignAdd(w, w)\n"
          "s = Const() {dtype=int32, value=[2,4]}\ni = Identity(w)\nj = Reshape(i, s)\n" P("a", "j")
              DOWN("p"),
     "z", 0},
    {HEAD "w = Variable() {dtype=float32, shape=[2,4]}\ni = Identity(w)\nz = AssignAdd(w, a)\n"
          "j = Neg(i)\n" P("j", "b") DOWN("p"),
     "z", 1},
    /* a long inner axis; a sum, which is one product already */
    {HEAD "c = " PLACE "[65,4]}\n" P("c", "c") DOWN("p"), NULL, 0},
    {HEAD P("a", "b") "q = MatMul(b, a) {transpose_a=true}\ng = Add(p, q)\n" DOWN("g"), NULL, 0},
    {HEAD P("a", "b") "q = Neg(p)\n" DOWN("q"), NULL, 0},
};

static void expect(const struct which *of)
{
    struct fixture f;
    struct fusion fused;
    fixture_open(&f, of->text, false);
    const struct graph *graph = fuse_by_pass("sums", f.graph, "y", of->kept, &fused);
    bool is_one = node_is(graph_find(graph, "y"), "FusedMatMulApply");
    if (is_one != (of->n_gone > 0))
        fail_msg("%sy is %s", of->text, graph_find(graph, "y")->op->def->name);
    fusion_release(&fused);
    fixture_close(&f);
}

static void a_product_for_an_update_alone_is_part_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        expect(&which[i]);
}

/* ---- bits ---- */

/* Uses w, its slots s0 and s1, and constants. */
static const char *const rules[] = {
    "ApplyGradientDescent(w, c0, g)",
    "ApplyMomentum(w, s0, c0, g, c1)",
    "ApplyMomentum(w, s0, c0, g, c1) {use_nesterov=true}",
    "ApplyAdagrad(w, s0, c0, g)",
    "ApplyAdadelta(w, s0, s1, c0, c1, c0, g)",
    "ApplyRMSProp(w, s0, s1, c0, c1, c1, c0, g)",
    "ApplyAdam(w, s0, s1, c1, c1, c0, c1, c1, c0, g)",
    "ApplyFtrl(w, s0, s1, g, c0, c0, c0, cn)",
};

static void add_matrix(struct str *text, const char *name, const char *type, long long rows,
                       long long columns)
{
    str_printf(text,
               "%s/shape = Const() {dtype=int32, value=[%lld,%lld]}\n"
               "%s/random = RandomUniform(%s/shape) {dtype=%s}\n%s = Sub(%s/random, half)\n",
               name, rows, columns, name, name, type, name, name);
}

static void make_graph(struct str *text, uint64_t random)
{
    static const char *const names[] = {"w", "s0", "s1"};
    const char *type = random_between(&random, 0, 7) ? "float32" : "float64";
    bool is_large = !random_between(&random, 0, 2);
    bool ta = random_between(&random, 0, 7), tb = !random_between(&random, 0, 7);
    long long m = random_between(&random, 0, is_large ? 500 : 20);
    long long n = random_between(&random, 1, is_large ? 900 : 20);
    long long k = random_between(&random, 0, 3) ? random_between(&random, 0, 66) : 1;
    str_printf(text,
               "half = Const() {dtype=%s, value=0.5}\nc0 = Const() {dtype=%s, value=0.01}\n"
               "c1 = Const() {dtype=%s, value=0.9}\ncn = Const() {dtype=%s, value=-0.5}\n",
               type, type, type, type);
    add_matrix(text, "a", type, ta ? k : m, ta ? m : k);
    add_matrix(text, "b", type, tb ? n : k, tb ? k : n);
    add_matrix(text, "start", type, m, n);
    str_append(text, "positive = Mul(start, start)\n");
    for (int i = 0; i < 3; i++)
        str_printf(text,
                   "%s = Variable() {dtype=%s, shape=[%lld,%lld]}\n"
                   "%s/init = Assign(%s, %s)\n",
                   names[i], type, m, n, names[i], names[i], i ? "positive" : "start");
    str_printf(text,
               "init = NoOp(^w/init, ^s0/init, ^s1/init)\n"
               "p = MatMul(a, b) {transpose_a=%s, transpose_b=%s}\n"
               "g = Identity(p) {_gradient=\"w\"}\ndone = %s\n",
               ta ? "true" : "false", tb ? "true" : "false",
               rules[random_between(&random, 0, sizeof rules / sizeof *rules - 1)]);
}

static void expect_equal(struct fixture *f, struct fixture *other, const char *name,
                         const struct str *text, uint64_t seed)
{
    struct tensor x, y;
    if (fixture_run(f, name, NULL, NULL, &x) || fixture_run(other, name, NULL, NULL, &y))
        fail_msg("MATRICES_SEED=%llu: %s%s", (unsigned long long)seed, f->err.text,
                 other->err.text);
    if (!shape_equal(&x.shape, &y.shape) || memcmp(x.data, y.data, tensor_bytes(&x)))
        fail_msg("MATRICES_SEED=%llu: %s differs\n%s", (unsigned long long)seed, name, text->data);
    tensor_release(&x);
    tensor_release(&y);
}

static bool is_in_plans(const struct graph *graph)
{
    struct fusion fused;
    fuse_by_pass("sums", graph, "done", NULL, &fused);
    bool is = fused.n_gone > 0;
    fusion_release(&fused);
    return is;
}

static void bits_are_those_of_two_ops(void **state)
{
    struct seed_range seeds = seeds_of("MATRICES", 60);
    int n_fused = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        struct str text = STR_INIT;
        struct fixture f[3]; /* fused; by regions; one by one */
        make_graph(&text, seed);
        for (int i = 0; i < 3; i++) {
            struct session_options options = {.plan = {.kernels = ops_kernels(),
                                                       .device = fixture_device(),
                                                       .cut = i == 1 ? CUT_REGIONS : CUT_WHOLE}};
            options.plan.without = i == 2 ? 1u << DEVICE_PASS_SUMS : 0;
            fixture_open(&f[i], str_text(&text), false);
            session_free(f[i].session);
            f[i].session = session_new(f[i].graph, &options);
            if (fixture_run(&f[i], "^init", NULL, NULL, NULL) ||
                fixture_run(&f[i], "^done", NULL, NULL, NULL) ||
                fixture_run(&f[i], "^done", NULL, NULL, NULL))
                fail_msg("MATRICES_SEED=%llu: %s\n%s", (unsigned long long)seed, f[i].err.text,
                         text.data);
        }
        for (int i = 0; i < 2; i++) {
            expect_equal(&f[i], &f[2], "w", &text, seed);
            expect_equal(&f[i], &f[2], "s0", &text, seed);
            expect_equal(&f[i], &f[2], "s1", &text, seed);
        }
        n_fused += is_in_plans(f[0].graph);
        for (int i = 0; i < 3; i++)
            fixture_close(&f[i]);
        str_release(&text);
    }
    assert_true(seeds.given || n_fused > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_for_an_update_alone_is_part_of_it),
        cmocka_unit_test(bits_are_those_of_two_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
