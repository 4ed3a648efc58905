/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules of a sum: what they are, that faults are found in them, and what comes of them in one
 * process. FAULTS is how many faults are tried (default 2000), FAULTS_SEED the first's seed.
 */
#include "exec/step/schedule.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "exec/step/collective.h"
#include "lib/schedules.h"
#include "lib/unit.h"

static const int four_hosts[16] = {0, 0, 1, 1, 2, 0, 3, 3, 1, 2, 0, 0, 3, 1, 1, 1};

static void make(struct sum_schedule *s, enum schedule_kind kind, int n, int n_pieces,
                 const struct topology *topology)
{
    struct error err = ERROR_INIT;
    const struct schedule_request request = {.kind = kind,
                                             .n_members = n,
                                             .n_pieces = n_pieces,
                                             .hosts = four_hosts,
                                             .topology = topology};
    *s = (struct sum_schedule){0};
    if (schedule_make(&request, s, &err))
        fail_msg("%s", err.text);
}

static struct schedule_report check(const struct sum_schedule *s, const struct topology *topology,
                                    int *on_links)
{
    struct error err = ERROR_INIT;
    struct schedule_report report;
    if (schedule_check(s, topology, on_links, &report, &err))
        fail_msg("%d members, %d pieces: %s", s->n_members, s->n_pieces, err.text);
    return report;
}

/* ---- whole schedules ---- */

static void each_is_whole_on_each_topology(void **state)
{
    void (*const topologies[])(struct topology *, int) = {topology_mesh, topology_line,
                                                          topology_star};
    (void)state;
    for (int n = 1; n <= 16; n++)
        for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++)
            for (int t = 0; t < 3; t++)
                for (int more = 0; more < 2; more++) {
                    struct topology topology = {0};
                    struct sum_schedule s;
                    topologies[t](&topology, n);
                    make(&s, (enum schedule_kind)kind, n, more ? 19 : 0, &topology);
                    struct schedule_report report = check(&s, &topology, NULL);
                    if (kind <= SCHEDULE_CHAIN)
                        assert_true(report.by_rank);
                    if (kind == SCHEDULE_RING || kind == SCHEDULE_HALVING)
                        assert_true(report.by_rank == (n < (kind == SCHEDULE_RING ? 3 : 4)));
                    schedule_release(&s);
                    topology_release(&topology);
                }
}

/* Rounds and pieces over links are those of the formulas. */
static void rounds_and_bytes_are_the_formulas(void **state)
{
    (void)state;
    for (int n = 2; n <= 16; n++)
        for (int pieces = 1; pieces < 40; pieces += 13) {
            struct topology line = {0}, mesh = {0}, star = {0};
            struct sum_schedule s;
            int on_links[2 * 16 * 16];
            topology_line(&line, n);
            topology_mesh(&mesh, n);
            topology_star(&star, n);
            /* chain: M in each direction of each link of the line, one piece behind the other */
            make(&s, SCHEDULE_CHAIN, n, pieces, &line);
            check(&s, &line, on_links);
            for (int i = 0; i < 2 * (n - 1); i++)
                assert_int_equal(on_links[i], pieces);
            assert_int_equal(s.n_rounds, pieces + 2 * (n - 1) - 1);
            schedule_release(&s);
            /* ring: 2 (n - 1) / n of M from each member, all links full in all rounds */
            make(&s, SCHEDULE_RING, n, n * pieces, &mesh);
            struct schedule_report report = check(&s, &mesh, NULL);
            assert_int_equal(report.on_all_links, 2 * (n - 1) * n * pieces);
            assert_int_equal(s.n_rounds, 2 * (n - 1) * pieces);
            schedule_release(&s);
            /* direct through a switch: as much, n - 1 at a time */
            make(&s, SCHEDULE_DIRECT, n, n * pieces, &star);
            report = check(&s, &star, NULL);
            assert_int_equal(report.most_on_link, 2 * (n - 1) * pieces);
            schedule_release(&s);
            topology_release(&line);
            topology_release(&mesh);
            topology_release(&star);
        }
}

static void halving_of_a_power_of_two_sends_as_little_as_a_ring(void **state)
{
    (void)state;
    for (int n = 2; n <= 16; n *= 2) {
        struct topology star = {0};
        struct sum_schedule s;
        int on_links[2 * 16];
        topology_star(&star, n);
        make(&s, SCHEDULE_HALVING, n, 0, &star);
        check(&s, &star, on_links);
        for (int i = 0; i < 2 * n; i++)
            assert_int_equal(on_links[i], 2 * (n - 1));
        schedule_release(&s);
        topology_release(&star);
    }
}

/* Between hosts each sum once: a ring of hosts, whose members are behind one switch each. */
static void two_levels_send_once_between_hosts(void **state)
{
    static const int hosts[6] = {0, 0, 0, 1, 1, 1};
    static const char text[] = "members 6\n# two hosts\n"
                               "link 0 a\nlink 1 a\nlink 2 a\n"
                               "link 3 b\nlink 4 b\nlink 5 b\nlink a b\n";
    struct error err = ERROR_INIT;
    struct topology topology = {0};
    struct sum_schedule s = {0};
    int on_links[2 * 7];
    (void)state;
    if (topology_parse(&topology, text, "hosts", &err))
        fail_msg("%s", err.text);
    const struct schedule_request request = {.kind = SCHEDULE_TWO_LEVEL,
                                             .n_members = 6,
                                             .n_pieces = 8,
                                             .hosts = hosts,
                                             .topology = &topology};
    assert_int_equal(schedule_make(&request, &s, &err), 0);
    check(&s, &topology, on_links);
    assert_int_equal(on_links[12], 8); /* half of M there and half of M back, in two halves */
    assert_int_equal(on_links[13], 8);
    schedule_release(&s);
    topology_release(&topology);
}

/* ---- trees of a file ---- */

static void trees_are_read(void **state)
{
    static const char *const trees[] = {
        "members 5\nlink 0 1\nlink 0 2\nlink 1 3\nlink 1 4\n",
        "members 7\nlink 0 1\nlink 1 2\nlink 2 3\nlink 3 4\nlink 4 5\nlink 5 6\n",
        ("members 9\nlink 0 1\nlink 0 2\nlink 0 3\nlink 3 4 # a branch\nlink 4 5\nlink 4 6\n"
         "link 2 7\nlink 7 8\n"),
        "members 2\n\nlink 1 0\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++)
        for (int pieces = 1; pieces < 9; pieces += 7) {
            struct error err = ERROR_INIT;
            struct topology topology = {0};
            struct sum_schedule s = {0};
            int parents[16], on_links[32];
            if (topology_parse(&topology, trees[i], "tree", &err) ||
                topology_parents(&topology, parents, &err))
                fail_msg("%s", err.text);
            const struct schedule_request request = {.kind = SCHEDULE_TREE,
                                                     .n_members = topology.n_members,
                                                     .n_pieces = pieces,
                                                     .parents = parents,
                                                     .topology = &topology};
            assert_int_equal(schedule_make(&request, &s, &err), 0);
            check(&s, &topology, on_links);
            for (size_t k = 0; k < 2 * topology.links.n; k++)
                assert_int_equal(on_links[k], pieces);
            schedule_release(&s);
            /* any schedule finds rounds on it */
            for (int kind = SCHEDULE_DIRECT; kind <= SCHEDULE_TWO_LEVEL; kind++) {
                make(&s, (enum schedule_kind)kind, topology.n_members, 0, &topology);
                check(&s, &topology, NULL);
                schedule_release(&s);
            }
            topology_release(&topology);
        }
}

static void texts_that_are_no_topology_are_refused(void **state)
{
    static const char *const texts[][2] = {
        {"", "t: it does not say 'members N'"},
        {"link 0 1\n", "t:1: 'link 0 1' joins no two"},
        {"members 3\nlink 0 3\n", "t:2: 'link 0 3' joins no two of 3 members"},
        {"members 3\nlink 1 1\n", "t:2: 'link 1 1' joins no two"},
        {"members 3\nmembers 3\n", "t:2: 'members 3' is not said once"},
        {"members 100000\n", "t:1: 'members 100000' is not said once"},
        {"members 3\nlink 0 1 2\n", "t:2: 'link' is neither"},
        {"members 3\nlink 0 1\n", "t: members 0 and 2 are not joined"},
        {"members 2\nlink 0 a\nlink 1 b\n", "t: members 0 and 1 are not joined"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error err = ERROR_INIT;
        struct topology topology = {0};
        assert_int_equal(topology_parse(&topology, texts[i][0], "t", &err), ERR_DATA);
        if (!strstr(err.text, texts[i][1]))
            fail_msg("expected '%s' in: %s", texts[i][1], err.text);
        topology_release(&topology);
    }
}

/* ---- faults ---- */

/* Changes one thing. False: what it is now may be right as well. */
static bool spoil(struct sum_schedule *s, uint64_t *random)
{
    size_t at = (size_t)(unit_random(random) % s->flows.n);
    struct schedule_flow *flow = &s->flows.items[at];
    struct schedule_flow was = *flow;
    switch (unit_random(random) % 6) {
    case 0: /* it is missing */
        for (; at + 1 < s->flows.n; at++)
            s->flows.items[at] = s->flows.items[at + 1];
        s->flows.n--;
        return true;
    case 1: /* twice */
        vec_push(&s->flows, was);
        for (size_t i = s->flows.n - 1; i > at; i--)
            s->flows.items[i] = s->flows.items[i - 1];
        return true;
    case 2:
        flow->to = (int)(unit_random(random) % (uint64_t)(s->n_members + 1));
        /* what is added elsewhere may get there all the same */
        return flow->to != was.to && was.operation != SCHEDULE_ADD;
    case 3:
        flow->from = (int)(unit_random(random) % (uint64_t)(s->n_members + 1));
        /* another may have the whole sum, and a free link, then */
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
        struct topology topology = {0};
        struct sum_schedule s;
        int n = 2 + (int)(unit_random(&random) % 15), on_line = (int)(unit_random(&random) % 2);
        enum schedule_kind kind = (enum schedule_kind)(unit_random(&random) % 6);
        (on_line ? topology_line : topology_mesh)(&topology, n);
        make(&s, kind, n, unit_random(&random) % 2 ? 7 : 0, &topology);
        if (spoil(&s, &random) && !schedule_check(&s, &topology, NULL, &report, &err))
            fail_msg("FAULTS_SEED=%llu: %s of %d members with a fault is taken",
                     (unsigned long long)seed, schedule_name(kind), n);
        schedule_release(&s);
        topology_release(&topology);
    }
}

static void a_link_carries_one_flow_at_a_time(void **state)
{
    struct error err = ERROR_INIT;
    struct schedule_report report;
    struct topology line = {0};
    struct sum_schedule s;
    (void)state;
    topology_line(&line, 3);
    make(&s, SCHEDULE_DIRECT, 3, 0, NULL); /* as if each had a link to each */
    assert_int_equal(schedule_check(&s, &line, NULL, &report, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "round 0"));
    assert_non_null(strstr(err.text, "a link on its way carries another flow"));
    schedule_release(&s);
    topology_release(&line);
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
        cmocka_unit_test(each_is_whole_on_each_topology),
        cmocka_unit_test(rounds_and_bytes_are_the_formulas),
        cmocka_unit_test(halving_of_a_power_of_two_sends_as_little_as_a_ring),
        cmocka_unit_test(two_levels_send_once_between_hosts),
        cmocka_unit_test(trees_are_read),
        cmocka_unit_test(texts_that_are_no_topology_are_refused),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(a_link_carries_one_flow_at_a_time),
        cmocka_unit_test(sums_have_the_bits_of_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
