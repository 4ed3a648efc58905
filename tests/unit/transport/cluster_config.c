/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters from TF_CONFIG: their contents, and the errors of wrong ones.
 */
#include "transport/job/cluster_config.h"

#include <stdio.h>

#include "lib/unit.h"

#define JOBS "\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:2\", \"c:3\"]}"

static void test_json(void **state)
{
    static const char *const good[] = {
        "{" JOBS ", \"task\": {\"type\": \"worker\", \"index\": 1}}",
        " {\"task\": {\"index\": \"1\", \"trial\": {\"a\": [1.5e-3, true, [], {}]}, \"type\": "
        "\"worker\"}, \"environment\": \"cloud\",\n" JOBS "} "};
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{" JOBS,
                                      "{" JOBS "} x",
                                      "{\"cluster\": {\"ps\": \"a:1\"}}",
                                      "{\"cluster\": {\"ps\": [\"a:1 b\"]}}",
                                      "{\"cluster\": {\"p s\": [\"a:1\"]}}",
                                      "{\"cluster\": {\"ps\": [\"a\"]}}",
                                      "{\"cluster\": {\"ps\": [\"a:1\", ]}}",
                                      "{" JOBS ", \"task\": {\"index\": -1}}",
                                      "{" JOBS ", \"task\": {\"index\": true}}",
                                      "{" JOBS ", " JOBS "}",
                                      "{\"task\": {\"type\": \"ps\", \"index\": 0}}",
                                      "{\"cluster\": {\"ps\": [\"a:1\", 7]}}"};
    char task[TASK_TEXT_BYTES];
    struct error err = ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct cluster c = {0};
        assert_int_equal(cluster_from_config(&c, good[i], task, &err), 0);
        assert_string_equal(task, "worker:1");
        assert_int_equal(cluster_count(&c, "worker"), 2);
        assert_string_equal(cluster_find(&c, "worker", 1)->address, "c:3");
        cluster_release(&c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cluster c = {0};
        assert_int_equal(cluster_from_config(&c, bad[i], task, &err), ERR_CONFIG);
        assert_string_equal(task, "");
        cluster_release(&c);
    }
}

/* The chief is the first worker, wherever it is in the JSON. */
static void test_chief(void **state)
{
    static const char *const configs[] = {
        "{\"cluster\": {\"worker\": [\"b:2\", \"c:3\"], \"chief\": [\"a:1\"]}, \"task\": %s}",
        "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:2\", \"c:3\"]}, \"task\": %s}"};
    static const struct {
        const char *json, *task;
    } tasks[] = {{"{\"type\": \"chief\", \"index\": 0}", "worker:0"},
                 {"{\"type\": \"worker\", \"index\": 0}", "worker:1"},
                 {"{\"type\": \"worker\", \"index\": 1}", "worker:2"},
                 {"{}", ""}};
    char json[256], task[TASK_TEXT_BYTES];
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct cluster c = {0};
        struct error err = ERROR_INIT;
        snprintf(json, sizeof json, configs[i / 4], tasks[i % 4].json);
        if (cluster_from_config(&c, json, task, &err))
            fail_msg("%s", err.text);
        assert_string_equal(task, tasks[i % 4].task);
        assert_string_equal(cluster_find(&c, "worker", 0)->address, "a:1");
        assert_string_equal(cluster_find(&c, "worker", 2)->address, "c:3");
        cluster_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_chief)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
