/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor: the phases of a job, docs/supervise.md. Every event, a signal, the end of a
 * child, a report of the watch, changes what is known of tasks; a table gives the due actions.
 */
#include "supervise/supervise.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/life.h"
#include "supervise/job_state.h"
#include "supervise/pidfd.h"
#include "supervise/reaper.h"
#include "supervise/supervise_private.h"

#define TICK_SECONDS 0.1
#define SAME_SENDER_SECONDS 1.0 /* to the process and its group, as timeout(1) sends */
#define KILLED_SECONDS 5.0      /* a process that has not ended by then cannot be killed */
#define LEAVING_SECONDS 1.0     /* in which a service that is ending and refuses a hook has ended */

static void say_line(struct supervisor *s, const char *format, va_list arguments)
{
    char text[3 * TEXT_BYTES];
    int n = snprintf(text, sizeof text, "%s: ", s->name);
    vsnprintf(text + n, sizeof text - (size_t)n, format, arguments);
    s->options.say(s->options.context, text);
}

void say(struct supervisor *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!s->quiet)
        say_line(s, format, arguments);
    va_end(arguments);
}

void say_loss(struct supervisor *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_line(s, format, arguments);
    va_end(arguments);
}

/* ---- phases ---- */

enum who { NOBODY, WORKERS, SERVICES, ALL }; /* of tasks; workers are all except services */

static bool is_one_of(const struct task *task, enum who who)
{
    return who & (task->service ? SERVICES : WORKERS);
}

static bool is_away(const struct task *task)
{
    return !task->main.pid;
}

static bool is_undone(const struct task *task)
{
    return !task->life.done;
}

static bool has_led(const struct task *task)
{
    return task->leads && task->life.done;
}

static bool any(const struct supervisor *s, enum who who, bool (*is)(const struct task *task))
{
    for (const struct task *task = s->tasks; task; task = task->next)
        if (is_one_of(task, who) && (!is || is(task)))
            return true;
    return false;
}

static bool services_run(const struct supervisor *s)
{
    return !any(s, SERVICES, is_away);
}

static void kill_all(struct supervisor *s)
{
    for (struct task *task = s->tasks; task; task = task->next)
        task_kill(task);
    process_signal(&s->hook, SIGKILL);
}

void fail_with(struct supervisor *s, int result)
{
    if (result && (!s->result || was_killed(s->result)))
        s->result = result;
}

/* A hook that failed because a service died runs again after all tasks were restarted. */
static bool end_is_over(struct supervisor *s)
{
    int status = s->hook_status > 0 ? s->hook_status : 0;
    if (hook_begins_again(s, HOOK_END))
        return false;
    if (status && !s->why && (!services_run(s) || time_now() < s->hook_ended_at + LEAVING_SECONDS))
        return false;
    fail_with(s, status);
    return true;
}

/* Tells each process that is to end in the phase, and waits for it; then the hook runs. */
static const struct phase_rule {
    const char *names[2];   /* before the hook runs, and from then on */
    enum phase next, asked; /* the phase that follows; the one if the job is to end */
    enum who ends;
    enum hook hook;
    bool needs_services; /* the hook does */
} rules[] = {
    [PHASE_RUN] = {{"running", "running"}, PHASE_END, PHASE_SAVE, NOBODY, HOOK_NONE, false},
    [PHASE_RESTART] =
        {{"restarting", "restarting"}, PHASE_RUN, PHASE_OVER, ALL, HOOK_RESTART, false},
    [PHASE_SAVE] = {{"saving", "saving"}, PHASE_END, PHASE_END, NOBODY, HOOK_STOP, true},
    [PHASE_END] = {{"leaving", "ending"}, PHASE_OVER, PHASE_OVER, WORKERS, HOOK_END, true},
    [PHASE_OVER] = {{"closing", "over"}, PHASE_GONE, PHASE_GONE, ALL, HOOK_OVER, false},
    [PHASE_GONE] = {{"over", "over"}, PHASE_GONE, PHASE_GONE, NOBODY, HOOK_NONE, false}};

void enter(struct supervisor *s, enum phase phase)
{
    s->phase = phase;
    s->hooked = false;
    s->hook_tries = 0;
    s->about = NULL;
    LIFE_BEGINS(rules[phase].names[0]);
    if (phase == PHASE_RUN) {
        if (s->rounds++)
            say(s, "%s %s (restart %d of %s)", s->lost, *s->said ? s->said : "all is started again",
                s->counted, s->budget.text);
        for (struct task *task = s->tasks; task; task = task->next) {
            task->life.done = task->again = false;
            task->life.died_at = 0;
            task_plan(task, s->pause);
        }
        watch_begin(s);
    }
    if (phase == PHASE_RESTART) {
        watch_end(s);
        kill_all(s);
        return;
    }
    for (struct task *task = s->tasks; task; task = task->next)
        if (is_one_of(task, rules[phase].ends))
            task_tell_to_end(task);
}

static bool has_ended(struct supervisor *s)
{
    const struct phase_rule *rule = &rules[s->phase];
    if (s->killed_at && time_now() > s->killed_at + KILLED_SECONDS)
        return true;
    if (s->hook.pid || any(s, rule->ends, task_is_busy))
        return false;
    if (!s->hooked) {
        if (s->phase == PHASE_OVER)
            watch_end(s); /* which reads the job's progress a last time */
        s->hooked = true;
        s->hook_status = -1;
        if (!s->killed_at && (!rule->needs_services || services_run(s)) &&
            run_hook(s, rule->hook, NULL))
            return false;
    }
    bool is_done = any(s, WORKERS, NULL) && !any(s, WORKERS, is_undone);
    switch (s->phase) {
    case PHASE_RUN: /* A lost service is restarted before the hook that needs it. Services alone
                     * have no end. */
        return s->why ||
               ((is_done || any(s, ALL, has_led)) && (services_run(s) || !s->hooks[HOOK_END]));
    case PHASE_SAVE:
        return !hook_begins_again(s, HOOK_STOP);
    case PHASE_END:
        return end_is_over(s);
    default:
        return true;
    }
}

static void advance(struct supervisor *s)
{
    if (s->phase == PHASE_RUN || s->phase == PHASE_END)
        settle_deaths(s);
    while (s->phase != PHASE_GONE && has_ended(s))
        enter(s, s->why ? rules[s->phase].asked : rules[s->phase].next);
    for (struct task *task = s->tasks; task; task = task->next)
        task_tick(s, task);
    late_tick(s);
}

/* ---- the state as others see it ---- */

static const char *state_name(const struct task *task)
{
    if (task->main.pid)
        return task->life.ready ? "ready" : task->life.told_to_end ? "ending" : "running";
    return task->life.done  ? "done"
           : task->start_at ? "waiting to start"
           : task->starts   ? "ended"
                            : "not started";
}

/* Writes the state. Any user who may enter the folder may read it. */
static void state_write(struct supervisor *s)
{
    struct error ignored = ERROR_INIT;
    struct str path = STR_INIT, now = STR_INIT;
    json_t *tasks = json_array();
    for (const struct task *task = s->tasks; task; task = task->next) {
        json_array_append_new(tasks, json_pack("{s:s, s:I, s:s, s:i, s:i, s:s}", "task", task->name,
                                               "pid", (json_int_t)task->pid, "state",
                                               state_name(task), "starts", task->starts, "restarts",
                                               task->restarts, "ended", task->life.ended));
    }
    json_t *all = json_pack("{s:I, s:s, s:s, s:I, s:i, s:s, s:i, s:o}", "pid", (json_int_t)getpid(),
                            "state", rules[s->phase].names[s->hooked], "why", s->why ? s->why : "",
                            "step", (json_int_t)s->step, "restarts", (int)s->restarts.n,
                            "max_restarts", s->budget.text, "result", s->result, "tasks", tasks);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    str_printf(&now, "%s\n", text ? text : "");
    str_printf(&path, "%s/" JOB_STATE_NAME, s->folder ? s->folder : "");
    if (s->folder && strcmp(now.data, str_text(&s->state)) != 0)
        file_replace(path.data, 0644, now.data, now.n, &ignored);
    str_release(&s->state);
    str_release(&path);
    s->state = now;
    free(text);
}

/* ---- the end ---- */

void stop_with(struct supervisor *s, const char *why, int result)
{
    s->why = why;
    s->result = s->result ? s->result : result;
    s->stopped_at = time_now();
    if (s->phase < PHASE_END)
        process_signal(&s->hook, SIGKILL);
}

/* A second request kills. A job that is already at its end keeps its own result. */
static void ask_to_stop(struct supervisor *s, int number, pid_t from)
{
    int result = s->phase < PHASE_END || s->why ? 128 + number : 0;
    if (from && from == s->stopped_by && time_now() < s->stopped_at + SAME_SENDER_SECONDS)
        return;
    s->stopped_by = from;
    if (!s->why) {
        stop_with(s, number == SIGINT ? "INT" : number == SIGTERM ? "TERM" : "HUP", result);
        return;
    }
    s->killed_at = s->killed_at ? s->killed_at : time_now();
    s->result = s->result ? s->result : result;
    kill_all(s);
    if (s->phase < PHASE_OVER)
        enter(s, PHASE_OVER);
}

/* ---- the main loop ---- */

/* Replaces a reaper that was killed; its successor takes the lock that it released. */
static void look_at_reaper(struct supervisor *s, struct error *err)
{
    struct reaper_options reaper = {.owner = getpid(), .folder = s->folder, .cleanup = s->cleanup};
    if (!reaper_has_ended(s->reaper) || time_now() < s->reaper_at + 1)
        return;
    close_if_open(s->reaper);
    s->reaper = reaper_start(&reaper, s->options.program, err);
    s->reaper_at = time_now();
}

/* A repeated `stop` waits, too, and kills nothing. */
static const char *reply_request(void *context, const char *request)
{
    struct supervisor *s = context;
    bool stop = !strcmp(request, "stop");
    if (stop && !s->why)
        ask_to_stop(s, SIGTERM, 0);
    return stop ? NULL : strcmp(request, "status") ? "" : str_text(&s->state);
}

static void do_what_is_due(struct supervisor *s)
{
    struct error ignored = ERROR_INIT;
    look_at_reaper(s, &ignored);
    advance(s);
    state_write(s);
    s->options.tick(s->options.context);
}

static int open_signals(void)
{
    struct sigaction before;
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGCHLD);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaddset(&ours, SIGHUP); /* nohup(1) */
    sigprocmask(SIG_BLOCK, &ours, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_all(struct supervisor *s, struct error *err)
{
    struct error unheard = ERROR_INIT;
    s->signals = open_signals();
    unsetenv(MARK_NAME); /* another supervisor's, lest it kill the reaper */
    if (supervise_read(s, err))
        return err->code;
    if (s->signals < 0 || pipe2(s->parent_pipe, O_CLOEXEC) ||
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        return error_set_errno(err, ERR_OS, "the supervisor's parent-death pipe");
    s->reaper = s->reaper_pid ? pidfd_of(s->reaper_pid) : -1;
    look_at_reaper(s, err);
    if (!err->code && control_open(&s->control, s->folder, &unheard))
        say(s, "nobody can ask for the state: %s", unheard.text);
    return err->code;
}

/* The reaper removes the socket, while the folder is still locked; clients that wait there get a
 * reply when everything has ended. */
static void run(struct supervisor *s)
{
    struct error ignored = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    enter(s, PHASE_RUN);
    for (do_what_is_due(s); s->phase != PHASE_GONE; do_what_is_due(s)) {
        struct signalfd_siginfo signal;
        pthread_mutex_unlock(&s->lock);
        control_wait(&s->control, s->signals, TICK_SECONDS);
        pthread_mutex_lock(&s->lock);
        while (read(s->signals, &signal, sizeof signal) > 0)
            if (signal.ssi_signo != SIGCHLD)
                ask_to_stop(s, (int)signal.ssi_signo,
                            signal.ssi_code == SI_USER ? (pid_t)signal.ssi_pid : 0);
        control_serve(&s->control, reply_request, s);
        reap(s);
    }
    watch_end(s);
    pthread_mutex_unlock(&s->lock);
    for (bool done = false; !done && !ignored.code;) { /* a stalled reaper is replaced, too */
        s->reaper_at = 0;                              /* at once: there is work for it */
        look_at_reaper(s, &ignored);
        done = reaper_release(s->reaper);
    }
    control_close(&s->control, str_text(&s->state));
}

int supervise(const struct supervise_options *options, struct error *err)
{
    struct supervisor s = {.options = *options,
                           .name = "tf-supervise",
                           .budget = {.max = 5, .text = "5"},
                           .timeout = 30,
                           .hook = {.ended = hook_ended},
                           .processes = &s.hook,
                           .hook_out = -1,
                           .reaper = -1,
                           .parent_pipe = {-1, -1},
                           .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!open_all(&s, err)) {
        run(&s);
        err->code = s.result;
    }
    const int ours[] = {s.reaper, s.parent_pipe[0], s.parent_pipe[1], s.signals};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        close_if_open(ours[i]);
    vec_release(&s.restarts);
    str_release(&s.state);
    arena_release(&s.arena);
    return err->code;
}
