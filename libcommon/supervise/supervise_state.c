/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the job, in a file that is replaced atomically.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervise/job_state.h"
#include "supervise/supervise_private.h"

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

/* Writes the state. Any user who may enter the folder may read it. */
void state_write(struct supervisor *s)
{
    struct error ignored = ERROR_INIT;
    struct str path = STR_INIT, now = STR_INIT;
    char *text = state_json(s);
    str_printf(&now, "%s\n", text ? text : "");
    str_printf(&path, "%s/" JOB_STATE_NAME, s->folder ? s->folder : "");
    if (s->folder && strcmp(now.data, str_text(&s->state)) != 0)
        file_replace(path.data, 0644, now.data, now.n, &ignored);
    str_release(&s->state);
    str_release(&path);
    s->state = now;
    free(text);
}
