/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor: what happens in which phase of a job, docs/supervise.md. All that is heard of, a
 * signal, the end of a child, a line of the watch, changes what is known of tasks; advance() then
 * does what is due.
 */
#include "ps/supervise.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "ps/supervise_private.h"

#define SAME_SIGNAL_SECONDS                                                                        \
    1.0                    /* of one sender, to the process and to its group, as timeout(1)        \
                            */
#define KILLED_SECONDS 5.0 /* what does not end by then cannot be killed */
#define END_TRIES 3        /* of a hook that is killed, not by us */

void say(struct supervisor *s, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!s->quiet)
        s->options.say(s->options.context, s->name ? s->name : "tf-supervise", text);
}

/* ---- who runs ---- */

static bool any(const struct supervisor *s, bool services, bool (*holds)(const struct task *task))
{
    for (size_t i = 0; i < s->tasks.n; i++)
        if (s->tasks.items[i]->service == services && holds(s->tasks.items[i]))
            return true;
    return false;
}

static bool runs(const struct task *task)
{
    return task->main.pid != 0;
}

static bool is_missing(const struct task *task)
{
    return !task->main.pid;
}

static bool is_not_done(const struct task *task)
{
    return !task->done;
}

bool all_services_run(const struct supervisor *s)
{
    return !any(s, true, is_missing);
}

static bool anybody_is_busy(const struct supervisor *s)
{
    return any(s, false, task_is_busy) || any(s, true, task_is_busy);
}

/* ---- hooks ---- */

/* The lines of all tasks, for the hook `over`. */
static int open_table(const struct supervisor *s)
{
    int fd = memfd_create("tasks", MFD_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < s->tasks.n; i++) {
        char *line = state_of_task(s->tasks.items[i]);
        if (write(fd, line, strlen(line)) < 0)
            i = s->tasks.n;
        mem_free(line);
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

/* False: there is none, or it cannot be run. */
bool run_hook(struct supervisor *s, enum hook kind, struct task *task)
{
    char about[96], step[48], why[32], saved[16], result[32];
    snprintf(about, sizeof about, "JOB_TASK=%s", task ? task->name : "all");
    snprintf(step, sizeof step, "JOB_STEP=%" PRId64, s->step);
    snprintf(why, sizeof why, "JOB_WHY=%s", s->why ? s->why : "END");
    snprintf(saved, sizeof saved, "JOB_SAVED=%s", s->saved ? "1" : "");
    snprintf(result, sizeof result, "JOB_RESULT=%d", s->result);
    bool speaks = kind == HOOK_RESTART;
    struct spawn spawn = {.line = s->hooks[kind],
                          .kind = "hook",
                          .in = kind == HOOK_OVER && s->hooks[kind] ? open_table(s) : -1,
                          .out = speaks ? memfd_create("said", MFD_CLOEXEC) : STDERR_FILENO,
                          .err = STDERR_FILENO,
                          .extra = {about, step, why, saved, result}};
    bool begun = spawn.line && !spawn_shell(s, &s->hook, &spawn);
    if (spawn.in >= 0)
        close(spawn.in);
    s->hook_kind = kind;
    s->hook_task = task;
    s->hook_out = -1;
    if (speaks && begun)
        s->hook_out = spawn.out;
    else if (speaks && spawn.out >= 0)
        close(spawn.out);
    return begun;
}

static char *take_what_hook_said(struct supervisor *s)
{
    char text[2048];
    ssize_t n = s->hook_out >= 0 ? pread(s->hook_out, text, sizeof text - 1, 0) : 0;
    if (s->hook_out >= 0)
        close(s->hook_out);
    s->hook_out = -1;
    return mem_strndup(text, n > 0 ? (size_t)n : 0);
}

static void close_services(struct supervisor *s)
{
    s->phase = PHASE_CLOSE;
    for (size_t i = 0; i < s->tasks.n; i++)
        task_tell_to_end(s->tasks.items[i]);
}

/* What it could not do because somebody killed it is done again; what it could not do because a
 * service has died, when all were taken back. */
static void end_hook_ended(struct supervisor *s, int status)
{
    bool killed = status > 128 && !s->why;
    if (killed && s->end_tries++ < END_TRIES && run_hook(s, HOOK_END, NULL))
        return;
    if (status && !s->why && !all_services_run(s))
        return;
    if (!s->why)
        s->result = status;
    close_services(s);
}

void hook_ended(struct supervisor *s, int status)
{
    char *said = take_what_hook_said(s);
    if (s->hook_kind == HOOK_OVER) {
        s->phase = PHASE_GONE;
    } else if (s->hook_kind == HOOK_STOP && s->phase == PHASE_SAVE) {
        s->saved = !status;
        tell_workers(s);
    } else if (s->hook_kind == HOOK_END && s->phase == PHASE_END) {
        end_hook_ended(s, status);
    } else if (s->hook_kind == HOOK_RESTART && !s->why) {
        restart_hook_ended(s, said);
    } else if (s->hook_kind == HOOK_BROKEN && !s->why && s->phase == PHASE_RUN) {
        broken_hook_ended(s, !status);
    }
    mem_free(said);
}

/* ---- the end ---- */

/* From now on nothing is started again. */
void stop_with(struct supervisor *s, const char *why, int result)
{
    s->why = why;
    s->result = result;
    s->stopped_at = time_now();
    s->dirty = true;
}

void tell_workers(struct supervisor *s)
{
    s->phase = PHASE_LEAVE;
    for (size_t i = 0; i < s->tasks.n; i++)
        if (!s->tasks.items[i]->service)
            task_tell_to_end(s->tasks.items[i]);
}

static void kill_everything(struct supervisor *s)
{
    for (size_t i = 0; i < s->tasks.n; i++)
        task_kill(s->tasks.items[i]);
    process_signal(&s->hook, SIGKILL);
    if (!s->killed_at)
        s->killed_at = time_now();
    if (s->phase < PHASE_CLOSE)
        s->phase = PHASE_CLOSE;
}

/* Asked twice, it kills. */
void ask_to_stop(struct supervisor *s, const char *why, int result, pid_t from)
{
    double now = time_now();
    bool again =
        s->stopped_by && s->stopped_by == from && now < s->stopped_at + SAME_SIGNAL_SECONDS;
    if (again)
        return;
    s->stopped_by = from;
    if (!s->why && s->phase >= PHASE_END && !s->stopped_at) {
        s->stopped_at = now; /* what it asks for is under way */
        return;
    }
    if (s->why || s->phase >= PHASE_END) {
        if (!s->result)
            s->result = result;
        kill_everything(s);
        return;
    }
    stop_with(s, why, result);
    if (s->phase != PHASE_RUN)
        return; /* all are being killed: it ends there */
    for (size_t i = 0; i < s->tasks.n; i++)
        s->tasks.items[i]->start_at = 0;
    /* Before the first worker leaves: what the others do without it is no round of all. */
    s->phase = PHASE_SAVE;
    if (s->hook.pid)
        process_signal(&s->hook, SIGKILL);
    if (!all_services_run(s) || !run_hook(s, HOOK_STOP, NULL))
        tell_workers(s);
}

static void on_signal(void *context)
{
    struct supervisor *s = context;
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        pid_t from = info.ssi_code == SI_USER ? (pid_t)info.ssi_pid : 0;
        if (number != SIGCHLD)
            ask_to_stop(s,
                        number == SIGINT    ? "INT"
                        : number == SIGTERM ? "TERM"
                                            : "HUP",
                        128 + number, from);
    }
    reap(s);
    advance(s);
}

/* ---- what is due ---- */

static void start_due(struct supervisor *s)
{
    for (size_t i = 0; i < s->tasks.n; i++) {
        struct task *task = s->tasks.items[i];
        if (task->start_at && time_now() >= task->start_at && !task_is_busy(task))
            task_start(s, task);
    }
}

static void begin_end(struct supervisor *s)
{
    s->phase = PHASE_END;
    s->end_tries = 0;
    s->options.progress_ends(s->options.context);
    if (!all_services_run(s) || !run_hook(s, HOOK_END, NULL))
        close_services(s);
}

static void begin_over(struct supervisor *s)
{
    watch_end(s);
    s->phase = PHASE_OVER;
    s->options.progress_ends(s->options.context);
    if (s->killed_at || !run_hook(s, HOOK_OVER, NULL))
        s->phase = PHASE_GONE;
}

void advance(struct supervisor *s)
{
    double now = time_now();
    for (size_t i = 0; i < s->tasks.n; i++) {
        task_tick(s, s->tasks.items[i], now);
        look_at_silent(s, s->tasks.items[i], now);
    }
    if (s->phase == PHASE_RUN || s->phase == PHASE_END)
        settle_deaths(s);
    if (s->phase == PHASE_RUN)
        start_due(s);
    if (s->phase == PHASE_RESET && !anybody_is_busy(s) && !s->hook.pid) {
        if (s->why)
            close_services(s);
        else
            start_anew(s);
    }
    if (s->phase == PHASE_RESTART && s->why && !s->hook.pid)
        close_services(s);
    if ((s->phase == PHASE_LEAVE && !any(s, false, runs)) ||
        (s->phase == PHASE_RUN && !any(s, false, is_not_done)))
        begin_end(s);
    if (s->phase == PHASE_CLOSE && ((!anybody_is_busy(s) && !s->hook.pid) ||
                                    (s->killed_at && now > s->killed_at + KILLED_SECONDS)))
        begin_over(s);
    if (s->phase == PHASE_GONE)
        loop_stop(s->loop);
}

static void on_tick(void *context)
{
    struct supervisor *s = context;
    loop_timer_set(s->tick, TICK_SECONDS);
    watch_take(s);
    reap(s);
    look_at_guard(s);
    advance(s);
    state_write(s);
}

/* ---- the whole ---- */

static int open_signals(struct supervisor *s, struct error *err)
{
    struct sigaction before;
    sigset_t all;
    sigemptyset(&all);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGCHLD);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaddset(&all, SIGHUP); /* nohup(1) */
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    s->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0 || pipe2(s->lifeline, O_CLOEXEC) ||
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        return error_set_errno(err, ERR_OS, "the supervisor's signals");
    return 0;
}

static int open_all(struct supervisor *s, struct error *err)
{
    pthread_mutex_init(&s->news.lock, NULL);
    if (supervise_read(s, s->options.path, err) || open_signals(s, err))
        return err->code;
    if (!(s->loop = loop_new(err)))
        return err->code;
    loop_set_polling(s->loop, 0);
    s->signals = loop_watch_new(s->loop, s->signal_fd, on_signal, s);
    s->tick = loop_timer_new(s->loop, on_tick, s);
    return state_open(s, err);
}

static void close_all(struct supervisor *s)
{
    watch_end(s);
    state_close(s);
    release_guard(s);
    if (s->loop) {
        loop_watch_free(s->signals);
        loop_timer_free(s->tick);
        loop_free(s->loop);
    }
    const int ours[] = {s->signal_fd, s->lifeline[0], s->lifeline[1]};
    for (int i = 0; i < 3; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    vec_release(&s->restarts);
    supervise_free_tasks(s);
    pthread_mutex_destroy(&s->news.lock);
}

int supervise(const struct supervise_options *options, struct error *err)
{
    struct supervisor s = {.options = *options,
                           .signal_fd = -1,
                           .control_fd = -1,
                           .hook_out = -1,
                           .lifeline = {-1, -1},
                           .max_restarts = 5,
                           .max_text = mem_strdup("5"),
                           .timeout = 30,
                           .dirty = true};
    if (!open_all(&s, err)) {
        if (!s.guard.pid)
            spawn_guard(&s);
        for (size_t i = 0; i < s.tasks.n; i++)
            task_start(&s, s.tasks.items[i]);
        watch_begin(&s);
        loop_timer_set(s.tick, TICK_SECONDS);
        if (!loop_run(s.loop, err))
            err->code = s.result;
    }
    close_all(&s);
    return err->code;
}
