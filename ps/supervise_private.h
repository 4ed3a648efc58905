/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the supervisor share. Private to ps/. One thread runs all of it but the watch.
 */
#ifndef TF_PS_SUPERVISE_PRIVATE_H
#define TF_PS_SUPERVISE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/str.h"
#include "base/vec.h"
#include "ps/supervise.h"
#include "transport/loop/loop.h"

#define ENDS_MAX 16
#define TICK_SECONDS 0.1

enum hook { HOOK_RESTART, HOOK_BROKEN, HOOK_STOP, HOOK_END, HOOK_OVER, HOOK_COUNT };

enum restart_policy { RESTART_ALL, RESTART_ALONE, RESTART_NEVER };

enum phase {
    PHASE_RUN,     /* tasks run; what dies is started again */
    PHASE_RESET,   /* all are being killed, to be started again */
    PHASE_RESTART, /* the hook says from where */
    PHASE_SAVE,    /* a signal came: the hook `stop` runs */
    PHASE_LEAVE,   /* all but the services have been told to end */
    PHASE_END,     /* they have ended: the hook `end` runs */
    PHASE_CLOSE,   /* the services have been told to end */
    PHASE_OVER,    /* nothing runs but the hook `over` */
    PHASE_GONE
};

/* A child, in a session of its own. */
struct process {
    pid_t pid; /* 0: none runs */
    char mark[96];
    double since, kill_at; /* when it began; when it is killed, 0: not planned */
};

struct task {
    /* As the file says. */
    char *name, *command, *feed, *host, *output, *errors, *repeats;
    enum restart_policy policy;
    bool service, hold;
    int ends[ENDS_MAX], n_ends, absent;

    /* As it is. */
    struct process main, feeder;
    int input;               /* the writing end of its stdin; -1: it has none, or is at its end */
    int starts, generations; /* how often it was started in all, and since all were */
    int restarts, brief;     /* that count; ends in turn that came soon after the start */
    long pid;                /* of the last one that ran; 0: none has */
    bool done, died, ready, told_to_end, absent_now;
    int code;                             /* of the last end, as a shell has it */
    double died_at, start_at, asked;      /* 0: not */
    off_t repeated;                       /* bytes of `errors` that were looked at */
    double unheard_at;                    /* when a silence is looked at again */
    char why[128], ended[64], told[1152]; /* why it was killed; how it ended; what it waits for */
};

/* What the thread that watches has seen. */
struct news {
    pthread_mutex_t lock;
    VEC(char *) lines;
    struct watch_state state;
    struct str values;
    bool has_state;
};

struct supervisor {
    struct supervise_options options;
    VEC(struct task *) tasks;
    char *name, *folder, *cleanup, *hooks[HOOK_COUNT];
    double lease, timeout; /* lease 0: nobody is watched */
    int max_restarts;
    double restart_window; /* seconds; 0: for ever */
    char *max_text;
    bool no_key, quiet;

    struct loop *loop;
    struct loop_watch *signals, *control;
    struct loop_timer *tick;
    int signal_fd, control_fd, lifeline[2];
    VEC(int) stopping_clients; /* wait for the end */
    struct process guard, hook;
    enum hook hook_kind;
    struct task *hook_task; /* that it is about; NULL: all */
    int hook_out;
    bool guard_is_child;

    enum phase phase;
    int result;
    const char *why; /* "INT", "FAIL"; NULL: it goes on */
    double stopped_at, killed_at;
    pid_t stopped_by;
    bool saved;
    int end_tries;        /* of the hook `end` */
    struct task *culprit; /* of a reset */
    char lost[1536];
    VEC(double) restarts;
    int n_restarts, generation, serial;
    int64_t step;
    bool dirty; /* the state has changed */
    char *state_text;

    pthread_t watch;
    bool watching;
    atomic_bool watch_ends;
    struct news news;
};

/* supervise_file.c */
int supervise_read(struct supervisor *s, const char *path, struct error *err);
void supervise_free_tasks(struct supervisor *s);

/* supervise_child.c: processes. */
struct spawn {
    const char *line, *kind; /* of the shell; for the mark */
    int in, out, err;        /* -1: /dev/null; err -1: as the supervisor's */
    bool holds_lifeline;
    const char *extra[6]; /* NAME=VALUE, ended by NULL */
};
int spawn_shell(struct supervisor *s, struct process *process, const struct spawn *spawn);
void process_signal(const struct process *process, int signal); /* its group */
void spawn_guard(struct supervisor *s);
void look_at_guard(struct supervisor *s);
void release_guard(struct supervisor *s);
void reap(struct supervisor *s);

/* supervise_task.c: one task. */
void task_start(struct supervisor *s, struct task *task);
void task_tell_to_end(struct task *task);
void task_kill(struct task *task);
void task_ended(struct supervisor *s, struct task *task, int status);
void feeder_ended(struct supervisor *s, struct task *task, int status);
bool task_is_busy(const struct task *task);
void task_tick(struct supervisor *s, struct task *task, double now);
void task_cause(const struct task *task, char *text, size_t n);
void task_last_lines(const struct task *task, int n, struct str *lines);

/* supervise_restart.c: what is done about deaths. */
void settle_deaths(struct supervisor *s);
void start_anew(struct supervisor *s);
void start_alone(struct supervisor *s, struct task *task);
void give_up(struct supervisor *s, struct task *task, int code);
void restart_hook_ended(struct supervisor *s, const char *said);
void broken_hook_ended(struct supervisor *s, bool broken);

/* supervise_watch.c: leases. */
void watch_begin(struct supervisor *s);
void watch_end(struct supervisor *s);
void watch_take(struct supervisor *s);
void look_at_silent(struct supervisor *s, struct task *task, double now);

/* supervise_state.c: what others see of it. */
int state_open(struct supervisor *s, struct error *err);
void state_write(struct supervisor *s);
void state_close(struct supervisor *s);
char *state_of_task(const struct task *task); /* a line for the hook `over` */

/* supervise.c */
void say(struct supervisor *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ask_to_stop(struct supervisor *s, const char *why, int result, pid_t from);
void stop_with(struct supervisor *s, const char *why, int result);
bool run_hook(struct supervisor *s, enum hook kind, struct task *task);
void hook_ended(struct supervisor *s, int status);
void tell_workers(struct supervisor *s);
void advance(struct supervisor *s);
bool all_services_run(const struct supervisor *s);

#endif
