/* SPDX-License-Identifier: Apache-2.0
 *
 * Handling of tasks that died. A task that loses another task dies, too: so deaths at about the
 * same time are considered together, and the most likely cause is named.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "supervise/supervise_private.h"

#define SETTLE_SECONDS 0.3 /* in which the ends of other tasks become known */

/* Gives up: from now on nothing is restarted. */
void give_up(struct supervisor *s, struct task *task, const char *after)
{
    char cause[TEXT_BYTES];
    task_cause(task, cause);
    say(s, "%s %s%s; the job ends", task->name, cause, after);
    task_last_lines(s, task);
    stop_with(s, "FAIL", task->life.code);
    process_signal(&s->hook, SIGKILL);
    enter(s, PHASE_END);
}

/* ---- the budget ---- */

/* Restarts as often as the budget allows, after a pause that grows with consecutive brief lives.
 * Tells the user the reason: "worker:1 (pid 4123) killed by signal 9 at step 211;", at once, or, if
 * all are restarted, when they are. */
static void restart(struct supervisor *s, struct task *task, bool all)
{
    static const double pauses[] = {0, 0, 1, 2, 4, 8};
    char text[TEXT_BYTES];
    double since = s->budget.seconds > 0 ? time_now() - s->budget.seconds : 0;
    s->counted = 1;
    for (size_t i = 0; i < s->restarts.n; i++)
        s->counted += s->restarts.items[i] >= since;
    if (s->counted > s->budget.max) {
        snprintf(text, sizeof text, "; that was restart %d of %s", s->budget.max, s->budget.text);
        give_up(s, task, text);
        return;
    }
    vec_push(&s->restarts, time_now());
    s->about = NULL;
    s->pause = pauses[task->brief < 5 ? task->brief : 5];
    task->restarts++;
    task->life.died_at = 0;
    task_cause(task, text);
    snprintf(s->lost, sizeof s->lost, "%s (pid %ld) %.900s at step %" PRId64 ";%s", task->name,
             task->pid, text, s->step, *task->life.why ? " killed," : "");
    if (all) {
        enter(s, PHASE_RESTART);
        return;
    }
    say(s, "%s %s%sstarted again as incarnation %d (restart %d of %s)", s->lost, s->said,
        *s->said ? ", " : "", task->starts + 1, s->counted, s->budget.text);
    task->again = true;
    task_plan(task, s->pause);
}

/* ---- the likely cause ---- */

/* Returns whether the task ended by itself with a code that ends the job. */
static bool ends_the_job(const struct task *task)
{
    return !*task->life.why && task->ends[task->life.code];
}

/* The likelier cause has more: a task that was killed, then one that a restart would not help, then
 * a service before one that uses it. */
static int likelihood(const struct task *task)
{
    return 4 * was_killed(task->life.code) + 2 * ends_the_job(task) + task->service;
}

/* Returns whether a is the likelier cause; of two that are alike the first to die. */
static bool is_rather(const struct task *a, const struct task *b)
{
    int of_a = likelihood(a), of_b = likelihood(b);
    return of_a != of_b ? of_a > of_b : a->life.died_at < b->life.died_at;
}

/* Returns NULL if no task has died, or the ends of others may soon become known. */
static struct task *find_culprit(const struct supervisor *s, bool *takes_all_back)
{
    struct task *worst = NULL;
    double first = INFINITY;
    for (struct task *task = s->tasks; task; task = task->next) {
        if (!task->life.died_at)
            continue;
        first = fmin(first, task->life.died_at);
        *takes_all_back |= task->policy == RESTART_ALL;
        if (!worst || is_rather(task, worst))
            worst = task;
    }
    return time_now() >= first + SETTLE_SECONDS ? worst : NULL;
}

/* Handles one death at a time: the hook is for one task, and says whether that suffices. */
void settle_deaths(struct supervisor *s)
{
    bool all = s->phase == PHASE_END;
    if (s->why || (s->hook.pid && s->phase == PHASE_RUN))
        return;
    struct task *task = s->about ? s->about : find_culprit(s, &all);
    if (!task)
        return;
    if (s->about)
        restart(s, task, s->hook_status > 0);
    else if (task->policy == RESTART_NEVER || ends_the_job(task))
        give_up(s, task, "");
    else if (all)
        restart(s, task, true);
    else if (!task_is_busy(task) && !run_hook(s, HOOK_RESTART, task))
        restart(s, task, false);
}
