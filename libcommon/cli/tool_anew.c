/* SPDX-License-Identifier: Apache-2.0
 *
 * Begins the file that is stdout anew when it is large. A reader that follows it by name finds the
 * new file before the end of the old one's stream, and so knows that there is more.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/tool_private.h"

static char path[PATH_MAX]; /* of the file when first looked at; "": not yet */

int tool_limit_check(struct error *err)
{
    if (tool_output)
        return error_set(err, ERR_USAGE, "a limit is for stdout, not for -o");
    /* The name that the system reports for the open file. */
    struct stat status;
    ssize_t n = -1;
    if (!fstat(STDOUT_FILENO, &status) && S_ISREG(status.st_mode) && status.st_nlink)
        n = readlink("/proc/self/fd/1", path, sizeof path - 1);
    if (n < 0)
        return error_set(err, ERR_USAGE, "a limit is for a file, which stdout is not");
    path[n] = '\0';
    return 0;
}

/* Inserts a word: run/worker-0.rec becomes run/worker-0.WORD.rec. */
static void name_aside(const char *name, const char *word, struct str *aside)
{
    const char *dot = strrchr(name, '.');
    if (!dot || strchr(dot, '/'))
        dot = name + strlen(name);
    str_append_bytes(aside, name, (size_t)(dot - name));
    str_printf(aside, ".%s%s", word, dot);
}

int tool_limit_output(struct tool *tool, int64_t limit, struct error *err)
{
    static bool has_said;
    struct stat own, there;
    if (!tool->writer || has_said || fstat(STDOUT_FILENO, &own) || own.st_size <= limit)
        return 0;
    /* Another program may have moved the file, as logrotate does; then its name is free. */
    bool is_gone = stat(path, &there);
    if (is_gone ? errno == ENOENT : own.st_dev == there.st_dev && own.st_ino == there.st_ino) {
        struct str made = STR_INIT, old = STR_INIT;
        name_aside(path, "new", &made);
        name_aside(path, "old", &old);
        int fd = open(str_text(&made), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        int code = fd < 0 ? error_set_errno(err, ERR_IO, "%s", str_text(&made)) : 0;
        /* Replace the old file by the new one, if possible without a moment in which the name is
         * missing. */
        if (!code)
            unlink(str_text(&old));
        if (!code && link(path, str_text(&old)) && rename(path, str_text(&old)) && errno != ENOENT)
            code = error_set_errno(err, ERR_IO, "%s", str_text(&old));
        if (!code && rename(str_text(&made), path))
            code = error_set_errno(err, ERR_IO, "%s", path);
        if (!code)
            code = stream_finish(tool->writer, err);
        if (!code && dup2(fd, STDOUT_FILENO) < 0)
            code = error_set_errno(err, ERR_OS, "%s", path);
        if (!code)
            stream_begin_anew(tool->writer);
        if (fd >= 0)
            close(fd);
        str_release(&made);
        str_release(&old);
        return code;
    }
    tool_say(tool, "%s: is another file now; what is written goes on as it was, without a limit",
             path);
    has_said = true;
    return 0;
}
