/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of random nests of conditionals and loops, as a script makes them, compared with
 * central differences; their bits do not depend on how many iterations run at once; second
 * derivatives where there is no loop. GRADIENTS is how many programs (default 300), GRADIENTS_SEED
 * the first one's seed.
 */
#include <math.h>
#include <stdio.h>

#include "lib/nest_script.h"
#include "lib/scripts.h"
#include "lib/session.h"

struct point {
    double x, w[N_W];
};

static struct fixture open(uint64_t seed, int parallel)
{
    char seed_text[32], parallel_text[32];
    struct fixture f = {.err = ERROR_INIT};
    struct script_options options = {.seed = (int64_t)seed};
    snprintf(seed_text, sizeof seed_text, "seed=%llu", (unsigned long long)seed);
    snprintf(parallel_text, sizeof parallel_text, "parallel=%d", parallel);
    const char *parameters[] = {seed_text, parallel ? parallel_text : NULL, NULL};
    f.graph = scripts_try(nest_script, parameters, &options, &f.err);
    if (!f.graph && parallel && strstr(f.err.text, "does not look at")) /* it has no loop */
        f.graph = scripts_try(nest_script, (const char *[]){seed_text, NULL}, &options, &f.err);
    if (!f.graph || graph_check(f.graph, &f.err))
        fail_msg("GRADIENTS_SEED=%llu: %s", (unsigned long long)seed, f.err.text);
    struct session_options session = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    f.session = session_new(f.graph, &session);
    return f;
}

/* The elements of a float64 tensor of the program. */
static void get(struct fixture *f, const char *name, const struct point *at, double *into, int n)
{
    struct edge fetch, feeds[2];
    struct shape shape = shape_vector(N_W);
    struct point copy = *at;
    struct tensor values[] = {tensor_borrow(FLOAT64, &SHAPE_SCALAR, &copy.x),
                              tensor_borrow(FLOAT64, &shape, copy.w)};
    struct tensor result;
    struct step step = {.number = 1};
    if (graph_parse_edge(f->graph, name, &fetch, &f->err) ||
        graph_parse_edge(f->graph, "x", &feeds[0], &f->err) ||
        graph_parse_edge(f->graph, "w", &feeds[1], &f->err))
        fail_msg("%s", f->err.text);
    struct plan_request call = {
        .feeds = feeds, .feed_values = values, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1};
    if (session_run(f->session, &call, &step, &result, &f->err))
        fail_msg("%s: %s", name, f->err.text);
    assert_int_equal(tensor_count(&result), n);
    for (int i = 0; i < n; i++)
        into[i] = tensor_get_float64(&result, i);
    tensor_release(&result);
}

static double get_at(struct fixture *f, const char *name, const struct point *at,
                     const struct point *direction, double h)
{
    struct point moved = {.x = at->x + h * direction->x};
    double value;
    for (int i = 0; i < N_W; i++)
        moved.w[i] = at->w[i] + h * direction->w[i];
    get(f, name, &moved, &value, 1);
    return value;
}

/* The derivative of a scalar along a direction; false if three points show a jump or a corner
 * nearby. */
static bool difference(struct fixture *f, const char *name, const struct point *at,
                       const struct point *direction, double *slope)
{
    const double h = 1e-5;
    double low = get_at(f, name, at, direction, -h), high = get_at(f, name, at, direction, h);
    *slope = (high - low) / (2 * h);
    return fabs(high + low - 2 * get_at(f, name, at, direction, 0)) < 1e-7;
}

static void expect_near(uint64_t seed, const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 2e-6 * (1 + fabs(want))))
        fail_msg("GRADIENTS_SEED=%llu: %s is %.10g, by differences %.10g", (unsigned long long)seed,
                 what, got, want);
}

static const struct point along_x = {.x = 1}, along_w = {.w = {0.3, -0.7, 0.5}};

/* Returns how many derivatives could be compared. */
static int check_program(uint64_t seed, const struct point *at)
{
    struct fixture f = open(seed, 0);
    double gx, gw[N_W], want;
    int n = 0;
    get(&f, "gx", at, &gx, 1);
    get(&f, "gw", at, gw, N_W);
    if (difference(&f, "y", at, &along_x, &want)) {
        expect_near(seed, "dy/dx", gx, want);
        n++;
    }
    if (difference(&f, "y", at, &along_w, &want)) {
        double slope = 0;
        for (int i = 0; i < N_W; i++)
            slope += gw[i] * along_w.w[i];
        expect_near(seed, "dy/dw", slope, want);
        n++;
    }
    if (n && graph_entry(f.graph, "second")->n_edges && difference(&f, "gx", at, &along_x, &want)) {
        double gxx;
        get(&f, "gxx", at, &gxx, 1);
        expect_near(seed, "d2y/dx2", gxx, want);
    }
    fixture_close(&f);
    return n;
}

static int n_programs(int otherwise)
{
    const char *count = getenv("GRADIENTS");
    return count ? atoi(count) : otherwise;
}

static uint64_t first_seed(void)
{
    const char *first = getenv("GRADIENTS_SEED");
    return first ? strtoull(first, NULL, 10) : 1;
}

static struct point point_of(uint64_t seed)
{
    struct point p;
    p.x = (double)(unit_random(&seed) % 4000) / 1000 - 2;
    for (int i = 0; i < N_W; i++)
        p.w[i] = (double)(unit_random(&seed) % 3000) / 1000 - 1.5;
    return p;
}

static void gradients_agree_with_differences(void **state)
{
    (void)state;
    int n = n_programs(300), compared = 0;
    for (int i = 0; i < n; i++) {
        struct point at = point_of(first_seed() + (uint64_t)i);
        compared += check_program(first_seed() + (uint64_t)i, &at);
    }
    assert_true(compared > 2 * n * 9 / 10);
}

static void parallel_iterations_change_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < n_programs(300) / 6; i++) {
        uint64_t seed = first_seed() + (uint64_t)i;
        struct point at = point_of(seed);
        struct fixture one = open(seed, 1), many = open(seed, 32);
        double a[2 + N_W], b[2 + N_W];
        get(&one, "y", &at, a, 1);
        get(&many, "y", &at, b, 1);
        get(&one, "gx", &at, a + 1, 1);
        get(&many, "gx", &at, b + 1, 1);
        get(&one, "gw", &at, a + 2, N_W);
        get(&many, "gw", &at, b + 2, N_W);
        if (memcmp(a, b, sizeof a) != 0)
            fail_msg("GRADIENTS_SEED=%llu", (unsigned long long)seed);
        fixture_close(&one);
        fixture_close(&many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_agree_with_differences),
                                       cmocka_unit_test(parallel_iterations_change_no_bit)};
    return cmocka_run_group_tests_name("grad_random", tests, NULL, NULL);
}
