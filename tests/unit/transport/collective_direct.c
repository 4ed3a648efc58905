/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of values that members read in place: the same bits as otherwise, over links that carry next
 * to nothing, whichever members have their values elsewhere; and memory is never written while
 * others read it.
 */
#include "lib/combine.h"
#include "lib/reductions.h"
#include "transport/value/segment.h"

static const enum collective_kind sum = COLLECTIVE_SUM;

/* Fills member `rank`'s value, in memory that others read; false: there is none. */
static bool fill_direct(struct members *all, int rank, struct tensor *t, const struct shape *shape)
{
    size_t bytes = (size_t)shape_bytes(shape, FLOAT32);
    struct buffer *buffer = outgoing_alloc(conns_outgoing(all->ends[rank].conns), FLOAT32, bytes);
    fill(t, FLOAT32, shape, rank);
    if (!buffer)
        return false;
    memcpy(buffer->data, t->data, bytes);
    tensor_release(t);
    *t = (struct tensor){FLOAT32, *shape, buffer->data, buffer, NULL};
    return true;
}

/* Bytes from the first member to the others; all members send alike. */
static uint64_t bytes_of_first(struct members *all)
{
    uint64_t bytes = 0;
    for (int k = 1; k < all->n; k++)
        bytes += member_received(all, k, 0);
    return bytes;
}

static void test_nothing_is_sent(void **state)
{
    static const int64_t sizes[] = {262144, 262145, 700001, 3000000};
    static const enum collective_kind kinds[] = {COLLECTIVE_SUM, COLLECTIVE_FIRST, COLLECTIVE_ROWS};
    (void)state;
    for (int n = 2; n <= 4; n++) {
        struct members all;
        members_start(&all, n);
        for (size_t i = 0; i < 3 * sizeof sizes / sizeof *sizes; i++) {
            struct tensor values[MEMBERS_MAX][8];
            size_t s = i / 3;
            struct shape shape = shape_vector(sizes[s]);
            struct collective_key key = {"g", (int64_t)i, 0};
            for (int k = 0; k < n; k++)
                assert_true(fill_direct(&all, k, &values[k][0], &shape));
            uint64_t before = bytes_of_first(&all);
            check_call(&all, &key, values, &kinds[i % 3], 1);
            assert_true(bytes_of_first(&all) - before < (uint64_t)sizes[s] / 8);
            release_all(&all, values, 1);
        }
        members_stop(&all);
    }
}

/* Each bit of `where` is a member whose value is in shared memory. Rows, a broadcast and a small
 * value take part in the call. */
static void check_mixed(struct members *all, unsigned where, int64_t step)
{
    static const enum collective_kind kinds[5] = {COLLECTIVE_SUM, COLLECTIVE_FIRST, COLLECTIVE_ROWS,
                                                  COLLECTIVE_SUM, COLLECTIVE_MEAN};
    struct tensor values[MEMBERS_MAX][8];
    struct shape large = shape_vector(400000), small = shape_vector(7), rows = shape_matrix(3, 5);
    struct collective_key key = {"mixed", step, 0};
    for (int k = 0; k < all->n; k++) {
        fill(&values[k][2], FLOAT32, &rows, k);
        fill(&values[k][3], FLOAT32, &small, k);
        for (int i = 0; i < 5; i += i == 1 ? 3 : 1) {
            if (where >> k & 1)
                fill_direct(all, k, &values[k][i], &large);
            else
                fill(&values[k][i], FLOAT32, &large, k);
        }
    }
    check_call(all, &key, values, kinds, 5);
    release_all(all, values, 5);
}

static void test_some_values_are_elsewhere(void **state)
{
    (void)state;
    for (int n_shared = 1; n_shared <= 3; n_shared++) {
        struct members all;
        members_start_some_shared(&all, 3, n_shared);
        for (unsigned where = 0; where < 8; where++)
            check_mixed(&all, where, where);
        members_stop(&all);
    }
}

/* There is room for some values, also for a value but not for its sum. */
static void test_without_room(void **state)
{
    (void)state;
    for (size_t mib = 1; mib <= 13; mib += 2) {
        struct members all;
        const size_t limits[3] = {0, mib << 20, 0};
        members_start_limited(&all, 3, 3, limits);
        for (int64_t step = 0; step < 3; step++)
            check_mixed(&all, 7, step);
        members_stop(&all);
    }
}

/* ---- yielded values ---- */

static void call_all(struct members *all, int64_t step, struct tensor (*values)[8],
                     struct reply *replies)
{
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = {{"g", step, 0}, values[k], &sum, 1, .yields = true};
        member_call(all, k, &call, &replies[k]);
    }
    for (int k = 0; k < all->n; k++) {
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
    }
}

static struct tensor expected_of(const struct members *all, struct tensor (*values)[8])
{
    struct error err = ERROR_INIT;
    const struct tensor *each[MEMBERS_MAX];
    struct tensor expected;
    for (int k = 0; k < all->n; k++)
        each[k] = &values[k][0];
    must(collective_combine(sum, each, all->n, &expected, &err), &err);
    return expected;
}

/* Sums take the values' memory, step after step, and are summed again. */
static void test_in_place(void **state)
{
    struct members all;
    struct reply replies[MEMBERS_MAX];
    struct tensor values[MEMBERS_MAX][8];
    struct shape shape = shape_vector(600001);
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++)
        assert_true(fill_direct(&all, k, &values[k][0], &shape));
    for (int64_t step = 0; step < 10; step++) {
        struct tensor expected = expected_of(&all, values);
        call_all(&all, step, values, replies);
        for (int k = 0; k < 3; k++) {
            if (!step) /* later an earlier call may still hold the memory */
                assert_ptr_equal(replies[k].results[0].data, values[k][0].data);
            assert_true(tensor_equal(&replies[k].results[0], &expected));
            tensor_release(&values[k][0]);
            tensor_share(&values[k][0], &replies[k].results[0]);
            reply_release(&replies[k]);
        }
        tensor_release(&expected);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

/* A value that was sent to another process, and one that came from there, whose memory must not be
 * written at all. */
static void test_what_others_have(void **state)
{
    struct members all;
    struct reply replies[MEMBERS_MAX];
    struct tensor values[MEMBERS_MAX][8], sent, before, expected;
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(500000);
    (void)state;
    members_start(&all, 2);
    assert_true(fill_direct(&all, 0, &values[0][0], &shape));
    struct segment_offer offer = segment_share(&values[0][0]);
    struct segments *others = conns_segments(all.ends[1].conns);
    assert_int_equal(segments_map(others, &offer, FLOAT32, &shape, &sent), SEGMENT_TAKEN);
    must(tensor_copy(&before, &sent, &err), &err);
    values[1][0] = sent;
    expected = expected_of(&all, values);
    call_all(&all, 1, values, replies);
    for (int k = 0; k < 2; k++) {
        assert_true(tensor_equal(&replies[k].results[0], &expected));
        assert_ptr_not_equal(replies[k].results[0].data, values[k][0].data);
        assert_true(tensor_equal(&values[k][0], &before));
        reply_release(&replies[k]);
    }
    tensor_release(&before);
    tensor_release(&expected);
    release_all(&all, values, 1);
    members_stop(&all);
}

/* ---- the end of a member ---- */

/* Memory that a departed member was not offered can be reused. */
static void test_a_member_leaves(void **state)
{
    struct members all;
    struct reply replies[2];
    struct tensor values[MEMBERS_MAX][8];
    struct shape shape = shape_vector(600000);
    const size_t limits[3] = {12 << 20, 12 << 20, 12 << 20};
    (void)state;
    members_start_limited(&all, 3, 3, limits);
    all.ends[2].collective->leave(all.ends[2].collective);
    all.n = 2;
    for (int64_t step = 0; step < 12; step++) {
        for (int k = 0; k < 2; k++)
            assert_true(fill_direct(&all, k, &values[k][0], &shape));
        struct tensor expected = expected_of(&all, values);
        call_all(&all, step, values, replies);
        for (int k = 0; k < 2; k++) {
            assert_true(tensor_equal(&replies[k].results[0], &expected));
            reply_release(&replies[k]);
        }
        tensor_release(&expected);
        release_all(&all, values, 1);
        for (int k = 0; k < 2 && step == 0; k++) /* it may hold offers of that step */
            segments_trim(conns_segments(all.ends[k].conns), -1);
    }
    all.n = 3;
    members_stop(&all);
}

static void test_a_member_is_lost(void **state)
{
    struct members all;
    struct reply replies[2];
    struct tensor values[MEMBERS_MAX][8];
    struct shape shape = shape_vector(1000000);
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++)
        assert_true(fill_direct(&all, k, &values[k][0], &shape));
    for (int k = 0; k < 2; k++) {
        struct collective_call call = {{"hidden/W", 9, 0}, values[k], &sum, 1, .yields = true};
        member_call(&all, k, &call, &replies[k]);
    }
    member_kill(&all.ends[2]);
    for (int k = 0; k < 2; k++) {
        reply_wait(&replies[k]);
        assert_int_equal(replies[k].err.code, ERR_UNAVAILABLE);
        assert_non_null(strstr(replies[k].err.text, "worker:2"));
        reply_release(&replies[k]);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_sent),  cmocka_unit_test(test_some_values_are_elsewhere),
        cmocka_unit_test(test_without_room),     cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_what_others_have), cmocka_unit_test(test_a_member_is_lost),
        cmocka_unit_test(test_a_member_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
