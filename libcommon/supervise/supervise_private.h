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
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"
#include "supervise/control.h"
#include "supervise/supervise.h"
#include "supervise/supervise_task.h"

/* ---- contents of the file of tasks ---- */

enum hook { HOOK_NONE, HOOK_RESTART, HOOK_STOP, HOOK_END, HOOK_OVER, HOOK_COUNT };

struct budget { /* of restarts */
    int max;
    double seconds; /* the period in which they count; 0: unlimited */
    const char *text;
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
