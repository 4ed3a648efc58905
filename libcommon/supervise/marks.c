/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "supervise/pidfd.h"
#include "supervise/reaper.h"

/* A millisecond apart. */
#define EXEC_LOOKS 1000
#define EMPTY_LOOKS 3

/* Reads a file of the process's folder in /proc, as far as it can be read. */
static void read_file(const char *pid, const char *name, struct str *text)
{
    struct error ignored = ERROR_INIT;
    char path[64];
    str_clear(text);
    snprintf(path, sizeof path, "/proc/%.20s/%s", pid, name);
    file_read(path, SIZE_MAX, text, &ignored);
}

/* Gets a field of proc_pid_stat(5), from the fourth on. Returns false if it is missing. */
static bool find_field(const struct str *stat, int field, unsigned long long *value)
{
    const char *at = stat->n ? strrchr(str_text(stat), ')') : NULL;
    for (int i = 2; at && i < field; i++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, "%llu", value) == 1;
}

/* Returns how often to retry an environment that was not readable. During exec, a process first has
 * no environment, or still the old one; then it has one that is empty until it is written. A
 * program started without any variables has an empty one for good, but it has a start of its code,
 * which is set last; a process in exec has none. Fields 26, 50 and 51: start of the code, start and
 * end of the environment. */
static int looks_worth(const char *pid, struct str *text)
{
    char path[64], program[2];
    unsigned long long code = 0, begin = 0, end = 0;
    snprintf(path, sizeof path, "/proc/%.20s/exe", pid);
    if (readlink(path, program, sizeof program) < 0)
        return 0; /* a zombie, a kernel thread, another user's process */
    read_file(pid, "stat", text);
    bool is_known =
        find_field(text, 26, &code) && find_field(text, 50, &begin) && find_field(text, 51, &end);
    str_clear(text);
    return !is_known ? 0 : code && begin && begin == end ? EMPTY_LOOKS : EXEC_LOOKS;
}

static const char *find_mark(const struct str *environment, const char *prefix)
{
    static const char name[] = MARK_NAME "=";
    const char *at = environment->data, *end = at ? at + environment->n : at;
    for (; at < end; at += strlen(at) + 1)
        if (str_starts(at, name) && str_starts(at + sizeof name - 1, prefix))
            return at + sizeof name - 1;
    return NULL;
}

int marks_kill(const char *prefix, int signal,
               bool (*spares)(void *context, pid_t pid, const char *mark), void *context)
{
    struct str environment = STR_INIT;
    struct dirent *entry;
    int n = 0;
    DIR *all = opendir("/proc");
    while (all && (entry = readdir(all))) {
        if (!isdigit((unsigned char)*entry->d_name))
            continue;
        pid_t pid = (pid_t)atol(entry->d_name);
        int fd = pidfd_of(pid); /* first: from here on the ID cannot be reused */
        /* The environment at program start; empty for a zombie, and for another user's process. A
         * process in exec has none for a moment, during which it must not be missed. */
        read_file(entry->d_name, "environ", &environment);
        for (int i = 0; !environment.n && i < looks_worth(entry->d_name, &environment); i++) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            read_file(entry->d_name, "environ", &environment);
        }
        const char *mark = fd >= 0 ? find_mark(&environment, prefix) : NULL;
        if (mark && (!spares || !spares(context, pid, mark))) {
            pidfd_kill(fd, signal);
            n++;
        }
        close_if_open(fd);
    }
    if (all)
        closedir(all);
    str_release(&environment);
    return n;
}
