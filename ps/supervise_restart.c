/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done about tasks that died. Who loses another one dies, too: so all that died about the
 * same time are looked at together, and the one that is most likely the cause is named.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ps/supervise_private.h"

#define SETTLE_SECONDS 0.3 /* within which the end of others is heard of */

/* After the second brief life in turn: 1, 2, 4 and then always 8 seconds. */
static double pause_before(const struct task *task)
{
    int n = task->brief < 5 ? task->brief : 5;
    return n < 2 ? 0 : (double)(1 << (n - 2));
}

static bool ends_the_job(const struct task *task)
{
    if (task->policy == RESTART_NEVER)
        return true;
    for (int i = 0; i < task->n_ends && !*task->why; i++)
        if (task->ends[i] == task->code)
            return true;
    return false;
}

void give_up(struct supervisor *s, struct task *task, int code)
{
    char cause[1152];
    struct str lines = STR_INIT;
    if (s->why)
        return;
    task_cause(task, cause, sizeof cause);
    say(s, "%s %s; the job ends", task->name, cause);
    task_last_lines(task, 3, &lines);
    if (lines.n)
        s->options.tell(s->options.context, lines.data);
    str_release(&lines);
    stop_with(s, "FAIL", code);
    tell_workers(s);
}

/* "worker:1 (pid 4123) killed by signal 9 at step 211;" */
static void describe_loss(struct supervisor *s, const struct task *task)
{
    char cause[1152], pid[32] = "?";
    task_cause(task, cause, sizeof cause);
    if (task->pid)
        snprintf(pid, sizeof pid, "%ld", task->pid);
    snprintf(s->lost, sizeof s->lost, "%s (pid %s) %s at step %" PRId64 ";%s", task->name, pid,
             cause, s->step, *task->why ? " killed," : "");
}

/* ---- the budget ---- */

static int restarts_that_count(struct supervisor *s)
{
    size_t kept = 0;
    double since = s->restart_window > 0 ? time_now() - s->restart_window : 0;
    for (size_t i = 0; i < s->restarts.n; i++)
        if (s->restarts.items[i] >= since)
            s->restarts.items[kept++] = s->restarts.items[i];
    s->restarts.n = kept;
    return (int)kept;
}

/* Takes one, or ends the job. */
static bool may_restart(struct supervisor *s, struct task *task)
{
    char cause[1152];
    if (restarts_that_count(s) >= s->max_restarts) {
        task_cause(task, cause, sizeof cause);
        say(s, "%s %s; that was restart %d of %s", task->name, cause, s->max_restarts, s->max_text);
        give_up(s, task, task->code);
        return false;
    }
    vec_push(&s->restarts, time_now());
    s->n_restarts++;
    task->restarts++;
    describe_loss(s, task);
    return true;
}

/* ---- all of them ---- */

/* When they are gone, the hook says from where it goes on. */
static void restart_all(struct supervisor *s, struct task *culprit)
{
    if (!may_restart(s, culprit))
        return;
    s->culprit = culprit;
    s->phase = PHASE_RESET;
    watch_end(s);
    process_signal(&s->hook, SIGKILL);
    for (size_t i = 0; i < s->tasks.n; i++) {
        s->tasks.items[i]->died = false;
        task_kill(s->tasks.items[i]);
    }
}

/* Called when nobody runs. */
void start_anew(struct supervisor *s)
{
    s->phase = PHASE_RESTART;
    if (!run_hook(s, HOOK_RESTART, NULL))
        restart_hook_ended(s, "");
}

static void resume_all(struct supervisor *s, const char *text)
{
    say(s, "%s %s (restart %zu of %s)", s->lost, *text ? text : "all is started again",
        s->restarts.n, s->max_text);
    s->generation++;
    s->phase = PHASE_RUN;
    for (size_t i = 0; i < s->tasks.n; i++) {
        struct task *task = s->tasks.items[i];
        task->done = task->died = false;
        task->generations = 0;
        task->start_at = time_now() + pause_before(s->culprit);
    }
    watch_begin(s);
}

/* ---- one ---- */

void start_alone(struct supervisor *s, struct task *task)
{
    if (!may_restart(s, task))
        return;
    task->died = false;
    if (!run_hook(s, HOOK_RESTART, task)) {
        s->hook_task = task;
        restart_hook_ended(s, "");
    }
}

static void resume_one(struct supervisor *s, struct task *task, const char *text)
{
    say(s, "%s %s%sstarted again as incarnation %d (restart %zu of %s)", s->lost, text,
        *text ? ", " : "", task->starts + 1, s->restarts.n, s->max_text);
    task->start_at = time_now() + pause_before(task);
}

/* The hook's lines: "step 300" is where it goes on, the other one is for the user. */
void restart_hook_ended(struct supervisor *s, const char *said)
{
    char text[512] = "";
    const char *end;
    for (; *said; said = *end ? end + 1 : end) {
        end = said + strcspn(said, "\n");
        if (!strncmp(said, "step ", 5))
            s->step = strtoll(said + 5, NULL, 10);
        else if (end > said)
            snprintf(text, sizeof text, "%.*s", (int)(end - said), said);
    }
    if (s->hook_task)
        resume_one(s, s->hook_task, text);
    else if (s->phase == PHASE_RESTART)
        resume_all(s, text);
}

void broken_hook_ended(struct supervisor *s, bool broken)
{
    if (broken)
        restart_all(s, s->hook_task);
    else
        start_alone(s, s->hook_task);
}

/* ---- who is it ---- */

/* One that was killed is rather the cause than one that ended by itself, a service rather than one
 * that uses it; otherwise the first. */
static int guilt(const struct task *task)
{
    bool killed = *task->why || (task->code > 128 && task->code < 255);
    return 2 * task->service + (killed ? 4 : 0);
}

static struct task *find_culprit(struct supervisor *s)
{
    struct task *worst = NULL;
    for (size_t i = 0; i < s->tasks.n; i++) {
        struct task *task = s->tasks.items[i];
        if (task->died && (!worst || guilt(task) > guilt(worst) ||
                           (guilt(task) == guilt(worst) && task->died_at < worst->died_at)))
            worst = task;
    }
    return worst;
}

static bool is_settled(const struct supervisor *s)
{
    double first = 0;
    for (size_t i = 0; i < s->tasks.n; i++) {
        const struct task *task = s->tasks.items[i];
        if (task->died && (!first || task->died_at < first))
            first = task->died_at;
    }
    return first && time_now() >= first + SETTLE_SECONDS;
}

/* A death of one that takes all back. */
static struct task *find_loss_of_all(struct supervisor *s)
{
    for (size_t i = 0; i < s->tasks.n; i++)
        if (s->tasks.items[i]->died && s->tasks.items[i]->policy == RESTART_ALL)
            return find_culprit(s);
    return NULL;
}

/* One death at a time: the hooks that one needs are not those of another. */
void settle_deaths(struct supervisor *s)
{
    bool asks = s->hook.pid && s->hook_kind != HOOK_END;
    if (s->why || asks || !is_settled(s))
        return;
    struct task *culprit = find_culprit(s), *all = find_loss_of_all(s);
    bool killed = *culprit->why || culprit->code > 128;
    if (ends_the_job(culprit)) {
        give_up(s, culprit, culprit->code);
    } else if (all) {
        restart_all(s, all);
    } else if (!task_is_busy(culprit)) { /* its feed command is still ending */
        if (killed || !all_services_run(s) || !run_hook(s, HOOK_BROKEN, culprit))
            start_alone(s, culprit);
    }
}
