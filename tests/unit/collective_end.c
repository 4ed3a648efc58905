/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of a collective that stop waiting, and that agree on when to end.
 */
#include "lib/reductions.h"

static void test_cancelled(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct answer answer;
    struct tensor values[MEMBERS_MAX][8];
    (void)state;
    members_start(&all, 2);
    for (int k = 0; k < 2; k++)
        fill(&values[k][0], FLOAT32, &SHAPE_SCALAR, k);
    struct collective_call call = {{"g", 1, 0}, values[0], &kind, 1, false};
    member_call(&all, 0, &call, &answer);
    struct collective *collective = all.ends[0].collective;
    assert_true(collective->cancel(collective, &answer.waiter));
    assert_false(collective->cancel(collective, &answer.waiter));
    assert_false(answer.done);
    answer_release(&answer);
    struct collective_key key = {"g", 2, 0};
    check_call(&all, &key, values, &kind, 1);
    release_all(&all, values, 1);
    members_stop(&all);
}

/* All end after the same step, and know who of them is the first. */
static void test_asked_to_end(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++)
        fill(&values[k][0], FLOAT32, &SHAPE_SCALAR, k);
    struct collective *last = all.ends[2].collective;
    assert_int_equal(collective_links_last_step(last), INT64_MAX);
    assert_int_equal(collective_links_end_after(last, 7), 7);
    check_call(&all, &(struct collective_key){"g", 7, 0}, values, &kind, 1);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(collective_links_last_step(all.ends[k].collective), 7);
        assert_int_equal(collective_links_end_after(all.ends[k].collective, 8), 7);
        assert_int_equal(collective_links_first(all.ends[k].collective), 0);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_asked_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
