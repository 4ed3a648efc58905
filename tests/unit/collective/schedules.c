/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of a sum: their shape, detection of faults in them, and the sums that they give in one
 * process. FAULTS is how many faults are tried (default 2000), FAULTS_SEED the first's seed.
 */
#include "lib/combine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/schedule_check.h"
#include "lib/schedules.h"
#include "lib/unit.h"

static const int four_hosts[16] = {0, 0, 1, 1, 2, 0, 3, 3, 1, 2, 0, 0, 3, 1, 1, 1};

static void make(struct sum_schedule *s, enum schedule_kind kind, int n, int n_pieces)
{
    struct error err = ERROR_INIT;
    const struct schedule_request request = {
        .kind = kind, .n_members = n, .n_pieces = n_pieces, .hosts = four_hosts};
    *s = (struct sum_schedule){0};
    if (schedule_make(&request, s, &err))
        fail_msg("%s", err.text);
}

static struct schedule_report check(const struct sum_schedule *s, int *on_ways)
{
    struct error err = ERROR_INIT;
    struct schedule_report report;
    if (schedule_check(s, on_ways, &report, &err))
        fail_msg("%d members, %d pieces: %s", s->n_members, s->n_pieces, err.text);
    return report;
}

/* ---- whole schedules ---- */

static void each_is_whole(void **state)
{
    (void)state;
    for (int n = 1; n <= 16; n++)
        for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++)
            for (int more = 0; more < 2; more++) {
                struct sum_schedule s;
                int on_ways[16 * 16];
                make(&s, (enum schedule_kind)kind, n, more ? 19 : 0);
                struct schedule_report report = check(&s, on_ways);
                if (kind <= SCHEDULE_CHAIN)
                    assert_true(report.by_rank);
                if (kind == SCHEDULE_RING || kind == SCHEDULE_HALVING)
                    assert_true(report.by_rank == (n < (kind == SCHEDULE_RING ? 3 : 4)));
                schedule_release(&s);
            }
}

/* Counts the pieces on all routes that end, or begin, at a member. */
static int pieces_at(const int *on_ways, int n, int member, bool ends)
{
    int pieces = 0;
    for (int k = 0; k < n; k++)
        pieces += ends ? on_ways[k * n + member] : on_ways[member * n + k];
    return pieces;
}

/* Rounds and pieces from member to member follow the formulas. */
static void rounds_and_bytes_are_the_formulas(void **state)
{
    (void)state;
    for (int n = 2; n <= 16; n++)
        for (int pieces = 1; pieces < 40; pieces += 13) {
            struct sum_schedule s;
            int on_ways[16 * 16];
            /* chain: M in each direction between neighbours, one piece after the other */
            make(&s, SCHEDULE_CHAIN, n, pieces);
            check(&s, on_ways);
            for (int i = 0; i < n * n; i++)
                assert_int_equal(on_ways[i], abs(i / n - i % n) == 1 ? pieces : 0);
            assert_int_equal(s.n_rounds, pieces + 2 * (n - 1) - 1);
            schedule_release(&s);
            /* ring: 2 (n - 1) / n of M from each member, all routes full in all rounds */
            make(&s, SCHEDULE_RING, n, n * pieces);
            struct schedule_report report = check(&s, on_ways);
            assert_int_equal(report.n_flows, 2 * (n - 1) * n * pieces);
            for (int k = 0; k < n; k++)
                assert_int_equal(on_ways[k * n + (k + 1) % n], 2 * (n - 1) * pieces);
            assert_int_equal(s.n_rounds, 2 * (n - 1) * pieces);
            schedule_release(&s);
            /* direct: equal amounts from and to each, in as many rounds as one member has pieces */
            make(&s, SCHEDULE_DIRECT, n, n * pieces);
            check(&s, on_ways);
            for (int k = 0; k < n; k++) {
                assert_int_equal(pieces_at(on_ways, n, k, false), 2 * (n - 1) * pieces);
                assert_int_equal(pieces_at(on_ways, n, k, true), 2 * (n - 1) * pieces);
            }
            assert_int_equal(s.n_rounds, 2 * pieces);
            schedule_release(&s);
            /* tree: M over each edge of the binomial tree, there and back */
            make(&s, SCHEDULE_TREE, n, pieces);
            check(&s, on_ways);
            for (int i = 0; i < n * n; i++) {
                int from = i / n, to = i % n, child = from > to ? from : to;
                bool is_edge = from != to && (child & (child - 1)) == from + to - child;
                assert_int_equal(on_ways[i], is_edge ? pieces : 0);
            }
            schedule_release(&s);
        }
}

static void halving_of_a_power_of_two_sends_as_little_as_a_ring(void **state)
{
    (void)state;
    for (int n = 2; n <= 16; n *= 2) {
        struct sum_schedule s;
        int on_ways[16 * 16];
        make(&s, SCHEDULE_HALVING, n, 0);
        check(&s, on_ways);
        for (int k = 0; k < n; k++) {
            assert_int_equal(pieces_at(on_ways, n, k, false), 2 * (n - 1));
            assert_int_equal(pieces_at(on_ways, n, k, true), 2 * (n - 1));
        }
        schedule_release(&s);
    }
}

/* Each sum crosses between hosts once: a ring of the hosts' first members. */
static void two_levels_send_once_between_hosts(void **state)
{
    static const int hosts[6] = {0, 0, 0, 1, 1, 1};
    struct error err = ERROR_INIT;
    struct sum_schedule s = {0};
    int on_ways[6 * 6], between[2] = {0, 0};
    (void)state;
    const struct schedule_request request = {
        .kind = SCHEDULE_TWO_LEVEL, .n_members = 6, .n_pieces = 8, .hosts = hosts};
    assert_int_equal(schedule_make(&request, &s, &err), 0);
    check(&s, on_ways);
    for (int i = 0; i < 36; i++)
        if (hosts[i / 6] != hosts[i % 6])
            between[hosts[i / 6]] += on_ways[i];
    assert_int_equal(between[0], 8); /* half of M there and half of M back, in two halves */
    assert_int_equal(between[1], 8);
    schedule_release(&s);
}

/* ---- faults ---- */

/* Changes one flow. Returns false if the schedule may still be right. */
static bool spoil(struct sum_schedule *s, uint64_t *random)
{
    size_t at = (size_t)(unit_random(random) % s->flows.n);
    struct schedule_flow *flow = &s->flows.items[at];
    struct schedule_flow was = *flow;
    switch (unit_random(random) % 6) {
    case 0: /* removes it */
        for (; at + 1 < s->flows.n; at++)
            s->flows.items[at] = s->flows.items[at + 1];
        s->flows.n--;
        return true;
    case 1: /* doubles it */
        vec_push(&s->flows, was);
        for (size_t i = s->flows.n - 1; i > at; i--)
            s->flows.items[i] = s->flows.items[i - 1];
        return true;
    case 2:
        flow->to = (int)(unit_random(random) % (uint64_t)(s->n_members + 1));
        /* an addend sent elsewhere may still reach the sum */
        return flow->to != was.to && was.operation != SCHEDULE_ADD;
    case 3:
        flow->from = (int)(unit_random(random) % (uint64_t)(s->n_members + 1));
        /* another member may then have the whole sum, and a free link */
        return flow->from != was.from && was.operation != SCHEDULE_COPY;
    case 4:
        flow->piece = (int)(unit_random(random) % (uint64_t)(s->n_pieces + 1));
        return flow->piece != was.piece;
    default:
        flow->operation = flow->operation == SCHEDULE_COPY ? SCHEDULE_ADD : SCHEDULE_COPY;
        return true;
    }
}

static void faults_are_found(void **state)
{
    struct seed_range seeds = seeds_of("FAULTS", 2000);
    (void)state;
    for (int i = 0; i < seeds.n; i++) {
        uint64_t seed = seeds.first + (uint64_t)i, random = seed;
        struct error err = ERROR_INIT;
        struct schedule_report report;
        struct sum_schedule s;
        int n = 2 + (int)(unit_random(&random) % 15), on_ways[16 * 16];
        enum schedule_kind kind = (enum schedule_kind)(unit_random(&random) % 6);
        make(&s, kind, n, unit_random(&random) % 2 ? 7 : 0);
        if (spoil(&s, &random) && !schedule_check(&s, on_ways, &report, &err))
            fail_msg("FAULTS_SEED=%llu: %s of %d members with a fault is taken",
                     (unsigned long long)seed, schedule_name(kind), n);
        schedule_release(&s);
    }
}

static void a_way_carries_one_flow_at_a_time(void **state)
{
    struct error err = ERROR_INIT;
    struct schedule_report report;
    struct sum_schedule s;
    int on_ways[2 * 2];
    (void)state;
    make(&s, SCHEDULE_CHAIN, 2, 2);
    s.flows.items[1] = (struct schedule_flow){0, 0, 1, 1, SCHEDULE_ADD};
    assert_int_equal(schedule_check(&s, on_ways, &report, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "round 0"));
    assert_non_null(strstr(err.text, "its way carries another flow"));
    schedule_release(&s);
}

/* ---- sums ---- */

static void expect_sums(enum schedule_kind kind, int n, int64_t count)
{
    struct error err = ERROR_INIT;
    struct tensor values[16], result = TENSOR_INIT;
    const struct tensor *each[16];
    int64_t hosts[16];
    int ranks[16];
    struct sum_schedule s = {0};
    struct shape shape = shape_vector(count);
    for (int k = 0; k < n; k++) {
        assert_int_equal(tensor_alloc(&values[k], FLOAT32, &shape, &err), 0);
        for (int64_t i = 0; i < count; i++)
            ((float *)values[k].data)[i] = (float)(sin((double)(i * 7 + k * 13)) * pow(10, k % 5));
        each[k] = &values[k];
        hosts[k] = four_hosts[k];
        ranks[k] = k;
    }
    const struct collective_schedule schedule = {kind, hosts};
    const struct collective_group all = {0};
    struct sum_case c = {.kind = kind, .n = n, .hosts = four_hosts};
    int parts = collective_schedule_parts(&schedule, &all, n, 0);
    assert_int_equal(parts, sum_pieces(&c));
    collective_schedule_make(&schedule, ranks, n, &s);
    assert_int_equal(collective_combine_by(&s, parts, COLLECTIVE_SUM, each, &result, &err), 0);
    for (int64_t i = 0; i < count; i++) {
        float of_element[16], expected;
        for (int k = 0; k < n; k++)
            of_element[k] = ((float *)values[k].data)[i];
        c.values = of_element;
        expected = sum_expected(&c, sum_piece_of(i, count, parts));
        if (memcmp(&expected, (float *)result.data + i, sizeof expected) != 0)
            fail_msg("%s of %d members, element %lld: %.9g, not %.9g", schedule_name(kind), n,
                     (long long)i, (double)((float *)result.data)[i], (double)expected);
    }
    for (int k = 0; k < n; k++)
        tensor_release(&values[k]);
    tensor_release(&result);
    schedule_release(&s);
}

static void sums_have_the_bits_of_the_formulas(void **state)
{
    (void)state;
    for (int n = 1; n <= 16; n++)
        for (int kind = SCHEDULE_CHAIN; kind <= SCHEDULE_TWO_LEVEL; kind++)
            expect_sums((enum schedule_kind)kind, n, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_whole),
        cmocka_unit_test(rounds_and_bytes_are_the_formulas),
        cmocka_unit_test(halving_of_a_power_of_two_sends_as_little_as_a_ring),
        cmocka_unit_test(two_levels_send_once_between_hosts),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(a_way_carries_one_flow_at_a_time),
        cmocka_unit_test(sums_have_the_bits_of_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
