/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the job, in a file that appears whole, and what is asked from outside: the control
 * socket answers. The folder's lock says who has it while nobody listens there.
 */
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ps/guard.h"
#include "ps/pidfd.h"
#include "ps/supervise_private.h"

#define STATE_NAME "run.json"
#define STATE_BYTES (64 << 20) /* at most */
#define STATUS_SECONDS 2.0     /* in which who is not frozen answers */

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
                            (json_int_t)s->step, "restarts", (int)s->restarts.n, "max_restarts",
                            s->budget.text, "result", s->result, "tasks", tasks);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

/* Who may enter the folder may read it. */
void state_write(struct supervisor *s)
{
    struct error ignored = ERROR_INIT;
    struct str path = STR_INIT, now = STR_INIT;
    char *text = state_json(s);
    str_printf(&now, "%s\n", text ? text : "");
    str_printf(&path, "%s/" STATE_NAME, s->folder ? s->folder : "");
    if (s->folder && strcmp(now.data, str_text(&s->state)) != 0)
        file_replace(path.data, 0644, now.data, now.n, &ignored);
    str_release(&s->state);
    str_release(&path);
    s->state = now;
    free(text);
}

/* ---- asking ---- */

/* What of a state others act upon. */
struct state_facts {
    pid_t pid; /* of the supervisor that wrote it */
    bool is_over;
};

/* The one place where a state is read; a text that is none says nothing. */
static struct state_facts state_parse(const struct str *state)
{
    json_t *all = json_loads(str_text(state), 0, NULL);
    const char *phase = json_string_value(json_object_get(all, "state"));
    struct state_facts facts = {.pid = (pid_t)json_integer_value(json_object_get(all, "pid")),
                                .is_over = phase && !strcmp(phase, "over")};
    json_decref(all);
    return facts;
}

static bool read_state(const char *folder, struct str *state)
{
    struct error ignored = ERROR_INIT;
    struct str path = STR_INIT;
    str_clear(state);
    str_printf(&path, "%s/" STATE_NAME, folder);
    int code = file_read(path.data, STATE_BYTES, state, &ignored);
    str_release(&path);
    return !code;
}

/* Of who does not listen: it begins, and is a shell yet, or is about to end. */
static void stop_by_signal(int owner)
{
    struct pollfd wait = {.fd = owner, .events = POLLIN};
    if (!pidfd_kill(owner, SIGTERM))
        poll(&wait, 1, -1);
}

/* Of a state that nobody answered for: whether it is that of `owner`, who has the folder, or final.
 */
static bool is_alive_or_over(const struct str *state, pid_t owner)
{
    struct state_facts facts = state_parse(state);
    return facts.is_over || (owner && facts.pid == owner);
}

int supervise_ask(const char *folder, bool stop, struct str *state, struct error *err)
{
    const char *request = stop ? "stop" : "status";
    int code, owner = -1;
    pid_t pid = 0;
    do { /* who was put off asks again */
        close_if_open(owner);
        code = control_ask(folder, request, stop ? -1 : STATUS_SECONDS, state);
        owner = code ? guard_owner(folder, &pid) : -1;
    } while (stop && code == ERR_UNAVAILABLE && owner >= 0);
    if (stop && code == ERR_DENIED)
        error_set(err, ERR_DENIED, "job directory %s: it is another user's", folder);
    else if (stop && owner >= 0)
        stop_by_signal(owner);
    else if (code && !read_state(folder, state))
        error_set(err, ERR_NOINPUT, "job directory %s: no tf-run was ever there", folder);
    else if (code && code != ERR_DENIED && !is_alive_or_over(state, pid))
        error_set(err, ERR_UNAVAILABLE, "job directory %s: its tf-run has died", folder);
    close_if_open(owner);
    return err->code;
}

bool supervise_is_running(const char *folder)
{
    struct error ignored = ERROR_INIT;
    struct str state = STR_INIT;
    bool running = !supervise_ask(folder, false, &state, &ignored) && !state_parse(&state).is_over;
    str_release(&state);
    return running;
}
