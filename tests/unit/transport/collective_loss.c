/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives between processes when members leave, are lost, fail or disagree.
 */
#include "base/time.h"
#include "lib/combine.h"
#include "lib/reductions.h"

/* These ranks call, and all get answers. */
static void call_all(struct members *all, const struct collective_call *calls, const int *ranks,
                     int n, struct reply *replies)
{
    for (int i = 0; i < n; i++)
        member_call(all, ranks[i], &calls[ranks[i]], &replies[ranks[i]]);
    for (int i = 0; i < n; i++) {
        struct reply *reply = &replies[ranks[i]];
        reply_wait(reply);
        must(reply->err.code, &reply->err);
        assert_int_equal(reply->members, n);
    }
}

static void release_replies(struct reply *replies, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        reply_release(&replies[ranks[i]]);
}

/* A member's answer equals, bit for bit, what one process combines from the values of members first
 * to end - 1. */
static void check_reply(const struct reply *reply, const struct collective_call *calls, int first,
                        int end)
{
    for (int i = 0; i < reply->n; i++) {
        const struct tensor *each[MEMBERS_MAX];
        struct tensor expected;
        struct error err = ERROR_INIT;
        for (int k = first; k < end; k++)
            each[k - first] = &calls[k].values[i];
        must(collective_combine(calls[first].kinds[i], each, end - first, &expected, &err), &err);
        assert_true(tensor_equal(&reply->results[i], &expected));
        tensor_release(&expected);
    }
}

/* One member has less to do; the others go on with their own sums, also when it is gone. */
static void test_a_member_leaves(void **state)
{
    static const enum collective_kind kinds[3] = {COLLECTIVE_SUM, COLLECTIVE_FIRST,
                                                  COLLECTIVE_MEAN_ROWS};
    static const int stay[3] = {1, 2, 3}, all_ranks[4] = {0, 1, 2, 3};
    enum { ROUNDS = 4 };
    struct members all;
    struct reply replies[ROUNDS][MEMBERS_MAX];
    struct tensor values[ROUNDS][MEMBERS_MAX][8];
    struct collective_call calls[ROUNDS][MEMBERS_MAX];
    (void)state;
    members_start(&all, 4);
    struct shape shape = shape_vector(300000), rows = shape_matrix(3, 40000);
    for (int r = 0; r < ROUNDS; r++) /* no two have equal numbers */
        for (int k = 0; k < 4; k++) {
            for (int i = 0; i < 3; i++)
                fill(&values[r][k][i], FLOAT32, i < 2 ? &shape : &rows, 4 * r + k);
            calls[r][k] =
                (struct collective_call){{"g", r, 0}, values[r][k], kinds, 3, .yields = false};
        }
    call_all(&all, calls[0], all_ranks, 4, replies[0]);
    for (int k = 1; k < 4; k++) { /* some have begun when it leaves */
        if (k == 3)
            all.ends[0].collective->leave(all.ends[0].collective);
        member_call(&all, k, &calls[1][k], &replies[1][k]);
    }
    for (int k = 1; k < 4; k++) {
        reply_wait(&replies[1][k]);
        must(replies[1][k].err.code, &replies[1][k].err);
        assert_int_equal(replies[1][k].members, 3);
    }
    release_replies(replies[0], all_ranks, 1);
    member_kill(&all.ends[0]); /* it has left, so this is no loss */
    for (int r = 2; r < ROUNDS; r++)
        call_all(&all, calls[r], stay, 3, replies[r]);
    for (int r = 0; r < ROUNDS; r++) { /* also the call it was in, whose memory is gone */
        for (int k = 1; k < 4; k++)
            check_reply(&replies[r][k], calls[r], r ? 1 : 0, 4);
        release_replies(replies[r], stay, 3);
    }
    assert_int_equal(collective_links_first(all.ends[3].collective), 1);
    for (int r = 0; r < ROUNDS; r++)
        release_all(&all, values[r], 3);
    members_stop(&all);
}

enum { LEAVING_ROWS = 5, LEAVING_ROW = 50000 };

/* The leaving member gives its rows: all to the first other one, or of a sum a part to each. */
static void give(struct members *all, struct tensor (*values)[8], enum collective_kind kind,
                 struct reply *replies)
{
    static const int64_t wanted[3] = {0, 3, 2};
    struct collective_call calls[3];
    for (int k = 0; k < 3; k++)
        calls[k] = (struct collective_call){.key = {"give", 2, kind},
                                            .values = values[k],
                                            .kinds = &kind,
                                            .n = 1,
                                            .has_root = kind == COLLECTIVE_ROWS,
                                            .root = 1,
                                            .rows = kind == COLLECTIVE_ROWS ? NULL : &wanted[k],
                                            .with_leaving = true};
    call_all(all, calls, (const int[]){0, 1, 2}, 3, replies);
}

/* One member is about to leave: calls go on without it, except those with_leaving. */
static void test_a_member_is_about_to_leave(void **state)
{
    static const enum collective_kind sum = COLLECTIVE_SUM;
    static const int stay[2] = {1, 2}, all_ranks[3] = {0, 1, 2};
    struct members all;
    struct reply replies[3];
    struct collective_call calls[3];
    struct tensor values[MEMBERS_MAX][8], expected[2] = {TENSOR_INIT, TENSOR_INIT};
    struct error err = ERROR_INIT;
    struct shape shape = shape_matrix(LEAVING_ROWS, LEAVING_ROW);
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++) {
        fill(&values[k][0], FLOAT32, &shape, k);
        calls[k] = (struct collective_call){{"g", 2, 0}, values[k], &sum, 1, .yields = false};
    }
    const struct tensor *each[3] = {&values[0][0], &values[1][0], &values[2][0]};
    must(collective_combine(sum, each, 3, &expected[0], &err), &err);
    must(collective_combine(COLLECTIVE_ROWS, each, 3, &expected[1], &err), &err);
    collective_links_announce_leave(all.ends[0].collective);
    call_all(&all, calls, stay, 2, replies);
    for (int k = 1; k < 3; k++)
        check_reply(&replies[k], calls, 1, 3);
    release_replies(replies, stay, 2);
    give(&all, values, COLLECTIVE_ROWS, replies);
    assert_true(tensor_equal(&replies[1].results[0], &expected[1]));
    assert_int_equal(replies[0].results[0].shape.dims[0], 0);
    release_replies(replies, all_ranks, 3);
    give(&all, values, COLLECTIVE_SUM_PART, replies);
    for (int k = 1; k < 3; k++)
        assert_memory_equal(replies[k].results[0].data,
                            (float *)expected[0].data + (k - 1) * 3 * LEAVING_ROW,
                            tensor_bytes(&replies[k].results[0]));
    assert_int_equal(replies[2].results[0].shape.dims[0], 2);
    release_replies(replies, all_ranks, 3);
    for (int k = 1; k < 3; k++) /* as if it had never been there */
        assert_int_equal(collective_links_first(all.ends[k].collective), 1);
    all.ends[0].collective->leave(all.ends[0].collective);
    for (int k = 1; k < 3; k++)
        calls[k].with_leaving = true;
    member_kill(&all.ends[0]);
    call_all(&all, calls, stay, 2, replies);
    for (int k = 1; k < 3; k++)
        check_reply(&replies[k], calls, 1, 3);
    release_replies(replies, stay, 2);
    tensor_release(&expected[0]);
    tensor_release(&expected[1]);
    release_all(&all, values, 1);
    members_stop(&all);
}

static void expect_loss(struct reply *reply, const char *task, const char *name)
{
    reply_wait(reply);
    assert_int_equal(reply->err.code, ERR_UNAVAILABLE);
    if (!strstr(reply->err.text, task) || !strstr(reply->err.text, name))
        fail_msg("%s", reply->err.text);
    reply_release(reply);
}

/* Waiting and later calls fail; earlier answers stay as they were. */
static void test_a_member_is_lost(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    static const int all_ranks[3] = {0, 1, 2};
    struct members all;
    struct reply before[3], replies[2], later;
    struct collective_call calls[3];
    struct tensor values[MEMBERS_MAX][8];
    struct shape shape = shape_vector(1000000);
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++) {
        fill(&values[k][0], FLOAT32, &shape, k);
        calls[k] = (struct collective_call){{"W", 8, 0}, values[k], &kind, 1, .yields = false};
    }
    call_all(&all, calls, all_ranks, 3, before);
    for (int k = 0; k < 2; k++) {
        struct collective_call call = {{"hidden/W", 9, 0}, values[k], &kind, 1, .yields = false};
        member_call(&all, k, &call, &replies[k]);
    }
    reply_release(&before[2]);
    double start = time_now();
    member_kill(&all.ends[2]);
    expect_loss(&replies[0], "worker:2", "waiting for 'hidden/W'");
    expect_loss(&replies[1], "worker:2", "waiting for 'hidden/W'");
    assert_true(time_now() - start < 2);
    struct collective_call call = {{"later", 10, 0}, values[0], &kind, 1, .yields = false};
    member_call(&all, 0, &call, &later);
    expect_loss(&later, "worker:2", "'later'");
    for (int k = 0; k < 2; k++) {
        check_reply(&before[k], calls, 0, 3);
        reply_release(&before[k]);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

/* Until a member has left, the others depend on it. */
static void test_one_that_leaves_is_lost(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct reply reply;
    struct tensor value;
    (void)state;
    members_start(&all, 2);
    fill(&value, FLOAT32, &SHAPE_SCALAR, 0);
    struct collective_call call = {{"give", 9, 0}, &value, &kind, 1, .with_leaving = true};
    collective_links_announce_leave(all.ends[1].collective);
    member_call(&all, 0, &call, &reply);
    member_kill(&all.ends[1]);
    expect_loss(&reply, "worker:1", "waiting for 'give'");
    tensor_release(&value);
    members_stop(&all);
}

static bool is_answered(void *context)
{
    return ((struct reply *)context)->done;
}

/* A member that comes back while the others end is told their reason, instead of being waited for.
 */
static void test_nobody_joins_a_group_that_failed(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct error err = ERROR_INIT;
    struct reply reply;
    struct tensor value;
    (void)state;
    members_start_some_shared(&all, 2, 0);
    const char *tasks[] = {all.tasks[0], all.tasks[1]};
    struct conns_options options = {.peers = {.task = tasks[0],
                                              .folder = all.folder,
                                              .incarnation = 8,
                                              .lease = 5,
                                              .no_shared_memory = true}};
    struct collective_call call = {{"g", 1, 0}, &value, &kind, 1, .yields = false};
    struct member_end *end = &all.ends[0];
    member_kill(end);
    end->conns = conns_new(&options, &err);
    assert_non_null(end->conns);
    const struct collective_tasks group = {tasks, 2, 0, NULL, NULL};
    end->collective = collective_links_new(end->conns, &group, 0);
    fill(&value, FLOAT32, &SHAPE_SCALAR, 0);
    collective_links_join(end->collective, &all.cluster, &(struct member_options){.timeout = 10},
                          &err); /* may fail: the link was open for a moment */
    member_call(&all, 0, &call, &reply);
    assert_true(loop_run_until(conns_loop(end->conns), is_answered, &reply, 3));
    expect_loss(&reply, "worker:1 at unix:w1, incarnation 7: worker:0 at ", "'g'");
    end->collective->free(end->collective);
    conns_free(end->conns);
    end->conns = NULL;
    tensor_release(&value);
    members_stop(&all);
}

/* The member that fails gives its reason, and the others pass it on. */
static void test_a_member_fails(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct reply replies[3];
    struct tensor values[MEMBERS_MAX][8];
    struct error why = ERROR_INIT;
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++) {
        fill(&values[k][0], FLOAT32, &SHAPE_SCALAR, k);
        struct collective_call call = {{"g", 1, 0}, values[k], &kind, 1, .yields = false};
        if (k != 1)
            member_call(&all, k, &call, &replies[k]);
    }
    error_set(&why, ERR_DATA, "node 'x': Log: of -1");
    collective_links_abort(all.ends[1].collective, &why);
    expect_loss(&replies[0], "worker:1", "Log: of -1");
    expect_loss(&replies[2], "worker:1", "Log: of -1");
    release_all(&all, values, 1);
    members_stop(&all);
}

static void test_members_that_disagree(void **state)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct members all;
    struct reply replies[2];
    struct tensor values[MEMBERS_MAX][8];
    (void)state;
    members_start(&all, 2);
    for (int k = 0; k < 2; k++) {
        struct shape shape = shape_vector(3 + k);
        fill(&values[k][0], FLOAT32, &shape, k);
        struct collective_call call = {{"g", 1, 0}, values[k], &kind, 1, .yields = false};
        member_call(&all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 2; k++) {
        reply_wait(&replies[k]);
        assert_int_equal(replies[k].err.code, ERR_DATA);
        assert_non_null(strstr(replies[k].err.text, k ? "worker:0 brings other values than worker:1"
                                                      : "worker:1 brings other values"));
        assert_non_null(strstr(replies[k].err.text, k ? "float32[4]" : "float32[3]"));
        reply_release(&replies[k]);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_member_leaves),
        cmocka_unit_test(test_a_member_is_about_to_leave),
        cmocka_unit_test(test_one_that_leaves_is_lost),
        cmocka_unit_test(test_a_member_is_lost),
        cmocka_unit_test(test_nobody_joins_a_group_that_failed),
        cmocka_unit_test(test_a_member_fails),
        cmocka_unit_test(test_members_that_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
