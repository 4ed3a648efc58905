/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "ps/guard.h"
#include "ps/pidfd.h"

/* The environment as it was when the program began; empty of a zombie, and of what is another
 * user's. */
static void read_environment(const char *pid, struct str *text)
{
    char path[64], bytes[4096];
    ssize_t n;
    str_clear(text);
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0)
        str_append_bytes(text, bytes, (size_t)n);
    close_if_open(fd);
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
        int fd = pidfd_of(pid); /* first: from here on the number is nobody else's */
        read_environment(entry->d_name, &environment);
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
