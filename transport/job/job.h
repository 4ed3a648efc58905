/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of a running job (docs/job.md), through which shells, cron and the job's own
 * processes find each other. Its mode, 0700, guards it. Contents:
 *
 *     cluster          the cluster file, with the ports that the system chose
 *     key              64 hexadecimal digits, 0600
 *     ps-0.pid         of each long-lived process: its pid, locked as long as it lives
 *     ps-0.starts      number of starts of the task: the incarnation of the running process
 *     ps-0.claims      what it has claimed of the store that it saves to, since its first start
 *     ps-0.sock        its control socket
 *     ps-0.err         its stderr
 *     holders          which tasks hold the variables: a word
 *     worker-0.rec     the fetches of a worker
 *
 * A killed process leaves its pid file behind, but not the lock on it: so stale files are
 * recognised without guessing whether a process ID was reused. Every file appears under its name
 * complete.
 *
 * One thread at a time may use a struct job, any number of processes the directory.
 */
#ifndef TF_TRANSPORT_JOB_H
#define TF_TRANSPORT_JOB_H

#include <sys/types.h>

#include "graph/cluster.h"

struct job {
    char *folder;
    int fd; /* descriptor of the folder */
};

/* Creates the directory, or takes over one whose job has ended, and writes the cluster's text and a
 * new key. ERR_RETRY if a process of another job still runs in it; ERR_DENIED, ERR_IO. */
int job_create(struct job *job, const char *folder, const char *cluster, struct error *err);

/* The same, but checks the text first; `name` stands for the cluster file in messages. */
int job_begin(const char *folder, const char *text, const char *name, struct error *err);

/* ERR_NOINPUT if the directory is missing or has no running job (no cluster file), ERR_DENIED if it
 * is another user's or open to others. */
int job_open(struct job *job, const char *folder, struct error *err);
void job_close(struct job *job);

/* Returns the path of a file in it, beginning as the folder was given: job_path(job, "ps:0",
 * ".err"), job_path(job, "", "key"). The caller frees it with mem_free. */
char *job_path(const struct job *job, const char *task, const char *what);

/* Ends the job: removes what only a running job has. Output and stderr stay. ERR_RETRY if a process
 * still runs; ERR_NOINPUT if there is neither a cluster file nor a key. */
int job_end(const char *folder, struct error *err);

/* ---- a process of the job ---- */

struct job_slot {
    int fd; /* of the pid file, whose lock it holds */
    char task[64];
    uint64_t incarnation; /* 1, 2, ... */
};

/* Takes a task's slot: writes its pid file and counts the start. ERR_RETRY naming the process that
 * holds the slot. */
int job_enter(struct job *job, const char *task, struct job_slot *slot, struct error *err);

/* Releases the slot and removes pid file and socket. For a process that ends well. */
void job_leave(struct job *job, struct job_slot *slot);

/* Writes the address at which a task listens into the cluster file. ERR_CONFIG if that file lacks
 * the task. */
int job_publish(struct job *job, const char *task, const char *address, struct error *err);

/* ---- state of a job ---- */

struct job_process {
    bool alive;
    pid_t pid;            /* 0: it never ran, or has ended well */
    uint64_t incarnation; /* 0: not started yet */
    bool listens;         /* it runs and has its control socket: its loop will soon reply */
};

int job_look(const struct job *job, const char *task, struct job_process *process,
             struct error *err);

/* Reads the present cluster file into a zero-initialised cluster. */
int job_cluster(const struct job *job, struct cluster *cluster, struct error *err);

/* Returns who holds the job's variables, as determined from its graphs when the job began: a word
 * of `holders_words` there, which the caller frees; NULL: it is not recorded. */
char *job_holders(const struct job *job);

/* Returns briefly why a task of the cluster cannot be reached yet; NULL if nothing is known against
 * it: its address is complete, and its process runs or is on another host. */
const char *job_lacks(const struct job *job, const struct cluster_task *task);

#endif
