/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks: shell lines of the file that run between the phases of a job.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "supervise/supervise_private.h"

/* Opens a table for reading, with a line for each task. */
static int open_table(const struct supervisor *s)
{
    int fd = memfd_create("tasks", MFD_CLOEXEC);
    for (const struct task *task = s->tasks; task; task = task->next) {
        const char *how = task->main.pid ? "running" : "?";
        dprintf(fd, "%s %ld %d %s\n", task->name, task->pid, task->restarts,
                *task->life.ended ? task->life.ended : how);
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Returns false if there is no such hook, or it cannot be run. */
bool run_hook(struct supervisor *s, enum hook kind, struct task *about)
{
    struct arena arena = ARENA_INIT;
    bool speaks = kind == HOOK_RESTART || kind == HOOK_END;
    s->hook_status = -1;
    s->said[0] = '\0';
    if (!s->hooks[kind])
        return false;
    s->options.progress(s->options.context, NULL);
    s->hook_out = speaks ? memfd_create("said", MFD_CLOEXEC) : -1;
    const char *words[] = {arena_printf(&arena, "JOB_TASK=%s", about ? about->name : "all"),
                           arena_printf(&arena, "JOB_ENDED=%s", about ? about->life.ended : ""),
                           arena_printf(&arena, "JOB_STEP=%" PRId64, s->step),
                           arena_printf(&arena, "JOB_WHY=%s", s->why ? s->why : "END"),
                           arena_printf(&arena, "JOB_SAVED=%s", s->saved ? "1" : ""),
                           arena_printf(&arena, "JOB_RESULT=%d", s->result),
                           arena_printf(&arena, "JOB_VALUES=%s", s->values),
                           NULL};
    struct spawn how = {.environment = words,
                        .in = open_table(s),
                        .out = speaks ? s->hook_out : STDERR_FILENO,
                        .err = STDERR_FILENO};
    if (start_shell(s, &s->hook, s->hooks[kind], how))
        close_if_open(s->hook_out);
    else
        s->about = about;
    s->hook_kind = kind;
    late_begin(&s->hook);
    close_if_open(how.in);
    arena_release(&arena);
    return s->hook.pid;
}

/* Reads the hook `restart`: "step 300" is where the job continues; the rest is for the user. */
void hook_ended(struct supervisor *s, struct process *hook, int status)
{
    char said[4 * TEXT_BYTES] = "", *rest = said, *line;
    (void)hook;
    s->hook_status = status;
    s->hook_ended_at = time_now();
    s->saved |= s->phase == PHASE_SAVE && !status;
    if (s->hook_out < 0 || pread(s->hook_out, said, sizeof said - 1, 0) < 0)
        return;
    while ((line = strsep(&rest, "\n")))
        if (sscanf(line, "step %" SCNd64, &s->step) != 1 && *line)
            snprintf(s->said, sizeof s->said, "%s", line);
    close(s->hook_out);
    s->hook_out = -1;
}

/* A hook that was killed runs again: a signal to our process group also reaches a hook that has no
 * session of its own yet. */
bool hook_begins_again(struct supervisor *s, enum hook kind)
{
    return s->hook_status > 128 && !s->killed_at && s->hook_tries++ < HOOK_TRIES &&
           run_hook(s, kind, NULL);
}
