/* SPDX-License-Identifier: Apache-2.0
 *
 * Failpoints do what TF_FAILPOINTS says, at the time it says, and nothing otherwise. The list is
 * read when a program starts, so this program restarts itself with each list.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "lib/unit.h"

#define PASSES 4

/* Plays the program under test: passes two failpoints, and exits with one bit for each that failed.
 */
static int pass_places(void)
{
    int failed = 0;
    for (int i = 0; i < PASSES; i++) {
        failed |= FAILPOINT("test.first") ? 1 << i : 0;
        failed |= FAILPOINT("test.second") ? 16 << i : 0;
    }
    return failed;
}

static int run(const char *list, double *seconds)
{
    struct timespec start, end;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pid_t child = fork();
    if (!child) {
        setenv("TF_FAILPOINTS", list, 1);
        setenv("FAILPOINT_TEST", "1", 1);
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        execl("/proc/self/exe", "failpoint", (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return status;
}

static void exits(const char *list, int code)
{
    double seconds;
    int status = run(list, &seconds);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void test_actions(void **state)
{
    (void)state;
    double seconds;
    exits("", 0);
    exits("test.other:1:error", 0);
    exits("test.first:1:error", 1);
    exits("test.first:3:error", 4);
    exits("test.second:*:error", 0xf0);
    exits("test.first:2:error,test.second:4:error", 0x82);
    exits("test.first:9:kill", 0);
    int status = run("test.second:3:kill", &seconds);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = run("test.first:1:stop", &seconds);
    assert_true(WIFSTOPPED(status));
    status = run("test.first:*:delay=50", &seconds);
    assert_int_equal(status, 0);
    assert_true(seconds >= 0.2 && seconds < 2);
}

static void test_malformed(void **state)
{
    (void)state;
    static const char *const lists[] = {"x",         "test.first:1",          "test.first:0:error",
                                        ":1:error",  "test.first:1:jump",     "test.first:1:delay=",
                                        "a:b:error", "test.first:1:delay=-1", "a:1:kill,,"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        exits(lists[i], ERR_CONFIG);
}

int main(void)
{
    if (getenv("FAILPOINT_TEST"))
        return pass_places();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_actions),
        cmocka_unit_test(test_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
