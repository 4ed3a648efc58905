/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the supervisor share. Private to it. One thread runs all of it but the watch,
 * whose calls come from a thread of its own, and wait for the lock.
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

/* ---- what the file says ---- */

enum hook { HOOK_NONE, HOOK_RESTART, HOOK_STOP, HOOK_END, HOOK_OVER, HOOK_COUNT };

enum restart_policy { RESTART_ALL, RESTART_ALONE, RESTART_NEVER };

struct budget { /* of restarts */
    int max;
    double seconds; /* within which they count; 0: for ever */
    const char *text;
};

/* ---- processes ---- */

/* The lateness of a process that is to end. */
struct lateness {
    double since;        /* 0: it may go on */
    double news, looked; /* how long it then takes until the user hears of it; the last look */
    double stopped_at;   /* since when one of its session stands still; 0: none does */
    pid_t stopped;
    double kill_at; /* 0: not yet */
};

/* A child, in a session of its own. */
struct process {
    pid_t pid;      /* 0: none runs */
    int serial;     /* by which its mark tells it from others of the supervisor */
    bool has_ended; /* which is to be told */
    int status;     /* as a shell has it */
    double since;
    struct lateness late;
    struct task *task; /* NULL: of none */
    struct process *next;
    void (*ended)(struct supervisor *s, struct process *process, int status);
};

/* The facts of a task that last from one start to the next. */
struct life {
    bool done, ready, told_to_end;
    int code;                /* of its end, as a shell has it */
    double died_at;          /* 0: it has not died */
    double kill_feeder_at;   /* 0: its feed command was not told to end */
    char why[64];            /* it was killed */
    char ended[ENDED_BYTES]; /* how it did, in words */
    char fed[ENDED_BYTES];   /* how its feed command did, by itself; empty: well, or not yet */
};

struct task {
    const char *name, *command, *feed, *host, *errors, *repeats;
    enum restart_policy policy;
    bool service, leads, hold, ends[256];
    int absent;

    struct process main, feeder;
    struct life life;
    int input;              /* the writing end of its stdin; -1: it has none, or is at its end */
    int starts, restarts;   /* in all; those that count */
    uint64_t incarnation;   /* in the job's directory, before the last start */
    int brief;              /* ends in turn that came soon after the start */
    bool again;             /* it was started again since all were started together */
    long pid;               /* of the last one that ran; 0: none has */
    double start_at, asked; /* when it is to start, 0: not; when that was, but for absent hosts */
    off_t repeated;         /* bytes of `errors` that were looked at */
    off_t began;            /* bytes of `errors` before the last start: what others have said */
    char told[TEXT_BYTES];  /* why it was not there */
    struct task *next;
};

/* ---- the whole ---- */

enum phase {
    PHASE_RUN,     /* tasks run; what dies is started again */
    PHASE_RESTART, /* all are killed, to be started again; the hook says from where */
    PHASE_SAVE,    /* the job is to end: the hook `stop` runs */
    PHASE_END,     /* all but the services are told to end; the hook `end` runs */
    PHASE_OVER,    /* the services are; the hook `over` runs */
    PHASE_GONE
};

struct supervisor {
    struct supervise_options options;
    struct arena arena;        /* of what the file says */
    struct task *tasks, *last; /* in the order of the file */
    struct process *processes; /* all that may run */
    int n_tasks;
    const char *name, *folder, *cleanup, *hooks[HOOK_COUNT];
    struct budget budget;
    double lease, timeout; /* lease 0: nobody is watched */
    double grace;          /* of tasks that are to end, and of hooks; 0: as the timeout has it */
    bool no_key, quiet;
    int guard_pid; /* of one that runs already; 0: none */

    struct control control;
    int signals; /* a descriptor */
    int guard;   /* its pidfd */
    double guard_at;
    int lifeline[2], serial;

    enum phase phase;
    const char *phase_name;
    bool hooked;     /* its hook, if there is one, has begun */
    const char *why; /* it is to end: "INT", "FAIL"; NULL: it goes on */
    int result;
    bool saved;
    double stopped_at, killed_at; /* 0: not */
    pid_t stopped_by;

    struct process hook;
    enum hook hook_kind;
    int hook_out;
    int hook_status; /* of the last one; -1: there was none */
    double hook_ended_at;
    struct task *about;    /* whom the hook runs for, or ran; NULL: all */
    char said[TEXT_BYTES]; /* by that hook, for the user */
    int hook_tries;        /* of the phase's, after it was killed */

    VEC(double) restarts;  /* when each was */
    int counted, rounds;   /* those within the budget's time; how often all were started together */
    double pause;          /* before that */
    char lost[TEXT_BYTES]; /* what the last restart was for */
    int64_t step;
    int64_t stood_at;        /* the step that it stands at, */
    double stood_since;      /* since then */
    char values[TEXT_BYTES]; /* "loss=0.0187", fetched last */
    struct str state;        /* as it was last written */

    pthread_mutex_t lock; /* of all of it: whoever waits lets it go */
    pthread_t watch;
    bool watching;
    atomic_bool watch_ends;
};

/* supervise_file.c */
int supervise_read(struct supervisor *s, struct error *err);

/* supervise_child.c: processes. */
#define ENVIRONMENT_MAX 8 /* words of it that a child is told */
/* A line of the shell, by its three descriptors and environment. errno. */
int start_shell(struct supervisor *s, struct process *process, const char *line, struct spawn how);
void process_signal(const struct process *process, int signal); /* its group */
void reap(struct supervisor *s);
bool was_killed(int status);

/* supervise_task.c: one task. */
void task_plan(struct task *task, double pause);
void task_tell_to_end(struct task *task);
void task_kill(struct task *task);
void task_ended(struct supervisor *s, struct process *process, int status);
void feeder_ended(struct supervisor *s, struct process *process, int status);
void task_tick(struct supervisor *s, struct task *task);
bool task_is_busy(const struct task *task);

/* supervise_late.c: who is to end, and does not. */
void late_begin(struct process *process);
void late_tick(struct supervisor *s);

/* supervise_words.c: what a task has said. */
void task_cause(const struct task *task, char text[TEXT_BYTES]);
void task_last_words(const struct task *task, char text[TEXT_BYTES]);
void task_last_lines(struct supervisor *s, const struct task *task);
void task_repeat(struct supervisor *s, struct task *task);

/* supervise_restart.c: what is done about deaths. */
void settle_deaths(struct supervisor *s);
void give_up(struct supervisor *s, struct task *task, const char *after);

/* supervise_watch.c: leases. */
void watch_begin(struct supervisor *s);
void watch_end(struct supervisor *s);

/* supervise_state.c: what others see of it. */
void state_write(struct supervisor *s);

/* supervise.c */
void say(struct supervisor *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Tells of a loss, also with -q. */
void say_loss(struct supervisor *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void enter(struct supervisor *s, enum phase phase);
void stop_with(struct supervisor *s, const char *why, int result);
/* A failure at the end is the job's result, if that is not a failure already. */
void fail_with(struct supervisor *s, int result);

/* supervise_hooks.c */
#define HOOK_TRIES 3 /* of a hook that is killed, but for its length */
bool run_hook(struct supervisor *s, enum hook kind, struct task *about);
void hook_ended(struct supervisor *s, struct process *hook, int status);
bool hook_begins_again(struct supervisor *s, enum hook kind);

#endif
