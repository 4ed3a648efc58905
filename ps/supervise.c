/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor: the phases of a job, docs/supervise.md. All that is heard of, a signal, the end
 * of a child, what the watch sees, changes what is known of tasks; a table says what is due.
 */
#include "ps/supervise.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ps/guard.h"
#include "ps/supervise_private.h"

#define TICK_NANOSECONDS 100000000
#define SAME_SENDER_SECONDS 1.0 /* to the process and to its group, as timeout(1) does */
#define KILLED_SECONDS 5.0      /* what does not end by then cannot be killed */
#define END_TRIES 3             /* of a hook that is killed, not by us */

void say(struct supervisor *s, const char *format, ...)
{
    char text[3 * TEXT_BYTES];
    int n = snprintf(text, sizeof text, "%s: ", s->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, arguments);
    va_end(arguments);
    if (!s->quiet)
        s->options.say(s->options.context, text);
}

/* ---- hooks ---- */

/* A line for each task, to be read. */
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

/* False: there is none, or it cannot be run. */
bool run_hook(struct supervisor *s, enum hook kind, struct task *about)
{
    struct arena arena = ARENA_INIT;
    bool speaks = kind == HOOK_RESTART;
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
                           NULL};
    struct spawn how = {.environment = words,
                        .in = open_table(s),
                        .out = speaks ? s->hook_out : STDERR_FILENO,
                        .err = STDERR_FILENO};
    if (start_shell(s, &s->hook, s->hooks[kind], how))
        close_if_open(s->hook_out);
    else
        s->about = about;
    close_if_open(how.in);
    arena_release(&arena);
    return s->hook.pid;
}

/* Lines of the hook `restart`: "step 300" is where it goes on, another one is for the user. */
static void hook_ended(struct supervisor *s, struct process *hook, int status)
{
    char line[TEXT_BYTES];
    FILE *said = s->hook_out >= 0 ? fdopen(s->hook_out, "r") : NULL;
    (void)hook;
    s->hook_status = status;
    s->saved |= s->phase == PHASE_SAVE && !status;
    s->hook_out = -1;
    if (!said)
        return;
    rewind(said);
    while (fgets(line, sizeof line, said)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "step %" SCNd64, &s->step) != 1 && *line)
            snprintf(s->said, sizeof s->said, "%s", line);
    }
    fclose(said);
}

/* ---- phases ---- */

enum who { NOBODY, WORKERS, ALL }; /* all tasks but the services; all */

static bool is_one_of(const struct task *task, enum who who)
{
    return who == ALL || (who == WORKERS && !task->service);
}

static bool any_is_busy(const struct supervisor *s, enum who who)
{
    for (struct task *task = s->tasks; task; task = task->next)
        if (is_one_of(task, who) && task_is_busy(task))
            return true;
    return false;
}

static bool services_run(const struct supervisor *s)
{
    for (struct task *task = s->tasks; task; task = task->next)
        if (task->service && !task->main.pid)
            return false;
    return true;
}

static void begin_run(struct supervisor *s)
{
    s->end_tries = 0;
    if (s->rounds++)
        say(s, "%s %s (restart %zu of %s)", s->lost, *s->said ? s->said : "all is started again",
            s->restarts.n, s->budget.text);
    for (struct task *task = s->tasks; task; task = task->next) {
        task->life.done = false;
        task->life.died_at = task->starts_now = 0;
        task_plan(task, s->pause);
    }
    watch_begin(s);
}

/* A service that was lost is there again before the hook that needs it. Services alone have no end.
 */
static bool run_is_over(struct supervisor *s)
{
    bool has_workers = false;
    for (const struct task *task = s->tasks; task; task = task->next) {
        has_workers |= !task->service;
        if (!task->service && !task->life.done)
            return s->why;
    }
    return s->why || (has_workers && (services_run(s) || !s->hooks[HOOK_END]));
}

static void kill_all(struct supervisor *s)
{
    for (struct task *task = s->tasks; task; task = task->next)
        task_kill(task);
    process_signal(&s->hook, SIGKILL);
}

static void begin_reset(struct supervisor *s)
{
    watch_end(s);
    kill_all(s);
}

/* What the hook could not do because somebody killed it is done again; what it could not do because
 * a service has died, when all were taken back. */
static bool end_is_over(struct supervisor *s)
{
    int status = s->hook_status > 0 ? s->hook_status : 0;
    if (status > 128 && s->end_tries++ < END_TRIES && run_hook(s, HOOK_END, NULL))
        return false;
    if (status && !s->why && !services_run(s))
        return false;
    if (!s->result)
        s->result = status;
    return true;
}

static const struct rule {
    const char *name;
    enum phase next, asked;   /* what comes behind it; when the job is to end */
    enum hook hook;           /* that runs first, */
    bool needs_services;      /* if these run */
    enum who told, waits_for; /* to end; until they have */
    void (*begin)(struct supervisor *s);
    bool (*is_over)(struct supervisor *s); /* besides */
} rules[] = {
    [PHASE_RUN] = {"running", PHASE_END, PHASE_SAVE, .begin = begin_run, .is_over = run_is_over},
    [PHASE_RESET] = {"restarting", PHASE_RESTART, PHASE_CLOSE, .waits_for = ALL,
                     .begin = begin_reset},
    [PHASE_RESTART] = {"restarting", PHASE_RUN, PHASE_CLOSE, .hook = HOOK_RESTART},
    [PHASE_SAVE] = {"saving", PHASE_LEAVE, PHASE_LEAVE, .hook = HOOK_STOP, .needs_services = true},
    [PHASE_LEAVE] = {"leaving", PHASE_END, PHASE_END, .told = WORKERS, .waits_for = WORKERS},
    [PHASE_END] = {"ending", PHASE_CLOSE, PHASE_CLOSE, .hook = HOOK_END, .needs_services = true,
                   .is_over = end_is_over},
    [PHASE_CLOSE] = {"closing", PHASE_OVER, PHASE_OVER, .told = ALL, .waits_for = ALL},
    [PHASE_OVER] = {"over", PHASE_GONE, PHASE_GONE, .hook = HOOK_OVER, .begin = watch_end},
    [PHASE_GONE] = {.name = "over"}};

void enter(struct supervisor *s, enum phase phase)
{
    const struct rule *rule = &rules[phase];
    s->phase = phase;
    s->phase_name = rule->name;
    s->about = NULL;
    if (rule->begin)
        rule->begin(s);
    for (struct task *task = s->tasks; task; task = task->next)
        if (is_one_of(task, rule->told))
            task_tell_to_end(task);
    s->hook_status = -1;
    if (!s->killed_at && (!rule->needs_services || services_run(s)))
        run_hook(s, rule->hook, NULL);
}

static bool is_over(struct supervisor *s)
{
    const struct rule *rule = &rules[s->phase];
    if (s->killed_at && time_now() > s->killed_at + KILLED_SECONDS)
        return true;
    return !s->hook.pid && !any_is_busy(s, rule->waits_for) && (!rule->is_over || rule->is_over(s));
}

static void advance(struct supervisor *s)
{
    if (s->phase == PHASE_RUN || s->phase == PHASE_END)
        settle_deaths(s);
    while (s->phase != PHASE_GONE && is_over(s))
        enter(s, s->why ? rules[s->phase].asked : rules[s->phase].next);
    for (struct task *task = s->tasks; task; task = task->next)
        if (s->phase == PHASE_RUN && task->start_at && time_now() >= task->start_at &&
            !task_is_busy(task))
            task_start(s, task);
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

static void kill_everything(struct supervisor *s, int result)
{
    s->killed_at = s->killed_at ? s->killed_at : time_now();
    s->result = s->result ? s->result : result;
    kill_all(s);
    if (s->phase < PHASE_CLOSE)
        enter(s, PHASE_CLOSE);
}

/* Asked twice, it kills. What is at its end already has a result of its own. */
static void ask_to_stop(struct supervisor *s, int number, pid_t from)
{
    const char *why = number == SIGINT ? "INT" : number == SIGTERM ? "TERM" : "HUP";
    int result = s->phase < PHASE_END || s->why ? 128 + number : 0;
    if (from && from == s->stopped_by && time_now() < s->stopped_at + SAME_SENDER_SECONDS)
        return;
    s->stopped_by = from;
    if (!s->why)
        stop_with(s, why, result);
    else
        kill_everything(s, result);
}

/* ---- the whole ---- */

/* One that was killed has let the lock go, which the next one takes. */
static void look_at_guard(struct supervisor *s, struct error *err)
{
    struct guard_options guard = {.owner = getpid(), .folder = s->folder, .cleanup = s->cleanup};
    if (!guard_has_ended(s->guard) || time_now() < s->guard_at + 1)
        return;
    close_if_open(s->guard);
    s->guard = guard_start(&guard, s->options.program, err);
    s->guard_at = time_now();
}

/* Does what is due, then waits for news. */
static void turn(struct supervisor *s)
{
    const struct timespec tick = {.tv_nsec = TICK_NANOSECONDS};
    struct error ignored = ERROR_INIT;
    siginfo_t info;
    look_at_guard(s, &ignored);
    for (struct task *task = s->tasks; task; task = task->next)
        task_tick(s, task);
    advance(s);
    state_write(s);
    pthread_mutex_unlock(&s->lock);
    int number = sigtimedwait(&s->signals, &info, &tick);
    pthread_mutex_lock(&s->lock);
    if (number > 0 && number != SIGCHLD)
        ask_to_stop(s, number, info.si_code == SI_USER ? info.si_pid : 0);
    reap(s);
}

static int open_all(struct supervisor *s, struct error *err)
{
    struct sigaction before;
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGINT);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGCHLD);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaddset(&s->signals, SIGHUP); /* nohup(1) */
    sigprocmask(SIG_BLOCK, &s->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    unsetenv(MARK_NAME); /* of another supervisor, lest it kills the guard */
    if (supervise_read(s, err))
        return err->code;
    if (pipe2(s->lifeline, O_CLOEXEC) || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        return error_set_errno(err, ERR_OS, "the supervisor's lifeline");
    s->guard = s->guard_pid ? pidfd_open(s->guard_pid, 0) : -1;
    look_at_guard(s, err);
    return err->code;
}

static void close_all(struct supervisor *s)
{
    const int ours[] = {s->guard, s->lifeline[0], s->lifeline[1]};
    guard_release(s->guard);
    for (int i = 0; i < 3; i++)
        close_if_open(ours[i]);
    vec_release(&s->restarts);
    str_release(&s->state);
    arena_release(&s->arena);
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
                           .guard = -1,
                           .lifeline = {-1, -1},
                           .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!open_all(&s, err)) {
        pthread_mutex_lock(&s.lock);
        enter(&s, PHASE_RUN);
        while (s.phase != PHASE_GONE)
            turn(&s);
        pthread_mutex_unlock(&s.lock);
        err->code = s.result;
    }
    close_all(&s);
    return err->code;
}
