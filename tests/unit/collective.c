/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives between processes, with members in threads that have nothing in common but links.
 */
#include "lib/reductions.h"

#include <time.h>

static void check_sums(struct members *all)
{
    static const int64_t sizes[] = {0, 1, 3, 1000, 16384, 16385, 100003, 700001};
    static const enum collective_kind kinds[1] = {COLLECTIVE_SUM};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct tensor values[MEMBERS_MAX][8];
        struct shape shape = shape_vector(sizes[s]);
        struct collective_key key = {"gradients", (int64_t)s, 0};
        for (int k = 0; k < all->n; k++)
            fill(&values[k][0], FLOAT32, &shape, k);
        check_call(all, &key, values, kinds, 1);
        release_all(all, values, 1);
    }
}

static void test_sums_of_all_sizes(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        struct members all;
        members_start(&all, n);
        check_sums(&all);
        members_stop(&all);
    }
}

static void test_sums_when_some_share_memory(void **state)
{
    (void)state;
    for (int n_shared = 0; n_shared < 4; n_shared++) {
        struct members all;
        members_start_some_shared(&all, 4, n_shared);
        check_sums(&all);
        members_stop(&all);
    }
}

static void test_all_types(void **state)
{
    static const enum dtype types[] = {FLOAT64, BFLOAT16, FLOAT16, INT8,   INT16, INT32,
                                       INT64,   UINT8,    UINT16,  UINT32, UINT64};
    static const enum collective_kind kinds[2] = {COLLECTIVE_SUM, COLLECTIVE_SUM};
    struct members all;
    (void)state;
    members_start(&all, 3);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        struct tensor values[MEMBERS_MAX][8];
        struct shape small = shape_matrix(3, 5), large = shape_matrix(300, 401);
        struct collective_key key = {"a/b", 1, t};
        for (int k = 0; k < 3; k++) {
            fill(&values[k][0], types[t], &small, k);
            fill(&values[k][1], types[t], &large, k);
        }
        check_call(&all, &key, values, kinds, 2);
        release_all(&all, values, 2);
    }
    members_stop(&all);
}

/* Against arithmetic rather than our own function: 1 + 2 + 3 + 4, in bfloat16 256 + 1 + 1 + 1
 * (added in float32, 259 is rounded once, to 260; added in bfloat16 it would stay 256). */
static void test_values(void **state)
{
    struct members all;
    (void)state;
    members_start(&all, 4);
    struct tensor values[MEMBERS_MAX][8];
    struct answer answers[4];
    enum collective_kind kinds[2] = {COLLECTIVE_SUM, COLLECTIVE_SUM};
    struct error err = ERROR_INIT;
    for (int k = 0; k < 4; k++) {
        must(tensor_alloc(&values[k][0], FLOAT32, &SHAPE_SCALAR, &err), &err);
        must(tensor_alloc(&values[k][1], BFLOAT16, &SHAPE_SCALAR, &err), &err);
        tensor_set_float64(&values[k][0], 0, k + 1);
        tensor_set_float64(&values[k][1], 0, k ? 1 : 256);
        struct collective_call call = {{"n", 1, 0}, values[k], kinds, 2, false};
        member_call(&all, k, &call, &answers[k]);
    }
    for (int k = 0; k < 4; k++) {
        answer_wait(&answers[k]);
        assert_true(tensor_get_float64(&answers[k].results[0], 0) == 10);
        assert_true(tensor_get_float64(&answers[k].results[1], 0) == 260);
        answer_release(&answers[k]);
    }
    release_all(&all, values, 2);
    members_stop(&all);
}

/* All members yield a value of that type, which the last one also holds itself. */
static void check_yielded(struct members *all, enum dtype type)
{
    static const enum collective_kind sum = COLLECTIVE_SUM;
    struct tensor values[MEMBERS_MAX][8], kept = TENSOR_INIT, before = TENSOR_INIT;
    const struct tensor *each[MEMBERS_MAX];
    struct answer answers[MEMBERS_MAX];
    struct tensor expected = TENSOR_INIT;
    struct error err = ERROR_INIT;
    struct shape shape = shape_matrix(300, 2001);
    for (int k = 0; k < all->n; k++) {
        fill(&values[k][0], type, &shape, k);
        each[k] = &values[k][0];
    }
    must(collective_combine(sum, each, all->n, &expected, &err), &err);
    tensor_share(&kept, each[all->n - 1]);
    must(tensor_copy(&before, &kept, &err), &err);
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = {{"g", 1, type}, values[k], &sum, 1, true};
        member_call(all, k, &call, &answers[k]);
    }
    for (int k = 0; k < all->n; k++) {
        answer_wait(&answers[k]);
        must(answers[k].err.code, &answers[k].err);
        assert_true(tensor_equal(&answers[k].results[0], &expected));
        assert_int_equal(answers[k].results[0].data == values[k][0].data, k != all->n - 1);
        answer_release(&answers[k]);
    }
    assert_true(tensor_equal(&kept, &before));
    tensor_release(&before);
    tensor_release(&kept);
    tensor_release(&expected);
    release_all(all, values, 1);
}

/* The sum takes a value's memory, wherever the member stands among those that are added, unless
 * somebody else has the value. */
static void test_values_that_are_yielded(void **state)
{
    static const enum dtype types[] = {FLOAT32, FLOAT64, BFLOAT16, UINT8, INT16, INT64};
    (void)state;
    for (int n = 2; n <= 5; n += 3)
        for (int n_shared = 0; n_shared <= n; n_shared += n) {
            struct members all;
            members_start_some_shared(&all, n, n_shared);
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                check_yielded(&all, types[t]);
            members_stop(&all);
        }
}

static void test_other_kinds(void **state)
{
    static const enum collective_kind kinds[5] = {COLLECTIVE_FIRST, COLLECTIVE_ROWS, COLLECTIVE_SUM,
                                                  COLLECTIVE_FIRST, COLLECTIVE_FIRST};
    static const char *const texts[MEMBERS_MAX] = {"none", "one", "", "three"};
    struct members all;
    struct error err = ERROR_INIT;
    (void)state;
    members_start(&all, 4);
    for (int round = 0; round < 3; round++) {
        struct tensor values[MEMBERS_MAX][8];
        struct collective_key key = {"mixed", round, 0};
        struct shape large = shape_matrix(700, 1001), text = shape_vector(1);
        for (int k = 0; k < 4; k++) {
            struct shape rows = shape_matrix(k * round, 5);
            fill(&values[k][0], FLOAT32, &large, k);
            fill(&values[k][1], INT64, &rows, k);
            fill(&values[k][2], FLOAT64, &large, k);
            fill(&values[k][3], INT32, &SHAPE_SCALAR, k);
            must(tensor_from_strings(&values[k][4], &text, &texts[k], NULL, &err), &err);
        }
        check_call(&all, &key, values, kinds, 5);
        release_all(&all, values, 5);
    }
    members_stop(&all);
}

/* Many at once, begun in another order by each member. */
static void test_several_in_flight(void **state)
{
    enum { CALLS = 24, N = 3 };
    static struct answer answers[N][CALLS];
    static struct tensor values[N][CALLS];
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    (void)state;
    members_start(&all, N);
    for (int c = 0; c < CALLS; c++)
        for (int k = 0; k < N; k++) {
            int which = (c * 7 + k * 5) % CALLS;
            struct shape shape = shape_vector(which % 2 ? 10 : 200000);
            struct collective_call call = {
                {which % 3 ? "a" : "b", which / 3, 0}, &values[k][which], &kind, 1, false};
            call.key.iteration = (uint64_t)which % 3;
            fill(&values[k][which], FLOAT32, &shape, k + which);
            member_call(&all, k, &call, &answers[k][which]);
        }
    for (int c = 0; c < CALLS; c++) {
        const struct tensor *each[N] = {&values[0][c], &values[1][c], &values[2][c]};
        struct tensor expected = TENSOR_INIT;
        struct error err = ERROR_INIT;
        must(collective_combine(kind, each, N, &expected, &err), &err);
        for (int k = 0; k < N; k++) {
            answer_wait(&answers[k][c]);
            must(answers[k][c].err.code, &answers[k][c].err);
            assert_true(tensor_equal(&answers[k][c].results[0], &expected));
            answer_release(&answers[k][c]);
        }
        tensor_release(&expected);
        for (int k = 0; k < N; k++)
            tensor_release(&values[k][c]);
    }
    members_stop(&all);
}

/* One has less to do; the others go on, with sums of those who are left. */
static void test_a_member_leaves(void **state)
{
    static const enum collective_kind kinds[2] = {COLLECTIVE_SUM, COLLECTIVE_FIRST};
    struct members all;
    struct answer answers[MEMBERS_MAX];
    struct tensor values[MEMBERS_MAX][8], expected[2] = {TENSOR_INIT, TENSOR_INIT};
    struct error err = ERROR_INIT;
    (void)state;
    members_start(&all, 4);
    struct shape shape = shape_vector(300000);
    for (int k = 0; k < 4; k++) {
        fill(&values[k][0], FLOAT32, &shape, k);
        fill(&values[k][1], FLOAT32, &shape, k);
    }
    struct collective_key key = {"g", 1, 0};
    check_call(&all, &key, values, kinds, 2);
    for (int k = 1; k < 4; k++) { /* some have begun when it leaves */
        struct collective_call call = {{"g", 2, 0}, values[k], kinds, 2, false};
        if (k == 3)
            all.ends[0].collective->leave(all.ends[0].collective);
        member_call(&all, k, &call, &answers[k]);
    }
    for (int i = 0; i < 2; i++) {
        const struct tensor *each[3] = {&values[1][i], &values[2][i], &values[3][i]};
        must(collective_combine(kinds[i], each, 3, &expected[i], &err), &err);
    }
    for (int k = 1; k < 4; k++) {
        answer_wait(&answers[k]);
        must(answers[k].err.code, &answers[k].err);
        assert_int_equal(answers[k].members, 3);
        for (int i = 0; i < 2; i++)
            assert_true(tensor_equal(&answers[k].results[i], &expected[i]));
        answer_release(&answers[k]);
    }
    member_kill(&all.ends[0]); /* it has left: no loss */
    for (int k = 1; k < 4; k++) {
        struct collective_call call = {{"g", 3, 0}, values[k], kinds, 2, false};
        member_call(&all, k, &call, &answers[k]);
    }
    for (int k = 1; k < 4; k++) {
        answer_wait(&answers[k]);
        must(answers[k].err.code, &answers[k].err);
        answer_release(&answers[k]);
    }
    assert_int_equal(collective_links_first(all.ends[3].collective), 1);
    tensor_release(&expected[0]);
    tensor_release(&expected[1]);
    release_all(&all, values, 2);
    members_stop(&all);
}

static void expect_loss(struct answer *answer, const char *task, const char *name)
{
    answer_wait(answer);
    assert_int_equal(answer->err.code, ERR_UNAVAILABLE);
    if (!strstr(answer->err.text, task) || !strstr(answer->err.text, name))
        fail_msg("%s", answer->err.text);
    answer_release(answer);
}

static void test_a_member_is_lost(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct answer answers[3], later;
    struct tensor values[MEMBERS_MAX][8];
    struct shape shape = shape_vector(1000000);
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++)
        fill(&values[k][0], FLOAT32, &shape, k);
    for (int k = 0; k < 2; k++) {
        struct collective_call call = {{"hidden/W", 9, 0}, values[k], &kind, 1, false};
        member_call(&all, k, &call, &answers[k]);
    }
    double start = loop_now();
    member_kill(&all.ends[2]);
    expect_loss(&answers[0], "worker:2", "waiting for 'hidden/W'");
    expect_loss(&answers[1], "worker:2", "waiting for 'hidden/W'");
    assert_true(loop_now() - start < 2);
    struct collective_call call = {{"later", 10, 0}, values[0], &kind, 1, false};
    member_call(&all, 0, &call, &later);
    expect_loss(&later, "worker:2", "'later'");
    release_all(&all, values, 1);
    members_stop(&all);
}

static bool is_answered(void *context)
{
    return ((struct answer *)context)->done;
}

/* A member that comes back while the others end is told why they do, rather than waited with. */
static void test_nobody_joins_a_group_that_failed(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct error err = ERROR_INIT;
    struct answer answer;
    struct tensor value;
    (void)state;
    members_start_some_shared(&all, 2, 0);
    const char *tasks[] = {all.tasks[0], all.tasks[1]};
    const char *addresses[] = {all.addresses[0], all.addresses[1]};
    struct hub_options options = {.peers = {.task = tasks[0],
                                            .folder = all.folder,
                                            .incarnation = 8,
                                            .lease = 5,
                                            .no_shared_memory = true}};
    struct collective_meet meet = {.addresses = addresses, .seconds = 10};
    struct collective_call call = {{"g", 1, 0}, &value, &kind, 1, false};
    struct member_end *end = &all.ends[0];
    member_kill(end);
    end->hub = hub_new(&options, &err);
    assert_non_null(end->hub);
    end->collective = collective_links_new(end->hub, tasks, 2, 0);
    fill(&value, FLOAT32, &SHAPE_SCALAR, 0);
    collective_links_meet(end->collective, &meet,
                          &err); /* or not: the link was open for a moment */
    member_call(&all, 0, &call, &answer);
    assert_true(loop_run_until(hub_loop(end->hub), is_answered, &answer, 3));
    expect_loss(&answer, "worker:1 at unix:w1, incarnation 7: worker:0 at ", "'g'");
    end->collective->free(end->collective);
    hub_free(end->hub);
    end->hub = NULL;
    tensor_release(&value);
    members_stop(&all);
}

/* Who gives up says why, and the others pass it on. */
static void test_a_member_fails(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct answer answers[3];
    struct tensor values[MEMBERS_MAX][8];
    struct error why = ERROR_INIT;
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++) {
        fill(&values[k][0], FLOAT32, &SHAPE_SCALAR, k);
        struct collective_call call = {{"g", 1, 0}, values[k], &kind, 1, false};
        if (k != 1)
            member_call(&all, k, &call, &answers[k]);
    }
    error_set(&why, ERR_DATA, "node 'x': Log: of -1");
    collective_links_abort(all.ends[1].collective, &why);
    expect_loss(&answers[0], "worker:1", "Log: of -1");
    expect_loss(&answers[2], "worker:1", "Log: of -1");
    release_all(&all, values, 1);
    members_stop(&all);
}

static void test_members_that_disagree(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct answer answers[2];
    struct tensor values[MEMBERS_MAX][8];
    (void)state;
    members_start(&all, 2);
    for (int k = 0; k < 2; k++) {
        struct shape shape = shape_vector(3 + k);
        fill(&values[k][0], FLOAT32, &shape, k);
        struct collective_call call = {{"g", 1, 0}, values[k], &kind, 1, false};
        member_call(&all, k, &call, &answers[k]);
    }
    for (int k = 0; k < 2; k++) {
        answer_wait(&answers[k]);
        assert_int_equal(answers[k].err.code, ERR_DATA);
        assert_non_null(strstr(answers[k].err.text, k ? "worker:0 brings other values than worker:1"
                                                      : "worker:1 brings other values"));
        assert_non_null(strstr(answers[k].err.text, k ? "float32[4]" : "float32[3]"));
        answer_release(&answers[k]);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_all_sizes),
        cmocka_unit_test(test_sums_when_some_share_memory),
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_that_are_yielded),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_several_in_flight),
        cmocka_unit_test(test_a_member_leaves),
        cmocka_unit_test(test_a_member_is_lost),
        cmocka_unit_test(test_nobody_joins_a_group_that_failed),
        cmocka_unit_test(test_a_member_fails),
        cmocka_unit_test(test_members_that_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
