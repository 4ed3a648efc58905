/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the job, in a file that appears whole, and what is asked from outside: the folder's
 * lock says whether the supervisor lives, and a signal ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ps/guard.h"
#include "ps/supervise_private.h"

#define STATE_NAME "run.json"
#define STATE_BYTES (64 << 20) /* at most */

/* ---- the text ---- */

static const char *state_name(const struct task *task)
{
    if (task->main.pid)
        return task->life.ready ? "ready" : task->life.told_to_end ? "ending" : "running";
    return task->life.done  ? "done"
           : task->start_at ? "waiting to start"
           : task->starts   ? "ended"
                            : "not started";
}

static char *state_json(const struct supervisor *s)
{
    json_t *tasks = json_array();
    for (const struct task *task = s->tasks; task; task = task->next) {
        json_array_append_new(tasks, json_pack("{s:s, s:I, s:s, s:i, s:i, s:s}", "task", task->name,
                                               "pid", (json_int_t)task->pid, "state",
                                               state_name(task), "starts", task->starts, "restarts",
                                               task->restarts, "ended", task->life.ended));
    }
    json_t *all = json_pack("{s:I, s:s, s:s, s:I, s:i, s:s, s:i, s:o}", "pid", (json_int_t)getpid(),
                            "state", s->phase_name, "why", s->why ? s->why : "", "step",
                            (json_int_t)s->step, "restarts", s->n_restarts, "max_restarts",
                            s->budget.text, "result", s->result, "tasks", tasks);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}

/* Whatever the umask, who may enter the folder may read it. */
static void replace(const char *folder, const char *text)
{
    struct str path = STR_INIT, temporary = STR_INIT;
    str_printf(&path, "%s/" STATE_NAME, folder);
    str_printf(&temporary, "%s/." STATE_NAME, folder);
    int fd = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        fchmod(fd, 0644);
        if (dprintf(fd, "%s\n", text) > (int)strlen(text))
            rename(temporary.data, path.data);
        close(fd);
    }
    str_release(&path);
    str_release(&temporary);
}

void state_write(struct supervisor *s)
{
    char *text = s->folder ? state_json(s) : NULL;
    if (text && strcmp(text, str_text(&s->state))) {
        replace(s->folder, text);
        str_clear(&s->state);
        str_append(&s->state, text);
    }
    free(text);
}

/* ---- asking ---- */

static char *read_state(const char *folder)
{
    struct error ignored = ERROR_INIT;
    struct str path = STR_INIT, state = STR_INIT;
    str_printf(&path, "%s/" STATE_NAME, folder);
    file_read(path.data, STATE_BYTES, &state, &ignored);
    str_release(&path);
    return state.data;
}

int supervise_ask(const char *folder, bool stop, char **state, struct error *err)
{
    pid_t pid = 0;
    char begin[32];
    int owner = guard_owner(folder, &pid);
    struct pollfd wait = {.fd = owner, .events = POLLIN};
    snprintf(begin, sizeof begin, "{\"pid\":%ld,", (long)pid);
    *state = NULL;
    if (stop && owner >= 0 && pidfd_send_signal(owner, SIGTERM, NULL, 0))
        error_set_errno(err, errno == EPERM ? ERR_DENIED : ERR_OS, "process %ld", (long)pid);
    else if (stop && owner >= 0)
        poll(&wait, 1, -1);
    else if (!(*state = read_state(folder)))
        error_set(err, ERR_NOINPUT, "job directory %s: no tf-run was ever there", folder);
    else if (!str_starts(*state, begin) && !strstr(*state, "\"state\":\"over\""))
        error_set(err, ERR_UNAVAILABLE, "job directory %s: its tf-run has died", folder);
    close_if_open(owner);
    return err->code;
}
