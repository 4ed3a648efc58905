/* SPDX-License-Identifier: Apache-2.0
 *
 * The run of a checkpoint: its identity as text, and its name.
 */
#include <string.h>

#include "checkpoint/store/run.h"
#include "lib/unit.h"

static const char DIGITS[] = "00017f80ff0123456789abcdef0a0b0c";

static void digits_are_an_identity(void **state)
{
    static const uint8_t id[RUN_BYTES] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x01, 0x23, 0x45,
                                          0x67, 0x89, 0xab, 0xcd, 0xef, 0x0a, 0x0b, 0x0c};
    struct ckpt_run run = {.name = ""};
    char text[RUN_HEX_BYTES];
    (void)state;
    assert_true(run_parse(DIGITS, &run));
    assert_memory_equal(run.id, id, sizeof id);
    run_hex(&run, text);
    assert_string_equal(text, DIGITS);
}

static void what_is_no_identity(void **state)
{
    struct ckpt_run run;
    char text[RUN_HEX_BYTES + 2];
    (void)state;
    for (size_t n = 0; n < strlen(DIGITS); n++) { /* sized so that ASan sees an overrun */
        char *cut = strndup(DIGITS, n);
        assert_false(run_parse(cut, &run));
        free(cut);
    }
    snprintf(text, sizeof text, "%s0", DIGITS);
    assert_false(run_parse(text, &run));
    snprintf(text, sizeof text, "%s00", DIGITS);
    assert_false(run_parse(text, &run));
    for (int i = 0; i < 2 * RUN_BYTES; i++) {
        for (const char *other = "gG:/`@ -"; *other; other++) {
            snprintf(text, sizeof text, "%s", DIGITS);
            text[i] = *other;
            assert_false(run_parse(text, &run));
        }
    }
}

static void runs_are_told_apart(void **state)
{
    struct error err = ERROR_INIT;
    struct ckpt_run a, b, none = {.name = "digits"};
    struct str text = STR_INIT;
    (void)state;
    assert_int_equal(run_make(&a, NULL, &err), 0);
    assert_int_equal(run_make(&b, "digits", &err), 0);
    assert_true(run_is_known(&a) && run_equal(&a, &a));
    assert_false(run_is_known(&none) || run_equal(&a, &b) || run_equal(&b, &none));
    assert_int_equal(run_set_name(&b, NULL, &err), 0); /* it keeps its own name */
    assert_true(run_parse(DIGITS, &a) && run_parse(DIGITS, &b));
    run_print(&a, &text);
    assert_string_equal(text.data, "00017f80");
    text.n = 0;
    run_print(&b, &text);
    assert_string_equal(text.data, "digits/00017f80");
    text.n = 0;
    run_print(&none, &text);
    assert_string_equal(text.data, "-");
    str_release(&text);
}

static void names_that_none_has(void **state)
{
    char name[RUN_NAME_BYTES_MAX + 2];
    const char *wrong[] = {"", "a b", "a\n", "\x1b[1m", name};
    struct ckpt_run run = {.name = ""};
    (void)state;
    memset(name, 'n', sizeof name);
    name[RUN_NAME_BYTES_MAX + 1] = '\0';
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error err = ERROR_INIT;
        unit_assert_error(run_set_name(&run, wrong[i], &err), err, ERR_USAGE,
                          "--run-name: 1 to 100 bytes, fit to print and no blanks");
    }
    name[RUN_NAME_BYTES_MAX] = '\0';
    struct error err = ERROR_INIT;
    assert_int_equal(run_set_name(&run, name, &err), 0);
    assert_string_equal(run.name, name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_an_identity),
        cmocka_unit_test(what_is_no_identity),
        cmocka_unit_test(runs_are_told_apart),
        cmocka_unit_test(names_that_none_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
