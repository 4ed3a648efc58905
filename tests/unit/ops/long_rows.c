/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CPU computes by vectors where rows are long: ArgMax and ArgMin along the last axis
 * against a search element by element, with equal elements and NaN; FloorDiv and Mod of float32
 * against the definition by an exact remainder.
 */
#include "lib/session.h"

#include <math.h>

#include "lib/random.h"

#define ROWS 40
#define COLUMNS_MAX 1100

/* clang-format off */
static const char graph_text[] =
    "x = Placeholder() {dtype=float32}\n"
    "y = Placeholder() {dtype=float32}\n"
    "axis = Const() {dtype=int32, value=1}\n"
    "argmax = ArgMax(x, axis) {output_type=int64}\n"
    "argmin = ArgMin(x, axis) {output_type=int64}\n"
    "floordiv = FloorDiv(x, y)\n"
    "mod = Mod(x, y)\n";
/* clang-format on */

static float x[ROWS * COLUMNS_MAX], y[ROWS * COLUMNS_MAX];

static struct tensor run(const char *fetch, int64_t rows, int64_t columns)
{
    static struct graph *graph;
    static struct session *session;
    struct error err = ERROR_INIT;
    if (!graph) {
        if (graph_parse_text(graph_text, strlen(graph_text), "test", ops_registry(), &graph, &err))
            fail_msg("%s", err.text);
        struct device *device = device_open("CPU", 0, &(struct device_options){.threads = 2}, &err);
        session = session_new(
            graph, &(struct session_options){
                       .plan = {.kernels = ops_kernels(), .device = device, .threads = 2}});
    }
    struct shape shape = shape_matrix(rows, columns);
    struct tensor feeds[] = {tensor_borrow(FLOAT32, &shape, x), tensor_borrow(FLOAT32, &shape, y)};
    struct edge fed[] = {{graph_find(graph, "x")->id, 0}, {graph_find(graph, "y")->id, 0}};
    struct edge fetched = {graph_find(graph, fetch)->id, 0};
    struct plan_request call = {
        .feeds = fed, .feed_values = feeds, .n_feeds = 2, .fetches = &fetched, .n_fetches = 1};
    struct tensor result;
    if (session_run(session, &call, &(struct step){.number = 1}, &result, &err))
        fail_msg("%s: %s", fetch, err.text);
    return result;
}

/* Numbers from few, or of all magnitudes; rarely NaN, infinities and zeros. */
static float number(uint64_t *r)
{
    static const float rare[] = {NAN, INFINITY, -INFINITY, 0, -0.0F, 1e-45F, 3e38F, 4194304, 0.1F};
    switch (random_between(r, 0, 7)) {
    case 0:
        return random_between(r, 0, 49) ? 1 : rare[random_between(r, 0, 8)];
    case 1:
        return ldexpf((float)random_between(r, -500, 500), (int)random_between(r, -30, 30));
    default:
        return (float)random_between(r, -100, 100) / 10;
    }
}

static void fill(uint64_t seed)
{
    uint64_t r = seed;
    for (int i = 0; i < ROWS * COLUMNS_MAX; i++) {
        x[i] = number(&r);
        y[i] = number(&r);
    }
}

/* The first of the best elements, and the first NaN before all numbers. */
static void check_best(const char *fetch, int64_t columns, float sign)
{
    struct tensor result = run(fetch, ROWS, columns);
    for (int64_t row = 0; row < ROWS; row++) {
        const float *line = x + row * columns;
        int64_t best = 0;
        for (int64_t i = 1; i < columns && !isnan(line[best]); i++)
            if (isnan(line[i]) || sign * line[i] > sign * line[best])
                best = i;
        assert_int_equal(tensor_get_int64(&result, row), best);
    }
    tensor_release(&result);
}

static void best_of_a_row(void **state)
{
    (void)state;
    for (int64_t columns = 1; columns <= COLUMNS_MAX; columns += columns < 500 ? 71 : 13) {
        fill((uint64_t)columns);
        check_best("argmax", columns, 1);
        check_best("argmin", columns, -1);
    }
}

static bool is_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* x = quotient * y + rest, with a rest of y's sign that is less than y: as NumPy has it. */
static void quotients_by_remainders(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        fill(seed);
        struct tensor quotients = run("floordiv", ROWS, COLUMNS_MAX);
        struct tensor rests = run("mod", ROWS, COLUMNS_MAX);
        for (int i = 0; i < ROWS * COLUMNS_MAX; i++) {
            float rest = fmodf(x[i], y[i]), quotient = (x[i] - rest) / y[i];
            if (y[i] == 0) {
                quotient = x[i] / y[i];
            } else if (rest != 0 && (rest < 0) != (y[i] < 0)) {
                rest += y[i];
                quotient -= 1;
            } else if (rest == 0) {
                rest = copysignf(rest, y[i]);
            }
            float whole = floorf(quotient);
            quotient = quotient == 0 ? copysignf(quotient, x[i] / y[i])
                                     : whole + (quotient - whole > 0.5F ? 1 : 0);
            if (!is_same(((const float *)quotients.data)[i], quotient) ||
                !is_same(((const float *)rests.data)[i], rest))
                fail_msg("of %a and %a: %a and %a, not %a and %a", (double)x[i], (double)y[i],
                         (double)((const float *)quotients.data)[i],
                         (double)((const float *)rests.data)[i], (double)quotient, (double)rest);
        }
        tensor_release(&quotients);
        tensor_release(&rests);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_of_a_row),
        cmocka_unit_test(quotients_by_remainders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
