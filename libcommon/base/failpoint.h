/* SPDX-License-Identifier: Apache-2.0
 *
 * Named places where a test can make a process fail. They are compiled into every build, so that
 * what is tested is what is installed; a place that is not armed costs one predictable branch.
 *
 *     if (FAILPOINT("ps.apply"))
 *         return error_set(err, ERR_IO, "failpoint ps.apply");
 *
 * The environment variable TF_FAILPOINTS, read once at program start, lists the places and what
 * happens there: NAME:NTH:ACTION,... The NTHth time (1: the first; *: each time) that a thread of
 * the process reaches the place, the action is done: kill (SIGKILL), stop (SIGSTOP), error
 * (FAILPOINT is true), delay=MS. A list that cannot be parsed ends the program with ERR_CONFIG.
 */
#ifndef TF_BASE_FAILPOINT_H
#define TF_BASE_FAILPOINT_H

#include <stdbool.h>

#define FAILPOINT(name) (__builtin_expect(failpoints_armed, 0) && failpoint_reached(name))

extern bool failpoints_armed; /* set before main */

/* Does what the list says for this place. Returns true if the action is "error". Any thread. */
bool failpoint_reached(const char *name);

#endif
