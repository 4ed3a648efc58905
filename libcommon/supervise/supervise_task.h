/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks that a supervisor runs, and their processes. Private to the supervisor, for its one
 * thread.
 */
#ifndef TF_SUPERVISE_TASK_H
#define TF_SUPERVISE_TASK_H

#include <stdint.h>
#include <sys/types.h>

#include "base/spawn.h"

#define TEXT_BYTES 1024
#define ENDED_BYTES 32

struct supervisor;

enum restart_policy { RESTART_ALL, RESTART_ALONE, RESTART_NEVER };

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

#endif
