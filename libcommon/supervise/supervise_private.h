/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the supervisor's files, and private to it. One thread runs all of it, except the watch,
 * whose calls come from a thread of its own and take the lock.
 */
#ifndef TF_SUPERVISE_PRIVATE_H
#define TF_SUPERVISE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/spawn.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"
#include "supervise/control.h"
#include "supervise/supervise.h"

#define TEXT_BYTES 1024
#define ENDED_BYTES 32

struct supervisor;

/* ---- contents of the file of tasks ---- */

enum hook { HOOK_NONE, HOOK_RESTART, HOOK_STOP, HOOK_END, HOOK_OVER, HOOK_COUNT };

enum restart_policy { RESTART_ALL, RESTART_ALONE, RESTART_NEVER };

struct budget { /* of restarts */
    int max;
    double seconds; /* the period in which they count; 0: unlimited */
    const char *text;
};

/* ---- processes ---- */

/* How late a process is that is to end. */
struct lateness {
    double since;        /* time since it is to end; 0: it is not to */
    double news, looked; /* delay until the user is told; time of the last check */
    double stopped_at;   /* time since a process of its session is stopped; 0: none is */
    pid_t stopped;
    double kill_at; /* 0: not yet */
};

/* A child, in a session of its own. */
struct process {
    pid_t pid;      /* 0: none runs */
    int serial;     /* its number in its mark, unique within the supervisor */
    bool has_ended; /* its end is not reported yet */
    int status;     /* as in a shell */
    double since;
    struct lateness late;
    struct task *task; /* NULL: of no task */
    struct process *next;
    void (*ended)(struct supervisor *s, struct process *process, int status);
};

/* The facts of a task from one start to the next. */
struct life {
    bool done, ready, told_to_end;
    int code;                /* its exit status, as in a shell */
    double died_at;          /* 0: it has not died */
    double kill_feeder_at;   /* 0: its feed command was not told to end */
    char why[64];            /* why it was killed */
    char ended[ENDED_BYTES]; /* how it ended, in words */
    char fed[ENDED_BYTES];   /* how its feed command ended by itself; empty: well, or not yet */
};

struct task {
    const char *name, *command, *feed, *host, *errors, *repeats;
    enum restart_policy policy;
    bool service, leads, hold, ends[256];
    int absent;

    struct process main, feeder;
    struct life life;
    int input;              /* writing end of its stdin; -1: none, or closed */
    int starts, restarts;   /* in all; those that count */
    uint64_t incarnation;   /* in the job's directory, before the last start */
    int brief;              /* consecutive ends soon after the start */
    bool again;             /* it was restarted since all were started together */
    long pid;               /* of the last process; 0: none */
    double start_at, asked; /* time of its next start, 0: none; time due without absent hosts */
    off_t repeated;         /* offset in `errors` up to which lines were checked */
    off_t began;            /* offset in `errors` at the last start: earlier bytes are others' */
    char told[TEXT_BYTES];  /* last reported reason why it was missing */
    struct task *next;
};

/* ---- the supervisor ---- */

enum phase {
    PHASE_RUN,     /* tasks run; those that die are restarted */
    PHASE_RESTART, /* all are killed and then restarted; the hook says from where */
    PHASE_SAVE,    /* the job is to end: the hook `stop` runs */
    PHASE_END,     /* all but the services are told to end; the hook `end` runs */
    PHASE_OVER,    /* the services are told to end; the hook `over` runs */
    PHASE_GONE
};

struct supervisor {
    struct supervise_options options;
    struct arena arena;        /* for what the file says */
    struct task *tasks, *last; /* in the order of the file */
    struct process *processes; /* all that may be running */
    int n_tasks;
    const char *name, *folder, *cleanup, *hooks[HOOK_COUNT];
    struct budget budget;
    double lease, timeout; /* lease 0: nothing is watched */
    double grace;          /* for tasks that are to end, and for hooks; 0: from the timeout */
    bool no_key, quiet;
    int reaper_pid; /* of a reaper that already runs; 0: none */

    struct control control;
    int signals; /* a descriptor */
    int reaper;  /* its pidfd */
    double reaper_at;
    int parent_pipe[2], serial;

    enum phase phase;
    const char *phase_name;
    bool hooked;     /* its hook, if any, has been started */
    const char *why; /* why it is to end: "INT", "FAIL"; NULL: it is not */
    int result;
    bool saved;
    double stopped_at, killed_at; /* 0: not stopped, not killed */
    pid_t stopped_by;

    struct process hook;
    enum hook hook_kind;
    int hook_out;
    int hook_status; /* of the last hook; -1: none */
    double hook_ended_at;
    struct task *about;    /* the task that the hook runs or ran for; NULL: all */
    char said[TEXT_BYTES]; /* what that hook said, for the user */
    int hook_tries;        /* of the phase's hook, after it was killed */

    VEC(double) restarts;  /* their times */
    int counted, rounds;   /* restarts within the budget's period; starts of all together */
    double pause;          /* before starting all together */
    char lost[TEXT_BYTES]; /* the reason of the last restart */
    int64_t step;
    int64_t stood_at;        /* the step without progress */
    double stood_since;      /* time since when */
    char values[TEXT_BYTES]; /* "loss=0.0187", last fetched */
    struct str state;        /* as last written */

    pthread_mutex_t lock; /* reapers all of it; released while waiting */
    pthread_t watch;
    bool watching;
    atomic_bool watch_ends;
};

/* supervise_file.c */
int supervise_read(struct supervisor *s, struct error *err);

/* supervise_task.c: processes. */
#define ENVIRONMENT_MAX 8 /* variables in a child's environment */
/* Starts a shell line with these descriptors and environment. Returns errno. */
int start_shell(struct supervisor *s, struct process *process, const char *line, struct spawn how);
void process_signal(const struct process *process, int signal); /* its group */
void reap(struct supervisor *s);
bool was_killed(int status);

/* One task. */
void task_plan(struct task *task, double pause);
void task_tell_to_end(struct task *task);
void task_kill(struct task *task);
void task_ended(struct supervisor *s, struct process *process, int status);
void feeder_ended(struct supervisor *s, struct process *process, int status);
void task_tick(struct supervisor *s, struct task *task);
bool task_is_busy(const struct task *task);
/* Its output. */
void task_cause(const struct task *task, char text[TEXT_BYTES]);
void task_last_words(const struct task *task, char text[TEXT_BYTES]);
void task_last_lines(struct supervisor *s, const struct task *task);

/* supervise_late.c: processes that are to end and do not. */
void late_begin(struct process *process);
void late_tick(struct supervisor *s);

/* supervise_restart.c: the handling of deaths. */
void settle_deaths(struct supervisor *s);
void give_up(struct supervisor *s, struct task *task, const char *after);

/* supervise_watch.c: leases. */
void watch_begin(struct supervisor *s);
void watch_end(struct supervisor *s);

/* supervise.c */
void say(struct supervisor *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports a loss, even with -q. */
void say_loss(struct supervisor *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void enter(struct supervisor *s, enum phase phase);
void stop_with(struct supervisor *s, const char *why, int result);
/* A failure at the end becomes the job's result, unless that is a failure already. */
void fail_with(struct supervisor *s, int result);

/* supervise_hooks.c */
#define HOOK_TRIES 3 /* of a hook that is killed for another reason than its length */
bool run_hook(struct supervisor *s, enum hook kind, struct task *about);
void hook_ended(struct supervisor *s, struct process *hook, int status);
bool hook_begins_again(struct supervisor *s, enum hook kind);

#endif
