/* SPDX-License-Identifier: Apache-2.0
 *
 * Cores and times.
 */
#include "base/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "lib/unit.h"

static void test_what_a_control_group_allows(void **state)
{
    (void)state;
    assert_true(cores_of_cpu_max("max 100000\n") == 0);
    assert_true(cores_of_cpu_max("150000 100000\n") == 1.5);
    assert_true(cores_of_cpu_max("50000 100000\n") == 0.5);
    assert_true(cores_of_cpu_max("") == 0);
    assert_true(cores_of_cpu_max("-1 100000") == 0);
    assert_true(cores_of_cpu_max("100000 0") == 0);
}

/* In a process of its own: they are counted once. */
static int count_with_one_core(void)
{
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    return cores_usable();
}

static void test_the_affinity_mask_counts(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (!child)
        _exit(count_with_one_core());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_in_range(cores_usable(), 1, sysconf(_SC_NPROCESSORS_ONLN));
}

static void test_deadlines_are_whole_nanoseconds(void **state)
{
    (void)state;
    for (double seconds = 0; seconds < 3; seconds += 0.37) {
        double before = time_now();
        struct timespec t = time_after(seconds);
        double after = time_now(), end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
        assert_in_range(t.tv_nsec, 0, 999999999);
        assert_true(end >= before + seconds - 1e-6 && end <= after + seconds + 1e-6);
    }
    assert_true(time_wall() > 1.7e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_control_group_allows),
        cmocka_unit_test(test_the_affinity_mask_counts),
        cmocka_unit_test(test_deadlines_are_whole_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
