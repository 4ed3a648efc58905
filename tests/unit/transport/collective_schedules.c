/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by schedules between processes: they have the bits of the formulas (lib/schedules.h), and of
 * members within one process. SCHEDULES is how many calls are made (default 60), SCHEDULES_SEED the
 * first's seed.
 */
#include "collective/schedule.h"

#include "lib/local_collective.h"
#include "lib/random.h"
#include "lib/reductions.h"
#include "lib/schedules.h"

#define N_VALUES 6

static const int64_t hosts[MEMBERS_MAX] = {0, 1, 0, 2, 1, 1, 0, 2};

/* A large sum and a large mean follow the schedule; the other values do not. */
static const enum collective_kind kinds[N_VALUES] = {COLLECTIVE_SUM, COLLECTIVE_MEAN,
                                                     COLLECTIVE_SUM, COLLECTIVE_FIRST,
                                                     COLLECTIVE_SUM, COLLECTIVE_ROWS};
static const enum dtype types[N_VALUES] = {FLOAT32, FLOAT64, BFLOAT16, FLOAT32, FLOAT32, INT32};

static void fill_all(struct tensor (*values)[8], int n, int64_t large)
{
    const int64_t counts[N_VALUES] = {large, large / 2 + 3, large, 70000, 100, 30000};
    for (int k = 0; k < n; k++)
        for (int i = 0; i < N_VALUES; i++) {
            struct shape shape = shape_vector(counts[i]);
            fill(&values[k][i], types[i], &shape, k);
        }
}

static struct collective_call call_of(struct tensor *values, int64_t step, enum schedule_kind kind)
{
    return (struct collective_call){.key = {"g", step, 0},
                                    .values = values,
                                    .kinds = kinds,
                                    .n = N_VALUES,
                                    .schedule = {kind, hosts}};
}

/* Checks the large sum of float32, for the members of some ranks, of n. */
static void expect_formula(const struct reply *reply, struct tensor (*values)[8],
                           enum schedule_kind kind, const int *ranks, int n_there, int n)
{
    float of_element[MEMBERS_MAX];
    int all_hosts[MEMBERS_MAX], there[MEMBERS_MAX];
    int64_t count = tensor_count(&values[ranks[0]][0]);
    for (int k = 0; k < n; k++)
        all_hosts[k] = (int)hosts[k];
    for (int k = 0; k < n_there; k++)
        there[k] = (int)hosts[ranks[k]];
    const struct sum_case whole = {.kind = kind, .n = n, .hosts = all_hosts};
    struct sum_case c = {.kind = kind, .n = n_there, .hosts = there, .values = of_element};
    for (int64_t i = 0; i < count; i++) {
        int part = sum_piece_of(i, count, sum_pieces(&whole));
        for (int k = 0; k < n_there; k++)
            of_element[k] = ((float *)values[ranks[k]][0].data)[i];
        float expected = sum_expected(&c, part % sum_pieces(&c));
        if (memcmp(&expected, (float *)reply->results[0].data + i, sizeof expected) != 0)
            fail_msg("%s of %d, element %lld", schedule_name(kind), n_there, (long long)i);
    }
}

/* Computes the replies of members within one process. */
static void call_in_process(struct reply *reply, struct tensor (*values)[8], int n,
                            enum schedule_kind kind)
{
    struct collective *members[MEMBERS_MAX];
    struct reply replies[MEMBERS_MAX];
    collective_local_new(n, members);
    for (int k = 0; k < n; k++) {
        struct collective_call call = call_of(values[k], 1, kind);
        reply_open(k ? &replies[k] : reply, N_VALUES);
        members[k]->reduce(members[k], &call, k ? &replies[k].waiter : &reply->waiter);
    }
    for (int k = 1; k < n; k++) {
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        reply_release(&replies[k]);
    }
    for (int k = 0; k < n; k++)
        members[k]->free(members[k]);
}

static void check_step(struct members *all, enum schedule_kind kind, int64_t step, int64_t large)
{
    static const int ranks[MEMBERS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX], local;
    fill_all(values, all->n, large);
    call_in_process(&local, values, all->n, kind);
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = call_of(values[k], step, kind);
        member_call(all, k, &call, &replies[k]);
    }
    for (int k = 0; k < all->n; k++) {
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        for (int i = 0; i < N_VALUES; i++)
            if (!tensor_equal(&replies[k].results[i], &local.results[i]))
                fail_msg("%s of %d: value %d of member %d", schedule_name(kind), all->n, i, k);
        reply_release(&replies[k]);
    }
    expect_formula(&local, values, kind, ranks, all->n, all->n);
    reply_release(&local);
    release_all(all, values, N_VALUES);
}

static void sums_are_those_of_the_formulas(void **state)
{
    struct seed_range seeds = seeds_of("SCHEDULES", 60);
    (void)state;
    for (int i = 0; i < seeds.n; i += 12) {
        uint64_t random = seeds.first + (uint64_t)i;
        struct members all;
        int n = 1 + (int)((unsigned)(i / 12) + unit_random(&random) % 2) % 7;
        members_start_some_shared(&all, n, (int)(unit_random(&random) % (uint64_t)(n + 1)));
        for (int64_t step = 0; step < 12; step++)
            check_step(&all, (enum schedule_kind)(step % 6), step,
                       40000 + (int64_t)(unit_random(&random) % 400000));
        members_stop(&all);
    }
}

/* ---- bytes ---- */

/* Reads the bytes that each member has sent to each other so far. */
static void count_sent(struct members *all, uint64_t (*sent)[MEMBERS_MAX])
{
    for (int from = 0; from < all->n; from++)
        for (int to = 0; to < all->n; to++)
            sent[from][to] = member_received(all, to, from);
}

/* Halving, for six: 1 and 3 give theirs to 0 and 2, which exchange halves with 4 and 5, and
 * quarters. */
static const double by_halving[6][6] = {{0, 1, .5, 0, 1, 0}, {1, 0, 0, 0, 0, 0},
                                        {.5, 0, 0, 1, 0, 1}, {0, 0, 1, 0, 0, 0},
                                        {1, 0, 0, 0, 0, .5}, {0, 0, 1, 0, .5, 0}};
/* Two levels, by `hosts`: 0, 1 and 3 are a ring, 2 is with 0, 4 and 5 are with 1. */
static const double by_levels[6][6] = {{0, 4. / 3, 1, 0, 0, 0}, {0, 0, 0, 4. / 3, 1, 1},
                                       {1, 0, 0, 0, 0, 0},      {4. / 3, 0, 0, 0, 0, 0},
                                       {0, 1, 0, 0, 0, 0},      {0, 1, 0, 0, 0, 0}};

/* The share of a value that `from` sends to `to`: by the formula, for six members. */
static double expected_share(enum schedule_kind kind, int n, int from, int to)
{
    double ring = to == (from + 1) % n ? 2.0 * (n - 1) / n : 0;
    bool neighbours = to == from + 1 || to == from - 1;
    bool is_child = (from & (from - 1)) == to && from, is_parent = (to & (to - 1)) == from && to;
    switch (kind) {
    case SCHEDULE_DIRECT:
        return 2.0 / n;
    case SCHEDULE_CHAIN:
        return neighbours;
    case SCHEDULE_RING:
        return ring;
    case SCHEDULE_HALVING:
        return by_halving[from][to];
    case SCHEDULE_TWO_LEVEL:
        return by_levels[from][to];
    default:
        return is_child || is_parent;
    }
}

static void links_carry_what_the_formulas_say(void **state)
{
    enum { N = 6, COUNT = 6 * 4 * 65536 }; /* 24 chunks, 4 per owner */
    static const enum collective_kind sum = COLLECTIVE_SUM;
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct shape shape = shape_vector(COUNT);
    (void)state;
    members_start_some_shared(&all, N, 0);
    for (int k = 0; k < N; k++)
        fill(&values[k][0], FLOAT32, &shape, k);
    for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++) {
        enum schedule_kind which = (enum schedule_kind)kind;
        struct reply replies[MEMBERS_MAX];
        uint64_t before[MEMBERS_MAX][MEMBERS_MAX], after[MEMBERS_MAX][MEMBERS_MAX];
        count_sent(&all, before);
        for (int k = 0; k < N; k++) {
            struct collective_call call = {.key = {"g", kind, 0},
                                           .values = values[k],
                                           .kinds = &sum,
                                           .n = 1,
                                           .schedule = {which, hosts}};
            member_call(&all, k, &call, &replies[k]);
        }
        for (int k = 0; k < N; k++) {
            reply_wait(&replies[k]);
            must(replies[k].err.code, &replies[k].err);
            reply_release(&replies[k]);
        }
        count_sent(&all, after);
        for (int from = 0; from < N; from++)
            for (int to = 0; to < N; to++) {
                double bytes = (double)(after[from][to] - before[from][to]);
                double whole = expected_share(which, N, from, to) * COUNT * 4;
                if (from != to && (bytes < whole || bytes > whole * 1.01 + 2000))
                    fail_msg("%s: %d sends %d %.0f bytes, not %.0f", schedule_name(which), from, to,
                             bytes, whole);
            }
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

/* The results take the values' memory, as in a step. */
static void values_may_be_taken(void **state)
{
    struct members all;
    static const int ranks[5] = {0, 1, 2, 3, 4};
    (void)state;
    members_start_some_shared(&all, 5, 2);
    for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++)
        for (int64_t step = 0; step < 4; step++) {
            struct tensor values[MEMBERS_MAX][8], own[MEMBERS_MAX][8];
            struct reply replies[MEMBERS_MAX];
            fill_all(values, 5, 500000);
            fill_all(own, 5, 500000);
            for (int k = 0; k < 5; k++) {
                struct collective_call call =
                    call_of(own[k], kind * 4 + step, (enum schedule_kind)kind);
                call.yields = true;
                member_call(&all, k, &call, &replies[k]);
                for (int i = 0; i < N_VALUES; i++)
                    tensor_release(&own[k][i]);
            }
            for (int k = 0; k < 5; k++) {
                reply_wait(&replies[k]);
                must(replies[k].err.code, &replies[k].err);
            }
            for (int k = 0; k < 5; k++) {
                expect_formula(&replies[k], values, (enum schedule_kind)kind, ranks, 5, 5);
                reply_release(&replies[k]);
            }
            release_all(&all, values, N_VALUES);
        }
    members_stop(&all);
}

static void groups_have_schedules(void **state)
{
    struct members all;
    static const int ranks[2][3] = {{0, 2, 4}, {1, 3, 5}};
    (void)state;
    members_start_some_shared(&all, 6, 3);
    for (int kind = SCHEDULE_CHAIN; kind <= SCHEDULE_HALVING; kind++) {
        struct tensor values[MEMBERS_MAX][8];
        struct reply replies[MEMBERS_MAX];
        fill_all(values, 6, 100000);
        for (int k = 0; k < 6; k++) {
            struct collective_call call = call_of(values[k], kind, (enum schedule_kind)kind);
            call.group = (struct collective_group){3, 2};
            member_call(&all, k, &call, &replies[k]);
        }
        for (int k = 0; k < 6; k++) {
            reply_wait(&replies[k]);
            must(replies[k].err.code, &replies[k].err);
            expect_formula(&replies[k], values, (enum schedule_kind)kind, ranks[k % 2], 3, 3);
            reply_release(&replies[k]);
        }
        release_all(&all, values, N_VALUES);
    }
    members_stop(&all);
}

/* Parts are sized for all members, and take the routes of those that are left. */
static void a_member_leaves(void **state)
{
    struct members all;
    static const int ranks[4] = {0, 1, 3, 4};
    (void)state;
    for (int kind = SCHEDULE_CHAIN; kind <= SCHEDULE_TWO_LEVEL; kind++) {
        struct tensor values[MEMBERS_MAX][8];
        struct reply replies[MEMBERS_MAX];
        members_start_some_shared(&all, 5, 3);
        fill_all(values, 5, 200000);
        for (int k = 0; k < 4; k++) {
            struct collective_call call = call_of(values[ranks[k]], 1, (enum schedule_kind)kind);
            if (k == 2)
                all.ends[2].collective->leave(all.ends[2].collective);
            member_call(&all, ranks[k], &call, &replies[k]);
        }
        for (int k = 0; k < 4; k++) {
            reply_wait(&replies[k]);
            must(replies[k].err.code, &replies[k].err);
            expect_formula(&replies[k], values, (enum schedule_kind)kind, ranks, 4, 5);
            reply_release(&replies[k]);
        }
        release_all(&all, values, N_VALUES);
        members_stop(&all);
    }
}

/* A member is lost in the middle of the sum, at several moments. */
static void a_member_is_lost(void **state)
{
    (void)state;
    for (int kind = SCHEDULE_CHAIN; kind <= SCHEDULE_TWO_LEVEL; kind++)
        for (int moment = 0; moment < 3; moment++) {
            struct members all;
            struct tensor values[MEMBERS_MAX][8];
            struct reply replies[MEMBERS_MAX];
            members_start_some_shared(&all, 4, moment);
            fill_all(values, 4, 3000000);
            for (int k = 0; k < 4; k++) {
                struct collective_call call = call_of(values[k], 1, (enum schedule_kind)kind);
                member_call(&all, k, &call, &replies[k]);
            }
            usleep(3000 * (unsigned)moment);
            member_kill(&all.ends[1]);
            for (int k = 0; k < 4; k++) {
                if (k == 1)
                    continue;
                reply_wait(&replies[k]);
                if (replies[k].err.code) {
                    assert_int_equal(replies[k].err.code, ERR_UNAVAILABLE);
                    assert_non_null(strstr(replies[k].err.text, "worker:"));
                    assert_non_null(strstr(replies[k].err.text, "'g'"));
                }
                reply_release(&replies[k]);
            }
            release_all(&all, values, N_VALUES);
            members_stop(&all);
        }
}

/* A cancelled call leaves the links to the others intact. */
static void a_call_is_cancelled(void **state)
{
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    (void)state;
    members_start(&all, 3);
    fill_all(values, 3, 2000000);
    for (int k = 0; k < 2; k++) {
        struct collective_call call = call_of(values[k], 1, SCHEDULE_RING);
        member_call(&all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 2; k++) {
        struct collective *collective = all.ends[k].collective;
        assert_true(collective->cancel(collective, &replies[k].waiter));
        reply_release(&replies[k]);
    }
    release_all(&all, values, N_VALUES);
    members_stop(&all);
}

static void members_of_different_schedules_are_told(void **state)
{
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[MEMBERS_MAX];
    (void)state;
    members_start(&all, 2);
    fill_all(values, 2, 50000);
    for (int k = 0; k < 2; k++) {
        struct collective_call call = call_of(values[k], 1, k ? SCHEDULE_RING : SCHEDULE_CHAIN);
        member_call(&all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 2; k++) {
        reply_wait(&replies[k]);
        assert_int_equal(replies[k].err.code, ERR_DATA);
        assert_non_null(strstr(replies[k].err.text, "brings other values than"));
        reply_release(&replies[k]);
    }
    release_all(&all, values, N_VALUES);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_formulas),
        cmocka_unit_test(links_carry_what_the_formulas_say),
        cmocka_unit_test(values_may_be_taken),
        cmocka_unit_test(groups_have_schedules),
        cmocka_unit_test(a_member_leaves),
        cmocka_unit_test(a_member_is_lost),
        cmocka_unit_test(a_call_is_cancelled),
        cmocka_unit_test(members_of_different_schedules_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
