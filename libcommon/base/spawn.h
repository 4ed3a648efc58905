/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts programs.
 */
#ifndef TF_BASE_SPAWN_H
#define TF_BASE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
    const char *const *words;       /* of its command line, ended by NULL; the first is its name */
    const char *const *environment; /* NAME=VALUE, besides ours, ended by NULL; may be NULL */
    int in, out, err;               /* its descriptors 0 to 2; -1: /dev/null */
    int inherited, as;              /* one more, and its number there; as 0: none */
    /* It has a session of its own, in which no signal is blocked, and INT, QUIT, TERM and PIPE do
     * what they do by default. Otherwise it has what we have. */
    bool session;
};

/* The program is looked for in PATH if its name has no slash. Returns when it runs: errno, and then
 * *pid is 0. Thread-safe. */
int spawn_program(const struct spawn *spawn, pid_t *pid);

#endif
