/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "lib/unit.h"

static void str_appends(void **unused)
{
    (void)unused;
    struct str s = STR_INIT;
    assert_string_equal(str_text(&s), "");
    str_append(&s, "ab");
    str_append_char(&s, 'c');
    str_append_bytes(&s, "d\0e", 3);
    assert_int_equal(s.n, 6);
    assert_memory_equal(s.data, "abcd\0e", 7);
    str_clear(&s);
    str_printf(&s, "%s-%0*d", "x", 3000, 1);
    assert_int_equal(s.n, 3002);
    str_release(&s);
    assert_string_equal(str_text(&s), "");
}

/* The digits of the shortest text that %g can print and strtod reads back. */
static int fewest_digits(double value, bool narrow)
{
    char text[64];
    for (int digits = 1; digits < 18; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (narrow ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            return digits;
    }
    return 18;
}

static int digits_of(const char *text)
{
    char digits[64];
    int n = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (n || *text != '0'))
            digits[n++] = *text;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

static void floats_round_trip_and_are_short(void **unused)
{
    (void)unused;
    struct str s = STR_INIT;
    uint64_t state = 7;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = unit_random(&state);
        uint32_t half = (uint32_t)bits;
        float f;
        double d;
        memcpy(&f, &half, sizeof f);
        memcpy(&d, &bits, sizeof d);
        if (isfinite(f) && f != 0) {
            str_clear(&s);
            str_append_float32(&s, f);
            assert_true(strtof(s.data, NULL) == f);
            assert_int_equal(digits_of(s.data), fewest_digits((double)f, true));
        }
        if (isfinite(d) && d != 0) {
            str_clear(&s);
            str_append_float64(&s, d);
            assert_true(strtod(s.data, NULL) == d);
            assert_int_equal(digits_of(s.data), fewest_digits(d, false));
        }
    }
    str_release(&s);
}

static void floats_look_as_agreed(void **unused)
{
    (void)unused;
    static const struct {
        double value;
        const char *narrow, *wide;
    } rows[] = {
        {0.003, "0.003", "0.003"},
        {1, "1", "1"},
        {-0.0, "-0", "-0"},
        {1e-8, "1e-08", "1e-08"},
        {INFINITY, "inf", "inf"},
        {-INFINITY, "-inf", "-inf"},
        {NAN, "nan", "nan"},
        {0.1, "0.1", "0.1"},
        {16777216, "16777216", "16777216"},
    };
    struct str s = STR_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_clear(&s);
        str_append_float32(&s, (float)rows[i].value);
        str_append_char(&s, ' ');
        str_append_float64(&s, rows[i].value);
        char expected[80];
        snprintf(expected, sizeof expected, "%s %s", rows[i].narrow, rows[i].wide);
        assert_string_equal(s.data, expected);
    }
    str_release(&s);
}

static void numbers_are_whole_texts(void **unused)
{
    (void)unused;
    int64_t i = 0;
    double d = 0;
    assert_true(str_to_int64("-9223372036854775808", &i) && i == INT64_MIN);
    assert_true(str_to_int64("9223372036854775807", &i) && i == INT64_MAX);
    assert_true(str_to_float64("1e3", &d) && d == 1000);
    assert_true(str_to_float64("-.5", &d) && d == -0.5);
    static const char *const wrong[] = {"", " 1", "1 ", "x", "1x", "-", "1.", ".", "e5", "--1"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_false(str_to_int64(wrong[k], &i));
    assert_false(str_to_int64("9223372036854775808", &i));
    static const char *const wrong_floats[] = {"", " 1", "1 ", "x", "1x", "-", ".", "e5", "--1"};
    for (size_t k = 0; k < sizeof wrong_floats / sizeof *wrong_floats; k++)
        assert_false(str_to_float64(wrong_floats[k], &d));
}

static void units(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"0", 0},        {"4096", 4096},    {"64k", 65536},          {"1.5G", 1610612736},
                 {"2M", 2097152}, {"1t", 1LL << 40}, {"8191T", 8191LL << 40}, {"0.5k", 512}};
    static const struct {
        const char *text;
        double seconds;
    } times[] = {{"30s", 30},     {"2m", 120},  {"1h", 3600},  {"250ms", 0.25},
                 {"50us", 50e-6}, {"1.5", 1.5}, {"2d", 172800}};
    int64_t bytes;
    double seconds;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_true(str_to_bytes(sizes[i].text, &bytes) && bytes == sizes[i].bytes);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_true(str_to_seconds(times[i].text, &seconds) &&
                    fabs(seconds - times[i].seconds) < 1e-12);
    static const char *const wrong[] = {"",    "k",   "-1",   "-1k",      "1kk", "1 k",
                                        "nan", "inf", "1e30", "8388608T", "5x",  " 5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(str_to_bytes(wrong[i], &bytes));
    int64_t n;
    assert_true(str_to_budget("5", &n, &seconds) && n == 5 && seconds == 0);
    assert_true(str_to_budget("0/1.5h", &n, &seconds) && n == 0 && seconds == 5400);
    static const char *const wrong_budgets[] = {
        "",      "-1",   "5/",
        "/1h",   "5/1k", "5/-1s",
        "5 /1h", "1.5",  "99999999999999999999999999999999999/1h"};
    for (size_t i = 0; i < sizeof wrong_budgets / sizeof *wrong_budgets; i++)
        assert_false(str_to_budget(wrong_budgets[i], &n, &seconds));
    static const char *const wrong_times[] = {"",    "s",   "-1s",  "1k",     "nan",
                                              "1 s", "inf", "1e20", "20000d", "1e300h"};
    assert_true(str_to_seconds("10000d", &seconds));
    for (size_t i = 0; i < sizeof wrong_times / sizeof *wrong_times; i++)
        assert_false(str_to_seconds(wrong_times[i], &seconds));
}

static void numbers_do_not_depend_on_the_locale(void **unused)
{
    (void)unused;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        skip();
    double d = 0;
    struct str s = STR_INIT;
    str_append_float64(&s, 0.5);
    assert_string_equal(s.data, "0.5");
    assert_true(str_to_float64("0.5", &d) && d == 0.5);
    str_release(&s);
    setlocale(LC_NUMERIC, "C");
}

static void text_helpers(void **unused)
{
    (void)unused;
    assert_true(str_starts("hidden/W", "hidden"));
    assert_false(str_starts("hid", "hidden"));
    assert_true(str_ends("x.npy.gz", ".gz"));
    assert_false(str_ends("gz", ".gz"));
    static const char *const names[] = {"report", "restore", "resume", "run", NULL};
    assert_string_equal(str_nearest("reprot", names), "report");
    assert_string_equal(str_nearest("restor", names), "restore");
    static const char *const rules[] = {"Elu", "Relu", "Relu6", NULL};
    assert_string_equal(str_nearest("Rlu", rules), "Relu");
    assert_string_equal(str_nearest("elu", rules), "Elu");
    assert_null(str_nearest("completely-different", names));
    assert_null(str_nearest("device", (const char *const[]){"reduce", NULL}));
    struct str quoted = STR_INIT;
    static const char *const words[] = {"a-b.c", "", "it's", "two\nlines", "$HOME"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        str_append_quoted(&quoted, words[i]);
        str_append_char(&quoted, ' ');
    }
    assert_string_equal(str_text(&quoted), "a-b.c '' 'it'\\''s' 'two\nlines' '$HOME' ");
    str_release(&quoted);
    char longer[300];
    memset(longer, 'r', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    str_nearest(longer, names);
}

static void escapes_what_a_terminal_might_obey(void **unused)
{
    (void)unused;
    static const char *const rows[][2] = {{"W/b é", "W/b é"},
                                          {"a\x1b[31m", "a\\x1b[31m"},
                                          {"a\nb\t", "a\\x0ab\\x09"},
                                          {"\xc2\x9b"
                                           "1",
                                           "\\xc2\\x9b1"},
                                          {"\xff\x7f", "\\xff\\x7f"},
                                          {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str s = STR_INIT;
        str_append(&s, "x");
        str_append_escaped(&s, rows[i][0]);
        assert_string_equal(str_text(&s) + 1, rows[i][1]);
        str_release(&s);
    }
    char small[6];
    assert_int_equal(str_escape(small, sizeof small,
                                "ab\x1b"
                                "c",
                                4),
                     2); /* no partial escape */
    assert_string_equal(small, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_what_a_terminal_might_obey),
        cmocka_unit_test(str_appends),
        cmocka_unit_test(floats_round_trip_and_are_short),
        cmocka_unit_test(floats_look_as_agreed),
        cmocka_unit_test(numbers_are_whole_texts),
        cmocka_unit_test(units),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(text_helpers),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
