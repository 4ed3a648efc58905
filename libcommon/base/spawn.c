/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "base/vec.h"

extern char **environ;

static void put(posix_spawn_file_actions_t *actions, int fd, int to)
{
    if (fd >= 0)
        posix_spawn_file_actions_adddup2(actions, fd, to);
    else
        posix_spawn_file_actions_addopen(actions, to, "/dev/null", O_RDWR, 0);
}

int spawn_program(const struct spawn *spawn, pid_t *pid)
{
    char **words = (char **)spawn->words;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    VEC(char *) environment = VEC_INIT; /* of two settings of one name, the first counts */
    for (const char *const *at = spawn->environment; at && *at; at++)
        vec_push(&environment, (char *)*at);
    for (char **at = environ; *at; at++)
        vec_push(&environment, *at);
    vec_push(&environment, NULL);
    posix_spawnattr_init(&attributes);
    if (spawn->session) {
        static const int reset[] = {SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
        sigset_t some, none;
        sigemptyset(&none);
        sigemptyset(&some);
        for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
            sigaddset(&some, reset[i]);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                                  POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigdefault(&attributes, &some);
        posix_spawnattr_setsigmask(&attributes, &none);
    }
    posix_spawn_file_actions_init(&actions);
    put(&actions, spawn->in, STDIN_FILENO);
    put(&actions, spawn->out, STDOUT_FILENO);
    put(&actions, spawn->err, STDERR_FILENO);
    if (spawn->as)
        put(&actions, spawn->inherited, spawn->as);
    int code = posix_spawnp(pid, *words, &actions, &attributes, words, environment.items);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    vec_release(&environment);
    if (code)
        *pid = 0;
    return code;
}
