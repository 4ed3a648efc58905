/* SPDX-License-Identifier: Apache-2.0
 *
 * Device names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "graph/device_name.h"

static struct device_name parsed(const char *text)
{
    struct device_name name;
    struct error err = ERROR_INIT;
    if (device_name_parse(&name, text, &err))
        fail_msg("%s", err.text);
    return name;
}

static void expect_print(const char *text, const char *canonical)
{
    struct device_name name = parsed(text);
    struct str out = STR_INIT;
    device_name_print(&out, &name);
    assert_string_equal(str_text(&out), canonical);
    struct device_name again = parsed(canonical);
    assert_true(device_name_equal(&name, &again));
    str_release(&out);
}

static void test_canonical_form(void **state)
{
    (void)state;
    expect_print("", "");
    expect_print("/", "");
    expect_print("/job:*/device:*", "");
    expect_print("/task:3/job:worker", "/job:worker/task:3");
    expect_print("/cpu:0", "/device:CPU:0");
    expect_print("/GPU:1", "/device:CUDA:1");
    expect_print("/device:cpu:*", "/device:CPU");
    expect_print("/job:a_1/replica:2/task:*/device:CPU:12",
                 "/job:a_1/replica:2/task:*/device:CPU:12");
}

static void expect_refused(const char *text, const char *part)
{
    struct device_name name;
    struct error err = ERROR_INIT;
    assert_int_equal(device_name_parse(&name, text, &err), ERR_DATA);
    if (!strstr(err.text, part))
        fail_msg("%s: '%s' lacks '%s'", text, err.text, part);
}

static void test_malformed_names_are_refused(void **state)
{
    (void)state;
    expect_refused("job:ps", "start with '/'");
    expect_refused("/jib:ps", "unknown part 'jib'");
    expect_refused("/job:1ps", "'1ps' is not a job");
    expect_refused("/job:", "is not a job");
    expect_refused("/task:-1", "'-1' is not a task");
    expect_refused("/task:99999999999999999999", "is not a task");
    expect_refused("/job:a/job:b", "given twice");
    expect_refused("/cpu:0/device:CPU:0", "given twice");
    expect_refused("/job:a//task:0", "unknown part ''");
    expect_refused("/device:CPU:x", "is not a device");
}

static void test_specialises(void **state)
{
    (void)state;
    struct device_name full = parsed("/job:ps/task:1/device:CPU:0");
    const char *yes[] = {"",        "/job:ps",     "/task:1",
                         "/task:*", "/device:CPU", "/job:ps/task:1/device:CPU:0"};
    const char *no[] = {"/job:worker", "/task:0", "/device:CUDA", "/device:CPU:1", "/replica:0"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        struct device_name pattern = parsed(yes[i]);
        assert_true(device_name_specialises(&full, &pattern));
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        struct device_name pattern = parsed(no[i]);
        assert_false(device_name_specialises(&full, &pattern));
    }
    struct device_name every = parsed("/task:*"), open = parsed("");
    assert_false(device_name_specialises(&open, &every));
}

static void expect_merge(const char *a, const char *b, const char *merged)
{
    struct device_name name = parsed(a), other = parsed(b), want;
    struct error err = ERROR_INIT;
    if (!merged) {
        struct device_name before = name;
        assert_int_equal(device_name_merge(&name, &other, &err), ERR_DATA);
        assert_true(device_name_equal(&name, &before));
        return;
    }
    want = parsed(merged);
    assert_int_equal(device_name_merge(&name, &other, &err), 0);
    assert_true(device_name_equal(&name, &want));
}

static void test_merge(void **state)
{
    (void)state;
    expect_merge("/job:ps", "/gpu:1", "/job:ps/device:CUDA:1");
    expect_merge("", "/job:ps/task:1", "/job:ps/task:1");
    expect_merge("/job:ps/task:1", "", "/job:ps/task:1");
    expect_merge("/task:*", "/task:1", "/task:1");
    expect_merge("/task:1", "/task:*", "/task:1");
    expect_merge("/device:CPU", "/cpu:0", "/cpu:0");
    expect_merge("/task:0", "/task:1", NULL);
    expect_merge("/job:ps", "/job:worker/task:0", NULL);
    expect_merge("/cpu:0", "/gpu:0", NULL);
    expect_merge("/cpu:0", "/cpu:1", NULL);
    expect_merge("/task:*%2", "/task:1%2", "/task:1%2");
    expect_merge("/task:1%2", "/task:*%2", "/task:1%2");
    expect_merge("/task:*", "/task:1%2", "/task:1%2");
    expect_merge("/task:1%2", "/task:*", "/task:1%2");
    expect_merge("/task:0%2", "/task:1%2", NULL);
    expect_merge("/task:*%2", "/task:1%3", NULL);
    expect_merge("/task:1%2", "/task:1", NULL);
}

static void test_groups(void **state)
{
    (void)state;
    for (int size = 1; size <= DEVICE_GROUP_MAX; size += size < 9 ? 1 : 203)
        for (int member = -1; member < size; member++) {
            int task = device_group_task(size, member);
            assert_true(device_task_is_many(task));
            assert_int_equal(device_group_size(task), size);
            assert_int_equal(device_group_member(task), size > 1 ? member : 0);
        }
    assert_int_equal(device_group_task(1, 0), DEVICE_EVERY);
    static const char *const texts[] = {"/job:w/task:1%2", "/job:w/task:*%1024", "/job:w/task:*"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct device_name name = parsed(texts[i]);
        struct str text = STR_INIT;
        device_name_print(&text, &name);
        assert_string_equal(str_text(&text), texts[i]);
        str_release(&text);
    }
    static const char *const bad[] = {"/task:2%2", "/task:1%1", "/task:%2", "/task:1%",
                                      "/task:0%1025"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct device_name name;
        struct error err = ERROR_INIT;
        assert_int_equal(device_name_parse(&name, bad[i], &err), ERR_DATA);
    }
    struct device_name one = parsed("/job:w/task:1%2"), any = parsed("/task:*%2");
    assert_true(device_name_specialises(&one, &any));
    assert_false(device_name_specialises(&any, &one));
}

static void test_full_and_same_task(void **state)
{
    (void)state;
    struct device_name a = parsed("/job:w/task:0/cpu:0"), b = parsed("/job:w/task:0/gpu:0");
    struct device_name every = parsed("/job:w/task:*/cpu:0"), part = parsed("/job:w/cpu:0");
    assert_true(device_name_is_full(&a));
    assert_true(device_name_is_full(&every));
    assert_false(device_name_is_full(&part));
    assert_true(device_name_same_task(&a, &b));
    assert_false(device_name_same_task(&every, &every));
    assert_false(device_name_same_task(&part, &part));
    struct device_name open = device_name_open();
    assert_true(device_name_is_open(&open));
    assert_false(device_name_is_open(&part));
}

static void test_patterns(void **state)
{
    struct arena arena = ARENA_INIT;
    struct device_name name = parsed("/device:gpu:1/task:2/job:ps");
    (void)state;
    assert_string_equal(device_name_text(&arena, &name), "/job:ps/task:2/device:CUDA:1");
    assert_string_equal(device_pattern_text(&arena, "/task:*/cpu:0", 12), "/task:12/cpu:0");
    assert_string_equal(device_pattern_text(&arena, "*", 0), "0");
    assert_string_equal(device_pattern_text(&arena, "/cpu:0", 3), "/cpu:0");
    assert_null(device_pattern_text(&arena, "/task:*/cpu:*", 1));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_form), cmocka_unit_test(test_malformed_names_are_refused),
        cmocka_unit_test(test_specialises),    cmocka_unit_test(test_merge),
        cmocka_unit_test(test_groups),         cmocka_unit_test(test_full_and_same_task),
        cmocka_unit_test(test_patterns),
    };
    return cmocka_run_group_tests_name("device_name", tests, NULL, NULL);
}
