/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cores.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define TEXT_BYTES 4096
#define CORES_MAX 8192 /* that an affinity mask may name */

static bool read_small(const char *path, char text[TEXT_BYTES])
{
    text[file_read_part(path, 0, text, TEXT_BYTES - 1)] = '\0';
    return *text;
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

/* Reads the limit from the folder of a group: one file, or the two of version 1. */
static double limit_of(const char *folder, bool second)
{
    char path[2 * TEXT_BYTES], text[TEXT_BYTES], period[TEXT_BYTES];
    snprintf(path, sizeof path, second ? "%s/cpu.max" : "%s/cpu.cfs_quota_us", folder);
    if (!read_small(path, text))
        return 0;
    if (second)
        return cores_of_cpu_max(text);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_small(path, period) || atof(text) <= 0 || atof(period) <= 0)
        return 0;
    return atof(text) / atof(period);
}

/* A group may use the least that it and all groups above it are allowed. Within a container the
 * path may be one of the host: then the mounted root, read last, has the limits. */
static double allowance(const char *mounted, const char *group, bool second)
{
    char folder[TEXT_BYTES + 64];
    size_t root = strlen(mounted);
    double cores = 0;
    if (snprintf(folder, sizeof folder, "%s%s", mounted, group) >= (int)sizeof folder)
        return 0;
    for (;;) {
        cores = least(cores, limit_of(folder, second));
        char *slash = strrchr(folder + root, '/');
        if (!slash)
            return cores;
        *slash = '\0';
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, word, length) && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

/* A controller of version 1 has a folder named after it, or after all controllers that are mounted
 * with it. Groups of version 2 are in `unified` beside such folders, or directly under the root. */
double cores_of_groups(const char *root, const char *groups)
{
    char text[TEXT_BYTES], mounted[TEXT_BYTES];
    double cores = 0;
    snprintf(text, sizeof text, "%s", groups);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        char *controllers = strchr(line, ':'),
             *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        bool second = !*controllers;
        if (!second && !has_word(controllers, "cpu"))
            continue;
        cores = least(cores, second ? allowance(root, group, true) : 0);
        snprintf(mounted, sizeof mounted, "%s/%s", root, second ? "unified" : "cpu");
        cores = least(cores, allowance(mounted, group, second));
        if (!second && strcmp(controllers, "cpu") != 0) {
            snprintf(mounted, sizeof mounted, "%s/%s", root, controllers);
            cores = least(cores, allowance(mounted, group, false));
        }
    }
    return cores;
}

static int usable;

static void count(void)
{
    char groups[TEXT_BYTES];
    double allowed = !read_small("/proc/self/cgroup", groups)
                         ? 0
                         : ceil(cores_of_groups("/sys/fs/cgroup", groups));
    cpu_set_t *set = CPU_ALLOC(CORES_MAX);
    size_t bytes = CPU_ALLOC_SIZE(CORES_MAX);
    int n = set && !sched_getaffinity(0, bytes, set) ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    int cores = n > 0 ? n : 1;
    usable = allowed >= 1 && allowed < cores ? (int)allowed : cores;
}

int cores_usable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count);
    return usable;
}
