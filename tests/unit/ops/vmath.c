/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions compared with double precision, densely over the interesting range of each.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/random.h"
#include "ops/math/vmath.h"

#define SAMPLES 200000

/* The distance in units of the last place of the exact result as a float. */
static double ulps(float got, double exact)
{
    float rounded = (float)exact;
    if (isnan(exact) || isinf(rounded) || isnan(got) || isinf(got))
        return (isnan(exact) && isnan(got)) || got == rounded ? 0 : INFINITY;
    float size = fabsf(rounded);
    double unit = (double)nextafterf(size, INFINITY) - (double)size;
    return fabs((double)got - exact) / unit;
}

static double worst_linear(float (*f)(float), double (*exact)(double), double low, double high)
{
    double worst = 0;
    for (int i = 0; i <= SAMPLES; i++) {
        float x = (float)(low + (high - low) * i / SAMPLES);
        double error = ulps(f(x), exact((double)x));
        worst = error > worst ? error : worst;
    }
    return worst;
}

/* Over all magnitudes: every 4099th float of both signs. */
static double worst_bits(float (*f)(float), double (*exact)(double))
{
    double worst = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 16411) {
        float x = vmath_float((uint32_t)bits);
        double error = ulps(f(x), exact((double)x));
        worst = error > worst ? error : worst;
    }
    return worst;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static float sine(float x)
{
    return vmath_sin_quadrant(x, 0);
}

static float cosine(float x)
{
    return vmath_sin_quadrant(x, 1);
}

static void test_usual_range(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float (*f)(float);
        double (*exact)(double);
        double low, high;
    } rows[] = {
        {"exp", vmath_exp, exp, -105, 90},
        {"exp near 0", vmath_exp, exp, -1, 1},
        {"log", vmath_log, log, 0, 4},
        {"log1p", vmath_log1p, log1p, -1, 2},
        {"sigmoid", vmath_sigmoid, sigmoid, -105, 20},
        {"tanh", vmath_tanh, tanh, -10, 10},
        {"tanh near 0", vmath_tanh, tanh, -1, 1},
        {"erf", vmath_erf, erf, -5, 5},
        {"sin", sine, sin, -1e6, 1e6},
        {"sin near 0", sine, sin, -7, 7},
        {"cos", cosine, cos, -1e6, 1e6},
        {"cos near 0", cosine, cos, -7, 7},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double worst = worst_linear(rows[i].f, rows[i].exact, rows[i].low, rows[i].high);
        if (worst > 2.5) {
            print_error("%s: %g units in the last place\n", rows[i].name, worst);
            failed++;
        }
    }
    assert_int_equal(failed, 0);
}

static void test_all_magnitudes(void **state)
{
    (void)state;
    assert_true(worst_bits(vmath_exp, exp) <= 2.5);
    assert_true(worst_bits(vmath_log, log) <= 2.5);
    assert_true(worst_bits(vmath_log1p, log1p) <= 2.5);
    assert_true(worst_bits(vmath_sigmoid, sigmoid) <= 2.5);
    assert_true(worst_bits(vmath_tanh, tanh) <= 2.5);
    assert_true(worst_bits(vmath_erf, erf) <= 2.5);
}

/* As in <math.h>, including the sign of a zero and of an infinity. */
static void test_singular_points(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float (*f)(float);
        double (*exact)(double);
    } rows[] = {{"exp", vmath_exp, exp},
                {"log", vmath_log, log},
                {"log1p", vmath_log1p, log1p},
                {"sigmoid", vmath_sigmoid, sigmoid},
                {"tanh", vmath_tanh, tanh},
                {"erf", vmath_erf, erf},
                {"sin", sine, sin},
                {"cos", cosine, cos}};
    const float points[] = {0, 1.4e-45f, 1e-40f, 1.17549435e-38f, 1e-30f,  1, 0.5f, 1.625f,
                            3, 100,      3e5f,   FLT_MAX,         INFINITY};
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < 2 * sizeof points / sizeof *points; k++) {
            float x = k % 2 ? -points[k / 2] : points[k / 2], got = rows[i].f(x);
            double exact = rows[i].exact((double)x);
            bool is_angle = rows[i].f == sine || rows[i].f == cosine;
            if (is_angle && fabsf(x) >= VMATH_ANGLE_MAX)
                continue;
            if (ulps(got, exact) > 2.5 || (!isnan(exact) && !signbit(got) != !signbit(exact))) {
                print_error("%s(%g): %g, not %g\n", rows[i].name, (double)x, (double)got, exact);
                failed++;
            }
        }
    assert_int_equal(failed, 0);
}

/* Bases and exponents of all magnitudes, whole numbers, numbers near 1 and special ones. */
static float any_number(uint64_t *state)
{
    static const float special[] = {0,       -0.0f,   INFINITY, -INFINITY, NAN,        1,
                                    -1,      1e-45f,  -1e-45f,  FLT_MAX,   -FLT_MAX,   0.5f,
                                    4194304, 8388607, -8388607, 16777216,  4194304.5f, -3};
    switch (random_between(state, 0, 5)) {
    case 0:
        return vmath_float((uint32_t)unit_random(state));
    case 1:
        return (float)random_between(state, -20, 20);
    case 2:
        return special[random_between(state, 0, sizeof special / sizeof *special - 1)];
    case 3:
        return 1 + (float)random_between(state, -1000000, 1000000) * 1e-9f;
    default:
        return (float)random_between(state, -1000, 1000) / 100;
    }
}

/* Rounded as the exact power, but for a few in a million that are halfway between two floats. */
static void test_powers(void **state)
{
    (void)state;
    uint64_t random = 1;
    int n = 1000000, n_differ = 0;
    for (int i = 0; i < n; i++) {
        float x = any_number(&random), y = any_number(&random), got = vmath_pow(x, y);
        double exact = pow((double)x, (double)y);
        if (ulps(got, exact) > 1 || (!isnan(exact) && !signbit(got) != !signbit(exact)))
            fail_msg("%a to the power %a: %a, not %a", (double)x, (double)y, (double)got, exact);
        n_differ += got != (float)exact && !isnan(exact);
    }
    assert_true(n_differ <= n / 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_range),
        cmocka_unit_test(test_all_magnitudes),
        cmocka_unit_test(test_singular_points),
        cmocka_unit_test(test_powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
