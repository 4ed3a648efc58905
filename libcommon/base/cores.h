/* SPDX-License-Identifier: Apache-2.0
 *
 * How many cores this process may use.
 */
#ifndef TF_BASE_CORES_H
#define TF_BASE_CORES_H

/* The cores of the process' affinity mask, or as many as the processor time that its control group
 * (version 1 or 2) is allowed, rounded up, if that is less; at least 1. Counted once. */
int cores_usable(void);

/* The allowance of a version 2 file cpu.max, "max 100000" or "150000 100000", as cores; 0: none. */
double cores_of_cpu_max(const char *text);

/* The least that the control groups of a process are allowed, and all those above them, as cores;
 * 0: no limit. `groups` is what /proc/PID/cgroup says, lines "NUMBER:CONTROLLERS:PATH" ("0::PATH"
 * for version 2), and `root` the folder where groups are mounted, /sys/fs/cgroup. */
double cores_of_groups(const char *root, const char *groups);

#endif
