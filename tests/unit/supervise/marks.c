/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that belong to a supervisor are found by their environment, also during an exec.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"
#include "supervise/reaper.h"

#define LOOKS 1000

/* A process that does nothing but exec itself again. */
static pid_t start_becoming(const char *mark)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    setenv(MARK_NAME, mark, 1);
    execl("/bin/sh", "sh", "-c", "exec \"$0\" -c \"$1\" \"$0\" \"$1\"", "/bin/sh",
          "exec \"$0\" -c \"$1\" \"$0\" \"$1\"", (char *)NULL);
    _exit(127);
}

static void test_one_in_exec_is_found(void **state)
{
    char prefix[32], mark[40];
    (void)state;
    snprintf(prefix, sizeof prefix, "%ld.", (long)getpid());
    snprintf(mark, sizeof mark, "%s7", prefix);
    pid_t pid = start_becoming(mark);
    while (!marks_kill(mark, 0, NULL, NULL))
        ;
    int missed = 0;
    for (int i = 0; i < LOOKS; i++)
        missed += marks_kill(prefix, 0, NULL, NULL) != 1;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(missed, 0);
    assert_int_equal(marks_kill(prefix, 0, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_in_exec_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
