/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal numbers against the C library's strtod and strtof, which round correctly in glibc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"

static uint64_t state = 1;

static uint64_t draw(void) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* The C library returns infinity where we report that the number is too large. */
static void check(const char *text)
{
    double wide = 0, wide_expected = strtod(text, NULL);
    float narrow = 0, narrow_expected = strtof(text, NULL);
    enum number_status wide_status = number_float64(text, strlen(text), &wide);
    enum number_status narrow_status = number_float32(text, strlen(text), &narrow);
    bool wide_ok = wide_expected - wide_expected == 0
                       ? !wide_status && !memcmp(&wide, &wide_expected, sizeof wide)
                       : wide_status == NUMBER_RANGE;
    bool narrow_ok = narrow_expected - narrow_expected == 0
                         ? !narrow_status && !memcmp(&narrow, &narrow_expected, sizeof narrow)
                         : narrow_status == NUMBER_RANGE;
    if (!wide_ok || !narrow_ok)
        fail_msg("'%.60s...': %.17g (%d) for %.17g, %.9g (%d) for %.9g", text, wide, wide_status,
                 wide_expected, (double)narrow, narrow_status, (double)narrow_expected);
}

static void random_digits_agree_with_strtod(void **unused)
{
    (void)unused;
    char text[64];
    for (int i = 0; i < 700000; i++) {
        int digits = 1 + (int)(draw() % 19);
        uint64_t mantissa = draw();
        for (int d = digits; d < 19; d++)
            mantissa /= 10;
        int exponent = (int)(draw() % 700) - 350;
        if (i % 3 == 0)
            exponent = (int)(draw() % 40) - 20;
        snprintf(text, sizeof text, "%s%llue%d", draw() & 1 ? "-" : "",
                 (unsigned long long)mantissa, exponent);
        check(text);
    }
}

static void printed_doubles_read_back(void **unused)
{
    (void)unused;
    char text[64];
    for (int i = 0; i < 500000; i++) {
        uint64_t bits = draw();
        double value;
        memcpy(&value, &bits, sizeof value);
        if (value - value != 0)
            continue;
        snprintf(text, sizeof text, i & 1 ? "%.17g" : "%.20e", value);
        check(text);
        double again;
        assert_int_equal(number_float64(text, strlen(text), &again), NUMBER_OK);
        assert_memory_equal(&again, &value, sizeof value);
    }
}

/* Halfway between neighbouring floats and doubles, a little above and a little below. */
static void ties_round_to_even(void **unused)
{
    (void)unused;
    static char text[2000];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = i % 4 ? draw() & 0x7fffffffffffffff : draw() >> 14;
        double low, high;
        if (i % 2) {
            uint32_t short_bits = (uint32_t)bits & 0x7fffffff;
            float a;
            memcpy(&a, &short_bits, sizeof a);
            float b = __builtin_nextafterf(a, __builtin_inff());
            low = (double)a / 2, high = (double)b / 2;
            if (high - high != 0)
                continue;
            snprintf(text, sizeof text, "%.1200f", low + high);
        } else {
            memcpy(&low, &bits, sizeof low);
            high = __builtin_nextafter(low, __builtin_inf());
            if (high - high != 0)
                continue;
            long double middle = ((long double)low + (long double)high) / 2;
            snprintf(text, sizeof text, "%.1200Lf", middle);
        }
        check(text);
        size_t n = strlen(text);
        strcpy(text + n, "1");
        check(text);
        for (char *c = text + n - 1; c >= text && (*c == '0' || *c == '.'); c--)
            if (*c == '0')
                *c = '9';
        check(text);
    }
}

static void edges_of_the_range(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0.0e999",
                                        "5e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "2e-324",
                                        "1e-400",
                                        "1.7976931348623157e308",
                                        "1.7976931348623158e308",
                                        "1.7976931348623159e308",
                                        "1e309",
                                        "3.4028235e38",
                                        "3.4028236e38",
                                        "1e39",
                                        "1.401298464324817e-45",
                                        "7.006492321624085e-46",
                                        "7.0064923216240853e-46",
                                        "2.2250738585072011e-308",
                                        "2.2250738585072014e-308",
                                        "1.17549429e-38",
                                        "9007199254740993",
                                        "9007199254740992.99999999999999999999",
                                        "00000000000000000000000001",
                                        ".5",
                                        "5.",
                                        "1e99999999999999999999",
                                        "1e-99999999999999999999",
                                        "16777217",
                                        "1E5",
                                        "+7"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i]);
}

static void what_is_not_a_number(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"",      "-",       "+",  ".",    "e5",    "1e", "1e+",
                                        "1.2.3", "abc",     "1x", "0x10", " 1",    "1 ", "1,5",
                                        "--1",   "infinit", "na", "nano", "1e5.0", "in"};
    double wide;
    float narrow;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(number_float64(texts[i], strlen(texts[i]), &wide), NUMBER_INVALID);
        assert_int_equal(number_float32(texts[i], strlen(texts[i]), &narrow), NUMBER_INVALID);
    }
    assert_int_equal(number_float64("-Infinity", 9, &wide), NUMBER_OK);
    assert_true(wide == -__builtin_inf());
    assert_int_equal(number_float32("NaN", 3, &narrow), NUMBER_OK);
    assert_true(narrow != narrow);
    assert_int_equal(number_float64("12345", 2, &wide), NUMBER_OK);
    assert_true(wide == 12);
}

static void whole_numbers(void **unused)
{
    (void)unused;
    int64_t value;
    uint64_t size;
    assert_int_equal(number_int64("-9223372036854775808", 20, &value), NUMBER_OK);
    assert_true(value == INT64_MIN);
    assert_int_equal(number_int64("9223372036854775808", 19, &value), NUMBER_RANGE);
    assert_int_equal(number_int64("99999999999999999999999999", 26, &value), NUMBER_RANGE);
    assert_int_equal(number_int64("1.0", 3, &value), NUMBER_INVALID);
    assert_int_equal(number_int64("-", 1, &value), NUMBER_INVALID);
    assert_int_equal(number_uint64("18446744073709551615", 20, &size), NUMBER_OK);
    assert_true(size == UINT64_MAX);
    assert_int_equal(number_uint64("18446744073709551616", 20, &size), NUMBER_RANGE);
    assert_int_equal(number_uint64("-1", 2, &size), NUMBER_RANGE);
    assert_int_equal(number_uint64("-0", 2, &size), NUMBER_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_digits_agree_with_strtod),
        cmocka_unit_test(printed_doubles_read_back),
        cmocka_unit_test(ties_round_to_even),
        cmocka_unit_test(edges_of_the_range),
        cmocka_unit_test(what_is_not_a_number),
        cmocka_unit_test(whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
