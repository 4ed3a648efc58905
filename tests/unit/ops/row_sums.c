/* SPDX-License-Identifier: Apache-2.0
 *
 * 400,000 values of float32 added to a few rows, compared with float64: only the result's rounding
 * remains, however the values are spread over the rows, and any number of threads gives the same
 * bits. A naive sum is off by 1e-5 and more.
 */
#include "lib/session.h"

#include <math.h>

#include "base/memory.h"
#include "base/str.h"

#define N 400000
#define RELATIVE 2e-7
#define EACH 3 /* columns */
#define FEEDS 3

/* clang-format off */
static const char graph_text[] =
    "x = Placeholder() {dtype=float32, shape=[400000,3]}\n"
    "i = Placeholder() {dtype=int32, shape=[400000]}\n"
    "rows = Placeholder() {dtype=int32, shape=[]}\n"
    "wide = Cast(i) {DstT=int64}\n"
    "segments = UnsortedSegmentSum(x, i, rows)\n"
    "segments_wide = UnsortedSegmentSum(x, wide, rows)\n"
    "ten = Const() {dtype=float32, value=10}\n"
    "w = Variable() {dtype=float32, shape=[200000,3]}\n"
    "all = Const() {dtype=int32, value=[200000,3]}\n"
    "tens = Fill(all, ten)\n"
    "set = Assign(w, tens)\n"
    "added = ScatterAdd(w, i, x, ^set)\n"
    "subtracted = ScatterSub(w, i, x, ^set)\n"
    "tiles = Const() {dtype=int32, value=[100000,1]}\n"
    "tile = Const() {dtype=int32, value=[4,3]}\n"
    "tiled = TileGrad(x, tiles, tile)\n";
/* clang-format on */

static float values[N][EACH];
static int32_t indices[N];

struct lab {
    struct graph *graph;
    struct session *sessions[2]; /* with one thread, and with several */
};

static void open_lab(struct lab *lab)
{
    static struct device *devices[2];
    struct error err = ERROR_INIT;
    if (graph_parse_text(graph_text, strlen(graph_text), "test", ops_registry(), &lab->graph, &err))
        fail_msg("%s", err.text);
    for (int k = 0; k < 2; k++) {
        if (!devices[k])
            devices[k] =
                device_open("CPU", 0, &(struct device_options){.threads = 1 + 3 * k}, &err);
        struct session_options options = {
            .plan = {.kernels = ops_kernels(), .device = devices[k], .threads = 1 + 3 * k}};
        lab->sessions[k] = session_new(lab->graph, &options);
    }
    for (int64_t k = 0; k < N; k++)
        for (int j = 0; j < EACH; j++)
            values[k][j] = (float)((k * EACH + j) * 7919 % 9973) * 0.001f + 0.1f;
}

static void close_lab(struct lab *lab)
{
    session_free(lab->sessions[0]);
    session_free(lab->sessions[1]);
    graph_free(lab->graph);
}

static struct tensor run(struct lab *lab, int k, const char *fetch, int32_t rows)
{
    struct error err = ERROR_INIT;
    struct shape matrix = shape_matrix(N, EACH), vector = shape_vector(N);
    struct tensor feeds[FEEDS] = {tensor_borrow(FLOAT32, &matrix, values),
                                  tensor_borrow(INT32, &vector, indices),
                                  tensor_borrow(INT32, &SHAPE_SCALAR, &rows)};
    static const char *const names[FEEDS] = {"x", "i", "rows"};
    struct edge edges[FEEDS], fetched = {graph_find(lab->graph, fetch)->id, 0};
    for (int f = 0; f < FEEDS; f++)
        edges[f] = (struct edge){graph_find(lab->graph, names[f])->id, 0};
    struct plan_request call = {.feeds = edges,
                                .feed_values = feeds,
                                .n_feeds = FEEDS,
                                .fetches = &fetched,
                                .n_fetches = 1};
    struct step step = {.number = 1};
    struct tensor result;
    if (session_run(lab->sessions[k], &call, &step, &result, &err))
        fail_msg("%s: %s", fetch, err.text);
    return result;
}

/* Returns start + sign * the sums, in float64. */
static double *expect(int32_t rows, double start, double sign)
{
    double *sums = mem_array((size_t)rows * EACH, sizeof *sums);
    for (int64_t k = 0; k < N; k++)
        for (int j = 0; j < EACH; j++)
            sums[indices[k] * EACH + j] += (double)values[k][j];
    for (int64_t k = 0; k < (int64_t)rows * EACH; k++)
        sums[k] = start + sign * sums[k];
    return sums;
}

static void check(struct lab *lab, const char *fetch, int32_t rows, double start, double sign)
{
    double *wanted = expect(rows, start, sign);
    struct tensor result = run(lab, 0, fetch, rows), other = run(lab, 1, fetch, rows);
    assert_int_equal(tensor_count(&result), (int64_t)rows * EACH);
    for (int64_t k = 0; k < (int64_t)rows * EACH; k++) {
        double got = (double)((const float *)result.data)[k];
        if (fabs(got - wanted[k]) > RELATIVE * (start + fabs(wanted[k] - start)))
            fail_msg("%s: element %d is %.9g, not %.9g", fetch, (int)k, got, wanted[k]);
    }
    assert_true(tensor_equal(&result, &other));
    tensor_release(&result);
    tensor_release(&other);
    mem_free(wanted);
}

static void check_all(struct lab *lab, int32_t rows)
{
    check(lab, "segments", rows, 0, 1);
    check(lab, "segments_wide", rows, 0, 1);
    check(lab, "added", 200000, 10, 1);
    check(lab, "subtracted", 200000, 10, -1);
}

/* In a small table each row is the sum of many values. */
static void all_for_few_rows(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    for (int32_t rows = 1; rows <= 4000; rows = rows * 20 + 7) {
        for (int64_t k = 0; k < N; k++)
            indices[k] = (int32_t)(k * 31 % rows);
        check_all(&lab, rows);
    }
    close_lab(&lab);
}

/* In a large table few rows are sums of many: every other value goes to one of three, or one of
 * eight places to a single row; the other rows get one or two values. */
static void many_for_few_rows_of_a_large_table(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    for (int place = 0; place < 8; place++) {
        for (int64_t k = 0; k < N; k++)
            indices[k] = k % 8 == place ? 77777 : (int32_t)(k * 17 % 200000);
        check_all(&lab, 200000);
    }
    for (int64_t k = 0; k < N; k++)
        indices[k] = k % 2 ? (int32_t)(k % 3) : (int32_t)(k / 2);
    check_all(&lab, 200000);
    close_lab(&lab);
}

static void tiles_are_summed(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    for (int64_t k = 0; k < N; k++)
        indices[k] = (int32_t)(k % 4);
    check(&lab, "tiled", 4, 0, 1);
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_for_few_rows),
        cmocka_unit_test(many_for_few_rows_of_a_large_table),
        cmocka_unit_test(tiles_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
