/* SPDX-License-Identifier: Apache-2.0
 *
 * Named places where a test can make a process fail. They are compiled into every build, so that
 * what is tested is what is installed; a place that is not asked for costs one predictable branch.
 *
 *     if (FAILPOINT("ps.apply"))
 *         return error_set(err, ERR_IO, "failpoint ps.apply");
 *
 * The environment variable TF_FAILPOINTS, read once when the program starts, lists what happens
 * where: NAME:NTH:ACTION,... The NTHth time (1: the first; *: each time) that a thread of the
 * process comes by, the action is done: kill (SIGKILL), stop (SIGSTOP), error (FAILPOINT is true),
 * delay=MS. A list that cannot be read ends the program with ERR_CONFIG.
 */
#ifndef TF_BASE_FAILPOINT_H
#define TF_BASE_FAILPOINT_H

#include <stdbool.h>

#define FAILPOINT(name) (__builtin_expect(failpoints_armed, 0) && failpoint_reached(name))

extern bool failpoints_armed; /* set before main */

/* Does what the list says of this place. True: the action is "error". Any thread. */
bool failpoint_reached(const char *name);

#endif
