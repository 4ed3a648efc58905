/* SPDX-License-Identifier: Apache-2.0
 *
 * The time of a sum by a schedule, in cases that can be worked out by hand.
 */
#include <math.h>
#include <string.h>

#include "lib/unit.h"
#include "pass/place/cost.h"

#define MEBI 1048576.0
#define LATENCY 50e3 /* ns of a link without stated latency */

static struct cost_sum cost(enum schedule_kind kind, int n, const char *text, double bytes)
{
    struct cluster cluster = {0};
    struct cost_sum sum = {0};
    struct error err = ERROR_INIT;
    if (text && cluster_parse(&cluster, text, "c", &err))
        fail_msg("%s", err.text);
    const struct cost_sum_query query = {kind, "worker", n, text ? &cluster : NULL};
    if (cost_schedule(&query, bytes, &sum, &err))
        fail_msg("%s", err.text);
    cluster_release(&cluster);
    return sum;
}

static void expect(struct cost_sum sum, double bytes, double ns)
{
    if (fabs(sum.bytes - bytes) > 1e-6 * bytes || fabs(sum.ns - ns) > 1e-6 * ns)
        fail_msg("%.0f bytes, %.0f ns; expected %.0f, %.0f", sum.bytes, sum.ns, bytes, ns);
}

/* A byte takes a nanosecond, and the latencies are those of one piece's rounds. */
static void links_of_which_nothing_is_said(void **state)
{
    double m = 12 * MEBI;
    (void)state;
    for (int n = 2; n <= 16; n++) {
        expect(cost(SCHEDULE_RING, n, NULL, m), 2.0 * (n - 1) / n * m,
               2.0 * (n - 1) / n * m + 2 * (n - 1) * LATENCY);
        expect(cost(SCHEDULE_DIRECT, n, NULL, m), 2.0 * (n - 1) / n * m, 2.0 / n * m + 2 * LATENCY);
    }
    /* 96 pieces, one after the other: up to five more rounds each way */
    expect(cost(SCHEDULE_CHAIN, 6, NULL, m), 2 * m, (96 + 2 * 5 - 1) * m / 96 + 10 * LATENCY);
    expect(cost(SCHEDULE_CHAIN, 2, NULL, m), m, (96 + 1) * m / 96 + 2 * LATENCY);
}

static const char two_hosts[] = "task worker:0 a:1\ntask worker:1 a:2\ntask worker:2 a:3\n"
                                "task worker:3 b:1\ntask worker:4 b:2\ntask worker:5 b:3\n"
                                "host a bandwidth=10M\nhost b bandwidth=10M\n"
                                "link * * bandwidth=1000G latency=1us\n";

/* All traffic between hosts goes through one adapter. */
static void adapters_bind(void **state)
{
    double m = 12 * MEBI, second = 1e9 * m / (10 * MEBI); /* for all of it through an adapter */
    struct cost_sum direct = cost(SCHEDULE_DIRECT, 6, two_hosts, m);
    struct cost_sum two_level = cost(SCHEDULE_TWO_LEVEL, 6, two_hosts, m);
    struct cost_sum ring = cost(SCHEDULE_RING, 6, two_hosts, m);
    (void)state;
    /* three parts of six from each of three, there and back; 1.3 times as long, as flows meet */
    assert_true(fabs(direct.ns / (1.3 * 3 * second) - 1) < 0.01);
    /* once there, and at the same time once back; rounds without traffic between hosts are free */
    assert_true(fabs(two_level.ns / second - 1) < 0.03);
    assert_true(fabs(ring.ns / (second * 10 / 6) - 1) < 0.01);
}

/* Rings of four on one core: each member sends and receives each byte of 2 (n - 1) / n of the
 * value. */
static void cores_are_shared(void **state)
{
    double m = 12 * MEBI, crosses = 2.0 * 3 / 4 * m, links = crosses, cores = 1.5 * 8 * crosses;
    static const char one_core[] = "task worker:0 a:1\ntask worker:1 a:2\ntask worker:2 a:3\n"
                                   "task worker:3 a:4\nhost a cores=1\n";
    (void)state;
    /* six rounds of four messages, each with two ends of 60 us */
    expect(cost(SCHEDULE_RING, 4, one_core, m), crosses,
           sqrt(links * links + cores * cores) + 6 * LATENCY + 6 * 4 * 2 * 60e3);
}

static void what_has_no_schedule_is_refused(void **state)
{
    const struct cost_sum_query many = {SCHEDULE_RING, "worker", 65, NULL};
    const struct cost_sum_query no_hosts = {SCHEDULE_TWO_LEVEL, "worker", 4, NULL};
    struct cost_sum sum;
    struct error err = ERROR_INIT;
    (void)state;
    assert_int_equal(cost_schedule(&many, 1e6, &sum, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "1 to 64 workers"));
    err = error_none();
    assert_int_equal(cost_schedule(&no_hosts, 1e6, &sum, &err), ERR_DATA);
    assert_non_null(strstr(err.text, "hosts, which are not said"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_of_which_nothing_is_said),
        cmocka_unit_test(adapters_bind),
        cmocka_unit_test(cores_are_shared),
        cmocka_unit_test(what_has_no_schedule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
