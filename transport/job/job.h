/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of a running job (docs/job.md): by it a shell, a cron line and the job's own
 * processes find each other. It is guarded by its mode, 0700. What is in it:
 *
 *     cluster          the cluster file, with the ports that the system chose
 *     key              64 hexadecimal digits, 0600
 *     ps-0.pid         of each long-lived process: its pid, locked as long as it lives
 *     ps-0.starts      how often the task was started: the incarnation of the one that lives
 *     ps-0.claims      what it has claimed of the store that it saves to, since its first start
 *     ps-0.sock        its control socket
 *     ps-0.err         its stderr
 *     holders          who has the variables: a word
 *     worker-0.rec     what a worker fetches
 *
 * A process that was killed leaves its pid file behind, but not the lock on it: what is stale is
 * known without guessing whether a number was given to another process since. Every file appears
 * under its name whole.
 *
 * A struct job may be used by one thread at a time, the directory by any number of processes.
 */
#ifndef TF_TRANSPORT_JOB_H
#define TF_TRANSPORT_JOB_H

#include <sys/types.h>

#include "graph/cluster.h"

struct job {
    char *folder;
    int fd; /* of the folder */
};

/* Makes the directory, or takes one over whose job has ended, and writes the cluster's text and a
 * new key. ERR_RETRY when a process of another job still lives in it; ERR_DENIED, ERR_IO. */
int job_create(struct job *job, const char *folder, const char *cluster, struct error *err);

/* The same with a cluster file, which is checked first. */
int job_begin(const char *folder, const char *cluster_path, struct error *err);
/* With the text of one, of that name in messages. */
int job_begin_text(const char *folder, const char *text, const char *name, struct error *err);

/* ERR_NOINPUT when there is none or no job runs in it (it has no cluster file), ERR_DENIED when it
 * is not ours or open to others. */
int job_open(struct job *job, const char *folder, struct error *err);
void job_close(struct job *job);

/* The path of a file in it, as the folder was given: job_path(job, "ps:0", ".err"),
 * job_path(job, "", "key"). The caller frees it with mem_free. */
char *job_path(const struct job *job, const char *task, const char *what);

/* The job is over: removes what only a running one has. Output and stderr stay. ERR_RETRY when a
 * process lives. */
int job_end(struct job *job, struct error *err);

/* ---- a process of the job ---- */

struct job_slot {
    int fd; /* of the pid file, whose lock it holds */
    char task[64];
    uint64_t incarnation; /* 1, 2, ... */
};

/* Takes a task's place: writes its pid file and counts the start. ERR_RETRY naming the process that
 * has it. */
int job_enter(struct job *job, const char *task, struct job_slot *slot, struct error *err);

/* Gives it back; pid file and socket are gone. For a process that ends well. */
void job_leave(struct job *job, struct job_slot *slot);

/* Writes the address where a task listens into the cluster file. ERR_CONFIG when that does not have
 * the task. */
int job_publish(struct job *job, const char *task, const char *address, struct error *err);

/* ---- looking at it ---- */

struct job_process {
    bool alive;
    pid_t pid;            /* 0: it never was there, or has ended well */
    uint64_t incarnation; /* 0: not started yet */
    bool listens;         /* it lives and has its control socket: its loop is about to answer */
};

int job_look(const struct job *job, const char *task, struct job_process *process,
             struct error *err);

/* As it stands now; the cluster is zero-initialised before. */
int job_cluster(const struct job *job, struct cluster *cluster, struct error *err);

/* Returns whether it is the shards that have the job's variables, as who began it has found in its
 * graphs (graph/holders.h); ERR_CONFIG: it is workers. Where nobody has said it they may. */
int job_check_shards_keep(const struct job *job, struct error *err);

/* Why a task of the cluster cannot be reached yet, in a few words; NULL when nothing is known
 * against it: its address is complete, and its process lives or is of another host. */
const char *job_lacks(const struct job *job, const struct cluster_task *task);

#endif
