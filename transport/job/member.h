/* SPDX-License-Identifier: Apache-2.0
 *
 * A process as a task of a cluster: finds and opens what its options name. The cluster comes from a
 * file, or from the directory of a running job, where the process then takes its task's slot.
 */
#ifndef TF_TRANSPORT_MEMBER_H
#define TF_TRANSPORT_MEMBER_H

#include "graph/cluster.h"
#include "graph/task.h"
#include "transport/job/job.h"
#include "transport/value/conns.h"

struct member_options {
    const char *cluster_path; /* NULL: the job's */
    const char *job_folder;   /* NULL: none */
    const char *task;         /* "worker:0"; NULL: TF_CONFIG's */
    const char *key_file;     /* NULL: the job's */
    const char *producer;     /* "tf-ps 1.0" */
    bool no_key;
    double lease, timeout; /* seconds; 0: 3 and 30 */

    struct peers_news news;
    /* Called now and then while waiting, with the context of the news: returns whether to give up.
     * May be NULL. */
    bool (*given_up)(void *context);
};

struct member {
    struct member_options options;
    struct cluster cluster;
    char task[TASK_TEXT_BYTES], job_name[DEVICE_WORD_BYTES]; /* "worker:0", "worker" */
    int index;
    struct job job; /* its folder is set if there is one */
    struct job_slot slot;
    bool has_slot;
    char *key_path; /* in the job's folder */
    struct conns *conns;
};

/* Call member_close in any case. ERR_USAGE: no cluster or no task is named; ERR_CONFIG: the cluster
 * lacks the task, or TCP without a key; ERR_RETRY: the task is already running. */
int member_open(struct member *member, const struct member_options *options, struct error *err);
void member_close(struct member *member);

/* The parts of member_open, for a process that is no task itself. Reads the first that is given: a
 * cluster file, that of a job's directory, TF_CONFIG, which also names the task. */
int member_find(struct member *member, const struct member_options *options,
                char task[TASK_TEXT_BYTES], struct error *err);
/* Makes the connection manager, by the options of the member. */
int member_connect(struct member *member, struct error *err);

/* Returns the path of the task's claims in the job's directory; NULL: no job. Caller frees it. */
char *member_claims(const struct member *member);

/* Listens at the task's address, and publishes the real address in the job's directory. */
int member_listen(struct member *member, struct address *bound, struct error *err);

/* In a job: re-reads the cluster until these tasks are known to run, for at most the timeout.
 * ERR_UNAVAILABLE naming one that is not; ERR_CANCELLED: given up. */
int member_wait_for(struct member *member, const char *const *tasks, size_t n, struct error *err);

/* Returns the task of that name, "ps:0"; NULL: the cluster has none. */
const struct cluster_task *member_find_task(const struct cluster *cluster, const char *task);

#endif
