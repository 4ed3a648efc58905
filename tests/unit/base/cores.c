/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of usable cores.
 */
#include "base/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void say(const char *root, const char *folder, const char *file, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    for (char *slash = path + strlen(root); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    strcat(strcat(path, "/"), file);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

static void remove_folder(const char *root)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

/* cgroups version 2: the smallest limit of a group and its ancestors counts. If a group is
 * invisible, as within a container, the root's limit counts. */
static void test_groups_of_version_2(void **state)
{
    char root[] = "/tmp/tf-cores-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_true(cores_of_groups(root, "0::/a/b\n") == 0);
    say(root, "a/b", "cpu.max", "max 100000\n");
    assert_true(cores_of_groups(root, "0::/a/b\n") == 0);
    say(root, "a", "cpu.max", "300000 100000\n");
    assert_true(cores_of_groups(root, "0::/a/b\n") == 3);
    assert_true(cores_of_groups(root, "0::/a\n") == 3);
    assert_true(cores_of_groups(root, "0::/\n") == 0);
    say(root, "a/b", "cpu.max", "50000 100000\n");
    assert_true(cores_of_groups(root, "0::/a/b\n") == 0.5);
    say(root, ".", "cpu.max", "200000 100000\n");
    assert_true(cores_of_groups(root, "0::/of/the/host\n") == 2);
    remove_folder(root);
}

/* cgroups version 1, with version 2 beside it for some controllers. */
static void test_groups_of_version_1(void **state)
{
    char root[] = "/tmp/tf-cores-XXXXXX";
    const char *groups = "5:memory:/m\n4:cpuset,cpu,cpuacct:/a/b\n3:cpuacct:/c\n0::/u\n";
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_true(cores_of_groups(root, groups) == 0);
    say(root, "cpu/a/b", "cpu.cfs_quota_us", "-1\n");
    say(root, "cpu/a/b", "cpu.cfs_period_us", "100000\n");
    assert_true(cores_of_groups(root, groups) == 0);
    say(root, "cpu/a", "cpu.cfs_quota_us", "400000\n");
    say(root, "cpu/a", "cpu.cfs_period_us", "100000\n");
    assert_true(cores_of_groups(root, groups) == 4);
    say(root, "cpu/c", "cpu.cfs_quota_us", "100000\n");
    say(root, "cpu/c", "cpu.cfs_period_us", "100000\n");
    assert_true(cores_of_groups(root, groups) == 4);
    say(root, "cpuset,cpu,cpuacct/a/b", "cpu.cfs_quota_us", "30000\n");
    say(root, "cpuset,cpu,cpuacct/a/b", "cpu.cfs_period_us", "10000\n");
    assert_true(cores_of_groups(root, groups) == 3);
    say(root, "unified/u", "cpu.max", "100000 50000\n");
    assert_true(cores_of_groups(root, groups) == 2);
    remove_folder(root);
}

/* Runs in a process of its own, as cores are counted once per process. */
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
        cmocka_unit_test(test_groups_of_version_2),
        cmocka_unit_test(test_groups_of_version_1),
        cmocka_unit_test(test_the_affinity_mask_counts),
        cmocka_unit_test(test_deadlines_are_whole_nanoseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
