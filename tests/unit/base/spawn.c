/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes: which variables and descriptors they get, and which they do not.
 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "lib/unit.h"

/* Reads the output of a line of shell; sets its exit status. */
static void run_line(const char *line, struct spawn spawn, struct str *text, int *status)
{
    const char *words[] = {"sh", "-c", line, NULL};
    char bytes[256];
    int ends[2];
    pid_t pid;
    ssize_t n;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    spawn.words = words;
    spawn.in = spawn.err = -1;
    spawn.out = ends[1];
    assert_int_equal(spawn_program(&spawn, &pid), 0);
    assert_true(pid > 0);
    close(ends[1]);
    str_clear(text);
    while ((n = read(ends[0], bytes, sizeof bytes)) > 0)
        str_append_bytes(text, bytes, (size_t)n);
    close(ends[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
}

static void test_descriptors_and_environment(void **state)
{
    const char *environment[] = {"SPAWN_A=1 2", "SPAWN_B=", NULL};
    struct str text = STR_INIT;
    int status, fds[2];
    (void)state;
    setenv("SPAWN_C", "ours", 1);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    close(fds[1]);
    struct spawn spawn = {.environment = environment, .inherited = fds[0], .as = 8};
    run_line("printf '[%s][%s][%s]' \"$SPAWN_A\" \"$SPAWN_B\" \"$SPAWN_C\"; cat <&8; cat; exit 3",
             spawn, &text, &status);
    assert_string_equal(str_text(&text), "[1 2][][ours]x");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    /* a descriptor that already has its number is not closed */
    assert_int_equal(dup3(fds[0], 8, O_CLOEXEC), 8);
    spawn.inherited = 8;
    run_line("[ -e /proc/self/fd/8 ] && printf there", spawn, &text, &status);
    assert_string_equal(str_text(&text), "there");
    close(8);
    close(fds[0]);
    str_release(&text);
}

static void test_a_session_has_signals_as_they_are_by_default(void **state)
{
    const char *line = "echo $(ps -o pid= -o sid= -p $$); kill -TERM $$; exit 0";
    struct str text = STR_INIT;
    sigset_t term, before;
    long pid, session;
    int status;
    (void)state;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    run_line(line, (struct spawn){.session = true}, &text, &status);
    assert_int_equal(sscanf(str_text(&text), "%ld %ld", &pid, &session), 2);
    assert_int_equal(pid, session);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    run_line(line, (struct spawn){0}, &text, &status);
    assert_int_equal(sscanf(str_text(&text), "%ld %ld", &pid, &session), 2);
    assert_int_equal(session, getsid(0));
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    sigprocmask(SIG_SETMASK, &before, NULL);
    str_release(&text);
}

static void test_what_is_not_there(void **state)
{
    const char *words[] = {"/nowhere/program", NULL};
    const struct spawn spawn = {.words = words, .in = -1, .out = -1, .err = -1};
    pid_t pid = 7;
    (void)state;
    assert_int_equal(spawn_program(&spawn, &pid), ENOENT);
    assert_int_equal(pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors_and_environment),
        cmocka_unit_test(test_a_session_has_signals_as_they_are_by_default),
        cmocka_unit_test(test_what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
