/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of words, and files of settings whose text may continue on further lines.
 */
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "lib/unit.h"

static char path[] = "/tmp/words-XXXXXX";

static void write_file(const char *text, size_t n)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    fclose(file);
}

static int take_setting(void *context, const struct setting *setting, struct error *err)
{
    struct str *all = context;
    if (!strcmp(setting->word, "bad"))
        return error_set(err, ERR_DATA, "'%s' is no good", setting->text);
    str_printf(all, "%d[%s|%s]", setting->line, setting->word, setting->text);
    return 0;
}

static const char *read_text(const char *text, struct str *all, struct error *err)
{
    str_clear(all);
    write_file(text, strlen(text));
    settings_read(path, take_setting, all, err);
    return str_text(all);
}

static void test_settings(void **state)
{
    struct error err = ERROR_INIT;
    struct str all = STR_INIT;
    (void)state;
    assert_string_equal(read_text("", &all, &err), "");
    assert_string_equal(read_text("\n# no\n\n", &all, &err), "");
    assert_string_equal(read_text("a", &all, &err), "1[a|]");
    assert_string_equal(read_text("a b  c # d\n\ne \n", &all, &err), "1[a|b  c # d]3[e|]");
    assert_string_equal(read_text("a b\n c\n  d\n \ne f\n", &all, &err), "1[a|b\nc\n d\n]5[e|f]");
    assert_string_equal(read_text("a\n b\n#\n no\nc d\n e", &all, &err), "1[a|b]5[c|d\ne]");
    assert_int_equal(err.code, 0);
    str_release(&all);
}

static void test_errors_name_the_first_line(void **state)
{
    struct error err = ERROR_INIT;
    struct str all = STR_INIT, text = STR_INIT;
    (void)state;
    read_text("a b\n c\nbad x\n y\ne f", &all, &err);
    str_printf(&text, "%s:3: 'x y' is no good", path);
    assert_int_equal(err.code, ERR_DATA);
    assert_string_equal(err.text, text.data);
    assert_string_equal(str_text(&all), "1[a|b\nc]");
    error_clear(&err);
    write_file("a\0b", 3);
    assert_int_equal(settings_read(path, take_setting, &all, &err), ERR_DATA);
    error_clear(&err);
    assert_int_equal(settings_read("/nowhere/x", take_setting, &all, &err), ERR_NOINPUT);
    str_release(&all);
    str_release(&text);
}

/* ---- tables ---- */

struct object {
    const char *text;
    bool flag;
    int count;
    double seconds;
};

static const struct setting_row rows[] = {
    {"text", setting_text, offsetof(struct object, text)},
    {"flag", setting_flag, offsetof(struct object, flag)},
    {"count", setting_count, offsetof(struct object, count)},
    {"seconds", setting_seconds, offsetof(struct object, seconds)},
    {0}};

static int set(struct object *object, char *word, char *text, struct error *err)
{
    const struct setting setting = {.word = word, .text = text, .line = 1};
    error_clear(err);
    return setting_take(rows, "thing", object, &setting, err);
}

static void test_a_table_sets_what_is_of_its_type(void **state)
{
    char *const wrong_counts[] = {"", "0", "-1", "1.5", "2147483648", "3x"};
    char *const wrong_times[] = {"", "0", "0s", "-1s", "soon", "3 s"};
    struct object object = {0};
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(set(&object, "text", "a b", &err), 0);
    assert_int_equal(set(&object, "flag", "", &err), 0);
    assert_int_equal(set(&object, "count", "2147483647", &err), 0);
    assert_int_equal(set(&object, "seconds", "1500ms", &err), 0);
    assert_string_equal(object.text, "a b");
    assert_true(object.flag);
    for (size_t i = 0; i < sizeof wrong_counts / sizeof *wrong_counts; i++)
        assert_int_equal(set(&object, "count", wrong_counts[i], &err), ERR_DATA);
    assert_int_equal(object.count, INT32_MAX);
    assert_true(object.seconds == 1.5);
    for (size_t i = 0; i < sizeof wrong_times / sizeof *wrong_times; i++)
        assert_int_equal(set(&object, "seconds", wrong_times[i], &err), ERR_DATA);
    assert_string_equal(err.text, "'3 s' is not what this can be set to");
    unit_assert_error(set(&object, "colour", "red", &err), err, ERR_DATA,
                      "'colour' is no word of a thing");
}

static int take_words(void *context, struct words *words, struct error *err)
{
    struct str *all = context;
    (void)err;
    str_printf(all, "%d:%d:%s ", words->line, words->n, words->word[0]);
    return 0;
}

static void test_words(void **state)
{
    struct error err = ERROR_INIT;
    struct str all = STR_INIT;
    (void)state;
    write_file("a b # c\n\n  d\n", 13);
    assert_int_equal(words_read(path, take_words, &all, &err), 0);
    assert_string_equal(all.data, "1:2:a 3:1:d ");
    str_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_errors_name_the_first_line),
        cmocka_unit_test(test_a_table_sets_what_is_of_its_type),
        cmocka_unit_test(test_words),
    };
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
