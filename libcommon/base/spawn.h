/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts programs.
 */
#ifndef TF_BASE_SPAWN_H
#define TF_BASE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

struct spawn {
    const char *const *words;       /* command line, ended by NULL; the first is the program */
    const char *const *environment; /* NAME=VALUE, added to ours, ended by NULL; may be NULL */
    int in, out, err;               /* its descriptors 0 to 2; -1: /dev/null */
    int inherited, as;              /* one more, and its number in the program; as 0: none */
    /* Gives it a session of its own, with no signal blocked and default actions for INT, QUIT, TERM
     * and PIPE. Otherwise it inherits all of these. */
    bool session;
};

/* Looks for the program in PATH if its name has no slash. Returns 0 once it runs, or else errno,
 * with *pid 0. Thread-safe. */
int spawn_program(const struct spawn *spawn, pid_t *pid);

#endif
