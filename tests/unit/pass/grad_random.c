/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of random nests of conditionals and loops, as a script makes them, against central
 * differences; the same bits however many iterations run at once; second derivatives where there
 * is no loop. GRADIENTS is how many programs (default 300), GRADIENTS_SEED the first one's seed.
 */
#include <math.h>
#include <stdio.h>

#include "lib/scripts.h"
#include "lib/session.h"

#define N_W 3

/* A state of two scalars and a vector, all bounded, goes through random statements. */
static const char program[] =
    "local _ = D.seed\n"
    "local x = Placeholder{dtype = float64, shape = {}, name = 'x'}\n"
    "local w = Placeholder{dtype = float64, shape = {3}, name = 'w'}\n"
    "local matrix = Reshape(w, {3, 1}) * Reshape(Sin(w * x), {1, 3})\n"
    "local left, has_loop = 14, false\n"
    "local function state(s, change)\n"
    "  return {a = change.a or s.a, b = change.b or s.b, v = change.v or s.v, n = s.n}\n"
    "end\n"
    "local simple = {\n"
    "  function(s) return {a = Sin(s.a * s.b + 0.3)} end,\n"
    "  function(s) return {b = Tanh(s.a - s.b)} end,\n"
    "  function(s) return {a = s.b, b = s.a} end,\n"
    "  function(s) return {a = Cos(s.b) * 0.5 + s.a * 0.4} end,\n"
    "  function(s) return {v = Tanh(s.v * s.a + 0.1)} end,\n"
    "  function(s) return {a = Sum(s.v * s.v, {0}) / 3 - s.b} end,\n"
    "  function(s) return {v = Sin(s.v) * s.b + w / 4} end,\n"
    "  function(s) return {b = x * 0.5 + Sin(s.b) * 0.5} end,\n"
    "  function(s) return {a = Maximum(s.a, s.b * 0.7)} end,\n"
    "  function(s) return {v = Gather(s.v, {2, 0, 0}) + Gather(s.v, {1, 1, 2}) * 0.3} end,\n"
    "  function(s) return {v = Tanh(Reshape(MatMul(Reshape(s.v, {1, 3}), matrix), {3}))} end,\n"
    "  function(s) return {b = Const(0.25, {dtype = float64})} end,\n"
    "}\n"
    "local block\n"
    "local function choice(s, depth)\n"
    "  local t = {n = s.n}\n"
    "  local function branch()\n"
    "    return function() local r = block(s, depth - 1) return r.a, r.b, r.v end\n"
    "  end\n"
    "  t.a, t.b, t.v = cond(Less(s.a, s.b), branch(), branch())\n"
    "  return t\n"
    "end\n"
    "local function loop(s, depth)\n"
    "  has_loop = true\n"
    "  local limit = s.n and math.random(2) == 1 and s.n or math.random(0, 3)\n"
    "  local early, use = math.random(3) == 1, math.random(4)\n"
    "  local parallel = math.random(3) == 1 and 1 or 10\n"
    "  local _, a, b, v = while_loop(function(i, a)\n"
    "    local more = Less(i, limit)\n"
    "    return early and LogicalAnd(more, Less(a, 0.6)) or more\n"
    "  end, function(i, a, b, v)\n"
    "    local r = block({a = a, b = b, v = v, n = i}, depth - 1)\n"
    "    return i + 1, r.a, r.b, r.v\n"
    "  end, {0, s.a, s.b, s.v}, {parallel_iterations = D.parallel or parallel})\n"
    "  local all = {a = a, b = b, v = v}\n"
    "  if use == 1 then all.a = nil elseif use == 2 then all.v = nil end\n"
    "  return state(s, all)\n"
    "end\n"
    "function block(s, depth)\n"
    "  for i = 1, math.random(3) do\n"
    "    local kind = math.random(5)\n"
    "    left = left - 1\n"
    "    if left < 0 then break end\n"
    "    if kind == 1 and depth > 0 then s = choice(s, depth)\n"
    "    elseif kind == 2 and depth > 0 then s = loop(s, depth)\n"
    "    else s = state(s, simple[math.random(#simple)](s)) end\n"
    "  end\n"
    "  return s\n"
    "end\n"
    "local s = {a = Sin(x), b = Sum(w, {0}) * 0.2, v = Tanh(w)}\n"
    "for i = 1, 3 do s = block(s, 3) end\n"
    "local result = s.a + 0.5 * s.b + Sum(s.v, {0}) + 0.1 * Sin(x) * Sum(Square(w), {0})\n"
    "y = result + 0\n"
    "local dx, dw = table.unpack(gradients(y, {x, w}))\n"
    "gx = dx + 0\n"
    "gw = dw + 0\n"
    "gxx = has_loop and ZerosLike(x) or gradients(gx, x) + 0\n"
    "entry.second = has_loop and {} or {gxx}\n";

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
    f.graph = scripts_try(program, parameters, &options, &f.err);
    if (!f.graph && parallel && strstr(f.err.text, "does not look at")) /* it has no loop */
        f.graph = scripts_try(program, (const char *[]){seed_text, NULL}, &options, &f.err);
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
    struct session_call call = {
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

/* The derivative of a scalar along a direction; false where it jumps or has a corner nearby, which
 * the three points show. */
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

/* Counts the derivatives that could be compared. */
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
