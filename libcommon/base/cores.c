/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cores.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 4096
#define GROUP_FOLDER "/sys/fs/cgroup"
#define CORES_MAX 8192 /* that an affinity mask may name */

static int read_small(const char *path, char text[TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_BYTES - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? 0 : -1;
}

double cores_of_cpu_max(const char *text)
{
    double quota, period;
    return sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0 ? quota / period
                                                                                    : 0;
}

static double least(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

/* A group has what it and all those above it are allowed. */
static double allowance_v2(char *group)
{
    char path[TEXT_BYTES + 64], text[TEXT_BYTES];
    double cores = 0;
    for (;;) {
        snprintf(path, sizeof path, GROUP_FOLDER "%s/cpu.max", group);
        if (!read_small(path, text))
            cores = least(cores, cores_of_cpu_max(text));
        char *slash = strrchr(group, '/');
        if (!slash)
            return cores;
        *slash = '\0';
    }
}

static double allowance_v1(const char *group)
{
    char path[TEXT_BYTES + 64], quota[TEXT_BYTES], period[TEXT_BYTES];
    snprintf(path, sizeof path, GROUP_FOLDER "/cpu%s/cpu.cfs_quota_us", group);
    if (read_small(path, quota))
        return 0;
    snprintf(path, sizeof path, GROUP_FOLDER "/cpu%s/cpu.cfs_period_us", group);
    if (read_small(path, period) || atof(quota) <= 0 || atof(period) <= 0)
        return 0;
    return atof(quota) / atof(period);
}

/* Lines "NUMBER:CONTROLLERS:PATH"; version 2 has "0::PATH". Within a container the path may be one
 * of the host: then the root of what is mounted has the limits. */
static double allowance(void)
{
    char text[TEXT_BYTES], root[] = "";
    double cores = 0;
    if (read_small("/proc/self/cgroup", text))
        return 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (!*controllers)
            cores = least(cores, allowance_v2(group));
        else if (!strcmp(controllers, "cpu") || !strncmp(controllers, "cpu,", 4))
            cores = least(cores, allowance_v1(group));
    }
    return least(cores, least(allowance_v2(root), allowance_v1(root)));
}

static int affine(void)
{
    cpu_set_t *set = CPU_ALLOC(CORES_MAX);
    size_t bytes = CPU_ALLOC_SIZE(CORES_MAX);
    int n = set && !sched_getaffinity(0, bytes, set) ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    return n > 0 ? n : 1;
}

static int usable;

static void count(void)
{
    double allowed = ceil(allowance());
    int cores = affine();
    usable = allowed >= 1 && allowed < cores ? (int)allowed : cores;
}

int cores_usable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count);
    return usable;
}
