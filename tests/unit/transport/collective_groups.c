/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives of groups of members, between processes and within one.
 */
#include "lib/local_collective.h"
#include "lib/reductions.h"

#define N 6
#define ELEMENTS 150000 /* goes in chunks */

/* Ranks of each group of six members, written out by hand. */
struct grouping {
    struct collective_group group;
    int n_groups, n_each;
    int ranks[3][N];
};

static const struct grouping groupings[] = {
    {{2, 1}, 3, 2, {{0, 1}, {2, 3}, {4, 5}}}, {{3, 2}, 2, 3, {{0, 2, 4}, {1, 3, 5}}},
    {{2, 3}, 3, 2, {{0, 3}, {1, 4}, {2, 5}}}, {{3, 1}, 2, 3, {{0, 1, 2}, {3, 4, 5}}},
    {{6, 1}, 1, 6, {{0, 1, 2, 3, 4, 5}}},     {{0, 0}, 1, 6, {{0, 1, 2, 3, 4, 5}}},
};

static const enum collective_kind kinds[4] = {COLLECTIVE_MEAN, COLLECTIVE_ROWS, COLLECTIVE_FIRST,
                                              COLLECTIVE_SUM};
#define N_KINDS 4

static void fill_all(struct tensor (*values)[8], int64_t small)
{
    for (int k = 0; k < N; k++) {
        struct shape large = shape_vector(ELEMENTS), few = shape_vector(small);
        for (int i = 0; i < N_KINDS; i++)
            fill(&values[k][i], FLOAT32, i == N_KINDS - 1 ? &few : &large, k);
    }
}

/* Each group gets the combination of its members' values, by rank. */
static void expect_group(const struct grouping *g, int at, struct tensor (*values)[8],
                         struct reply *replies)
{
    struct error err = ERROR_INIT;
    for (int i = 0; i < N_KINDS; i++) {
        struct tensor expected = TENSOR_INIT;
        const struct tensor *each[N];
        for (int k = 0; k < g->n_each; k++)
            each[k] = &values[g->ranks[at][k]][i];
        must(collective_combine(kinds[i], each, g->n_each, &expected, &err), &err);
        for (int k = 0; k < g->n_each; k++) {
            struct reply *reply = &replies[g->ranks[at][k]];
            reply_wait(reply);
            must(reply->err.code, &reply->err);
            assert_int_equal(reply->members, g->n_each);
            assert_true(tensor_equal(&reply->results[i], &expected));
        }
        tensor_release(&expected);
    }
}

static struct collective_call call_of(struct tensor *values, int64_t step,
                                      const struct collective_group *group)
{
    return (struct collective_call){
        .key = {"g", step, 0}, .values = values, .kinds = kinds, .n = N_KINDS, .group = *group};
}

static void test_each_group_by_itself(void **state)
{
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    (void)state;
    members_start_some_shared(&all, N, 3);
    fill_all(values, 7);
    for (size_t c = 0; c < sizeof groupings / sizeof *groupings; c++) {
        const struct grouping *g = &groupings[c];
        for (int k = 0; k < N; k++) {
            struct collective_call call = call_of(values[k], (int64_t)c, &g->group);
            member_call(&all, k, &call, &replies[k]);
        }
        for (int at = 0; at < g->n_groups; at++)
            expect_group(g, at, values, replies);
        for (int k = 0; k < N; k++)
            reply_release(&replies[k]);
    }
    release_all(&all, values, N_KINDS);
    members_stop(&all);
}

/* A group does not wait for another one, nor for a member that has left. */
static void test_a_group_waits_for_its_own(void **state)
{
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    const struct grouping alone = {{2, 1}, 1, 1, {{0}}};
    (void)state;
    members_start(&all, N);
    fill_all(values, 7);
    all.ends[1].collective->leave(all.ends[1].collective);
    struct collective_call call = call_of(values[0], 1, &alone.group);
    member_call(&all, 0, &call, &replies[0]);
    expect_group(&alone, 0, values, replies);
    reply_release(&replies[0]);
    release_all(&all, values, N_KINDS);
    members_stop(&all);
}

static void decline(struct members *all, int rank, int64_t step,
                    const struct collective_group *group)
{
    struct error err = ERROR_INIT;
    const struct collective_key key = {"g", step, 0};
    struct collective *collective = all->ends[rank].collective;
    must(collective->decline(collective, &key, group, &err), &err);
}

static void test_who_brings_nothing_is_named(void **state)
{
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    const struct collective_group threes = {3, 2};
    (void)state;
    members_start(&all, N);
    fill_all(values, 7);
    for (int64_t step = 0; step < 3; step++) { /* all of group 1 decline, so no call fails */
        for (int k = 1; k < N; k += 2)
            decline(&all, k, step, &threes);
        for (int k = 0; k < N; k += 2) {
            struct collective_call call = call_of(values[k], step, &threes);
            member_call(&all, k, &call, &replies[k]);
        }
        expect_group(&groupings[1], 0, values, replies);
        for (int k = 0; k < N; k += 2)
            reply_release(&replies[k]);
    }
    for (int k = 0; k < N; k += 2) {
        struct collective_call call = call_of(values[k], 9, &threes);
        if (k == 2)
            decline(&all, k, 9, &threes);
        else
            member_call(&all, k, &call, &replies[k]);
    }
    for (int k = 0; k < N; k += 4) {
        reply_wait(&replies[k]);
        assert_int_equal(replies[k].err.code, ERR_DATA);
        assert_string_equal(replies[k].err.text, "'g': worker:2 brings nothing: its input is dead");
        reply_release(&replies[k]);
    }
    release_all(&all, values, N_KINDS);
    members_stop(&all);
}

static void test_members_of_different_groups(void **state)
{
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    (void)state;
    members_start(&all, N);
    fill_all(values, 7);
    /* 1 counts 0 among its three members, and 0 counts 1 as the other one of its two */
    const struct collective_group group[2] = {{2, 1}, {3, 1}};
    for (int k = 0; k < 3; k++) {
        struct collective_call call = call_of(values[k], 1, &group[k > 0]);
        member_call(&all, k, &call, &replies[k]);
    }
    reply_wait(&replies[0]);
    assert_int_equal(replies[0].err.code, ERR_DATA);
    assert_true(strstr(replies[0].err.text, "'g': worker:2 is of another group than worker:0") ||
                strstr(replies[0].err.text, "'g': worker:1 brings other values than worker:0"));
    reply_wait(&replies[1]); /* 2 learns only that 0 fails */
    assert_int_equal(replies[1].err.code, ERR_DATA);
    assert_non_null(strstr(replies[1].err.text, "'g': worker:0 brings other values than"));
    member_kill(&all.ends[0]); /* so that 2 does not wait for it */
    reply_wait(&replies[2]);
    assert_int_not_equal(replies[2].err.code, 0);
    for (int k = 0; k < 3; k++)
        reply_release(&replies[k]);
    release_all(&all, values, N_KINDS);
    members_stop(&all);
}

/* ---- within a process ---- */

static void test_groups_of_a_process(void **state)
{
    struct collective *members[N];
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    (void)state;
    collective_local_new(N, members);
    fill_all(values, 7);
    for (size_t c = 0; c < sizeof groupings / sizeof *groupings; c++) {
        const struct grouping *g = &groupings[c];
        for (int k = N - 1; k >= 0; k--) {
            struct collective_call call = call_of(values[k], (int64_t)c, &g->group);
            reply_open(&replies[k], N_KINDS);
            members[k]->reduce(members[k], &call, &replies[k].waiter);
        }
        for (int at = 0; at < g->n_groups; at++)
            expect_group(g, at, values, replies);
        for (int k = 0; k < N; k++)
            reply_release(&replies[k]);
    }
    for (int k = 0; k < N; k++) {
        members[k]->free(members[k]);
        for (int i = 0; i < N_KINDS; i++)
            tensor_release(&values[k][i]);
    }
}

static void test_nothing_in_a_process(void **state)
{
    struct collective *members[N];
    struct tensor values[MEMBERS_MAX][8];
    struct reply reply;
    struct error err = ERROR_INIT;
    const struct collective_key key = {"g", 1, 0};
    const struct collective_group pairs = {2, 1};
    (void)state;
    collective_local_new(N, members);
    fill_all(values, 7);
    for (int k = 3; k < N; k++)
        must(members[k]->decline(members[k], &key, &pairs, &err), &err);
    struct collective_call call = call_of(values[2], 1, &pairs);
    reply_open(&reply, N_KINDS);
    members[2]->reduce(members[2], &call, &reply.waiter);
    reply_wait(&reply);
    assert_int_equal(reply.err.code, ERR_DATA);
    assert_string_equal(reply.err.text, "'g': member 3 brings nothing: its input is dead");
    reply_release(&reply);
    for (int k = 0; k < N; k++) {
        members[k]->free(members[k]);
        for (int i = 0; i < N_KINDS; i++)
            tensor_release(&values[k][i]);
    }
}

static void test_groups_that_do_not_come_out_even(void **state)
{
    struct error err = ERROR_INIT;
    const struct collective_group good[] = {{0, 0}, {1, 1}, {2, 3}, {3, 2}, {6, 1}, {1, 6}};
    const struct collective_group bad[] = {{4, 1}, {6, 2}, {2, 0}, {INT32_MAX, INT32_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(collective_check_group(&good[i], N, &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(collective_check_group(&bad[i], N, &err), ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_group_by_itself),
        cmocka_unit_test(test_a_group_waits_for_its_own),
        cmocka_unit_test(test_who_brings_nothing_is_named),
        cmocka_unit_test(test_members_of_different_groups),
        cmocka_unit_test(test_groups_of_a_process),
        cmocka_unit_test(test_nothing_in_a_process),
        cmocka_unit_test(test_groups_that_do_not_come_out_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
