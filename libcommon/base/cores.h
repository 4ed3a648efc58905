/* SPDX-License-Identifier: Apache-2.0
 *
 * How many cores this process may use.
 */
#ifndef TF_BASE_CORES_H
#define TF_BASE_CORES_H

/* Returns the number of cores in the process' affinity mask or, if less, the processor time that
 * its control group (version 1 or 2) allows, rounded up; at least 1. Counted once. */
int cores_usable(void);

/* Converts a version 2 file cpu.max, "max 100000" or "150000 100000", to cores; 0: no limit. */
double cores_of_cpu_max(const char *text);

/* Returns the smallest limit of a process' control groups and all groups above them, in cores; 0:
 * no limit. `groups` is the text of /proc/PID/cgroup, lines "NUMBER:CONTROLLERS:PATH" ("0::PATH"
 * for version 2), and `root` the folder where groups are mounted, /sys/fs/cgroup. */
double cores_of_groups(const char *root, const char *groups);

#endif
