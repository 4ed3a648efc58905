/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products that plans turn into one product: which ones, and their values, compared with
 * sums of single multiplications in float64. SUMS is how many random graphs (default 60), SUMS_SEED
 * the first one's seed.
 */
#include "lib/fused.h"

#include <math.h>

#include "base/str.h"
#include "lib/unit.h"

/* ---- which are rewritten ---- */

#define PLACE "Placeholder() {dtype=float32, shape="
#define X                                                                                          \
    "a = " PLACE "[1,4]}\nb = " PLACE "[1,5]}\nc = " PLACE "[2,4]}\nd = " PLACE "[2,5]}\n"         \
    "x = " PLACE "[4,5]}\n"
#define T " {transpose_a=true}\n"
#define TWO "p = MatMul(a, b)" T "q = MatMul(c, d)" T

static const struct which {
    const char *text, *kept; /* kept: fetched besides y, or NULL */
    int n_gone;
} which[] = {
    {X TWO "y = AddN(p, q)\n", NULL, 2},
    {X TWO "y = Add(p, q)\n", NULL, 2},
    {X TWO "y = AddN(q, x, p)\n", NULL, 2},
    {X TWO "s = Add(x, p)\ny = Add(s, q)\n", NULL, 2},
    {X "p = MatMul(a, b)" T "y = Add(p, x)\n", NULL, 1},
    /* a product with another consumer stays, and is the addend */
    {X TWO "y = AddN(p, q)\n", "p", 1},
    {X "p = MatMul(a, b)" T "y = Add(p, p)\n", NULL, 0},
    {X TWO "n = NoOp(^p)\ny = AddN(q, x, ^n)\n", NULL, 0},
    {X "p = MatMul(a, b) {transpose_a=true, _order=[\"a\"]}\ny = Add(p, x)\n", NULL, 0},
    /* two addends, and one that is broadcast */
    {X TWO "y = AddN(p, x, x, q)\n", NULL, 0},
    {X "r = " PLACE "[5]}\np = MatMul(a, b)" T "y = Add(p, r)\n", NULL, 0},
    /* transposed otherwise: the first is added to it */
    {X "e = " PLACE "[4,2]}\np = MatMul(a, b)" T "q = MatMul(e, d)\ny = AddN(p, q)\n", NULL, 1},
    /* operands that are larger than the result */
    {"a = " PLACE "[9,2]}\nb = " PLACE "[9,3]}\nc = " PLACE "[9,2]}\np = MatMul(a, b)" T
     "q = MatMul(c, b)" T "y = AddN(p, q)\n",
     NULL, 0},
    /* a variable is read at its own moment; other types, unknown shapes */
    {X "v = Variable() {dtype=float32, shape=[1,5]}\np = MatMul(a, v)" T "y = Add(p, x)\n", NULL,
     0},
    {"a = Placeholder() {dtype=int32, shape=[2,2]}\np = MatMul(a, a)\ny = Add(p, a)\n", NULL, 0},
    {X "e = " PLACE "[?,4]}\nf = " PLACE "[?,5]}\np = MatMul(e, f)" T "y = Add(p, x)\n", NULL, 0},
};

static void expect(const struct which *of)
{
    struct fixture f;
    struct fusion fused;
    fixture_open(&f, of->text, false);
    const struct graph *graph = fuse_by_pass("sums", f.graph, "y", of->kept, &fused);
    bool is_one = node_is(graph_find(graph, "y"), "FusedMatMulSum");
    if (fused.n_gone != of->n_gone || is_one != (of->n_gone > 0))
        fail_msg("%s%d went, y is %s", of->text, fused.n_gone,
                 graph_find(graph, "y")->op->def->name);
    fusion_release(&fused);
    fixture_close(&f);
}

static void what_nobody_else_wants_is_in_the_sum(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        expect(&which[i]);
}

/* ---- numbers ---- */

#define TERMS_MAX 12

struct sum {
    struct str text;
    int n_products, n_tensors;
    bool ta, tb;
    int64_t m, n, k[TERMS_MAX];
    struct tensor values[2 * TERMS_MAX + 1];
};

static void add_value(struct sum *sum, int i, enum dtype type, int64_t rows, int64_t columns,
                      uint64_t *random)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_of(2, (int64_t[]){rows, columns});
    assert_int_equal(tensor_alloc(&sum->values[i], type, &shape, &err), 0);
    for (int64_t k = 0; k < rows * columns; k++)
        tensor_set_float64(&sum->values[i], k, (double)random_between(random, -1000, 1000) / 512);
    if (rows * columns > 0 && !random_between(random, 0, 9))
        tensor_set_float64(&sum->values[i], random_between(random, 0, rows * columns - 1),
                           random_between(random, 0, 1) ? NAN : -INFINITY);
    str_printf(&sum->text, "i%d = Placeholder() {dtype=%s, shape=[%lld,%lld]}\n", i,
               dtype_name(type), (long long)rows, (long long)columns);
}

static void make_sum(struct sum *sum, enum dtype type, uint64_t *random)
{
    bool is_wide = !random_between(random, 0, 3);
    *sum = (struct sum){.text = STR_INIT,
                        .n_products = (int)random_between(random, 1, TERMS_MAX),
                        .n_tensors = (int)random_between(random, 0, 1),
                        .ta = random_between(random, 0, 1),
                        .tb = random_between(random, 0, 1),
                        .m = random_between(random, 0, is_wide ? 600 : 40),
                        .n = random_between(random, 1, is_wide ? 700 : 40)};
    if (sum->n_products == 1)
        sum->n_tensors = 1;
    for (int i = 0; i < sum->n_products; i++) {
        int64_t k = sum->k[i] = random_between(random, 0, is_wide ? 200 : 9);
        add_value(sum, 2 * i, type, sum->ta ? k : sum->m, sum->ta ? sum->m : k, random);
        add_value(sum, 2 * i + 1, type, sum->tb ? sum->n : k, sum->tb ? k : sum->n, random);
        str_printf(&sum->text, "p%d = MatMul(i%d, i%d) {transpose_a=%s, transpose_b=%s}\n", i,
                   2 * i, 2 * i + 1, sum->ta ? "true" : "false", sum->tb ? "true" : "false");
    }
    if (sum->n_tensors)
        add_value(sum, 2 * sum->n_products, type, sum->m, sum->n, random);
    int at = (int)random_between(random, 0, sum->n_products);
    str_append(&sum->text, "y = AddN(");
    for (int i = 0; i <= sum->n_products; i++) {
        if (i == at && sum->n_tensors)
            str_printf(&sum->text, "%si%d", i ? ", " : "", 2 * sum->n_products);
        if (i < sum->n_products)
            str_printf(&sum->text, "%sp%d", i || (at == 0 && sum->n_tensors) ? ", " : "", i);
    }
    str_append(&sum->text, ")\n");
}

/* Returns the sum; *size is the sum of the terms' magnitudes, which scales the allowed error. */
static double by_loops(const struct sum *sum, int64_t row, int64_t column, double *size)
{
    double total = 0;
    *size = 1;
    if (sum->n_tensors) {
        total = tensor_get_float64(&sum->values[2 * sum->n_products], row * sum->n + column);
        *size += fabs(total);
    }
    for (int i = 0; i < sum->n_products; i++) {
        const struct tensor *a = &sum->values[2 * i], *b = a + 1;
        for (int64_t k = 0; k < sum->k[i]; k++) {
            double term =
                tensor_get_float64(a, sum->ta ? k * sum->m + row : row * sum->k[i] + k) *
                tensor_get_float64(b, sum->tb ? column * sum->k[i] + k : k * sum->n + column);
            total += term;
            *size += fabs(term);
        }
    }
    return total;
}

static void run(const struct sum *sum, const struct graph *graph, bool dynamic, bool is_exact,
                struct tensor *result)
{
    struct error err = ERROR_INIT;
    struct edge feeds[2 * TERMS_MAX + 1], fetch = {graph_find(graph, "y")->id, 0};
    int n_feeds = 2 * sum->n_products + sum->n_tensors;
    struct step step = {.number = 1};
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE,
                                               .without = is_exact ? 1u << DEVICE_PASS_SUMS : 0}};
    struct session *session = session_new(graph, &options);
    for (int i = 0; i < n_feeds; i++) {
        char name[16];
        snprintf(name, sizeof name, "i%d", i);
        feeds[i] = (struct edge){graph_find(graph, name)->id, 0};
    }
    struct plan_request call = {.feeds = feeds,
                                .feed_values = sum->values,
                                .n_feeds = n_feeds,
                                .fetches = &fetch,
                                .n_fetches = 1};
    if (session_run(session, &call, &step, result, &err))
        fail_msg("%s", err.text);
    session_free(session);
}

static void compare(const struct sum *sum, const struct tensor *result, uint64_t seed)
{
    double unit = result->type == FLOAT32 ? 0x1p-23 : 0x1p-52, size;
    assert_int_equal(tensor_count(result), sum->m * sum->n);
    int64_t some = sum->m * sum->n / 997 + 1; /* checks only a sample of large ones */
    for (int64_t i = 0; i < sum->m * sum->n; i += some) {
        double is = tensor_get_float64(result, i);
        double ought = by_loops(sum, i / sum->n, i % sum->n, &size);
        bool agrees = isnan(ought)   ? isnan(is)
                      : isinf(ought) ? is == ought
                                     : fabs(is - ought) <= 64 * unit * size;
        if (!agrees)
            fail_msg("SUMS_SEED=%llu: element %lld is %g, not %g\n%s", (unsigned long long)seed,
                     (long long)i, is, ought, str_text((struct str *)&sum->text));
    }
}

static void they_are_sums_of_multiplications(void **state)
{
    struct seed_range seeds = seeds_of("SUMS", 60);
    int n_fused = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        uint64_t random = seed;
        struct sum sum;
        struct graph *graph;
        struct error err = ERROR_INIT;
        struct fusion fused;
        make_sum(&sum, seed % 4 ? FLOAT32 : FLOAT64, &random);
        if (graph_parse_text(sum.text.data, sum.text.n, "test", ops_registry(), &graph, &err))
            fail_msg("SUMS_SEED=%llu: %s", (unsigned long long)seed, err.text);
        fuse_by_pass("sums", graph, "y", NULL, &fused);
        n_fused += fused.n_gone > 0;
        fusion_release(&fused);
        for (int way = 0; way < 3; way++) {
            struct tensor result;
            run(&sum, graph, way == 1, way == 2, &result);
            compare(&sum, &result, seed);
            tensor_release(&result);
        }
        for (int i = 0; i < 2 * sum.n_products + sum.n_tensors; i++)
            tensor_release(&sum.values[i]);
        graph_free(graph);
        str_release(&sum.text);
    }
    assert_true(seeds.given || n_fused > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_else_wants_is_in_the_sum),
        cmocka_unit_test(they_are_sums_of_multiplications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
