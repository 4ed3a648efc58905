/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool's end of a running job: finds its shards, links to them and asks them. One thread.
 */
#ifndef TF_PS_CLIENT_H
#define TF_PS_CLIENT_H

#include "graph/cluster.h"
#include "ps/inquiry.h"
#include "transport/job/job.h"

struct client_options {
    const char *cluster_path; /* NULL: the job's, */
    const char *job_folder;   /* NULL: none */
    const char *key_file;     /* NULL: the job's */
    bool no_key;
    const char *task;             /* which one; NULL: all tasks of the job "ps" */
    const char *producer;         /* "tf-ps 1.0" */
    double timeout;               /* seconds, of linking and of each request; 0: 30 */
    bool awaits_start;            /* one that has died is waited for: it is started again */
    const atomic_bool *cancelled; /* ends all waits with ERR_CANCELLED; NULL: nothing does */

    /* "waiting for ps:1 at 127.0.0.1:7001: connection refused, 27 s left"; may be NULL. */
    void (*waiting)(void *context, const char *text);
    void *context;
};

struct client {
    struct client_options options;
    struct cluster cluster;
    VEC(const char *) tasks; /* that are asked, in the cluster's order */
    struct job job;          /* with a folder if there is one */
    char *key_path;
    struct error died; /* who is waited for in vain */
    struct hub *hub;
    struct loop_timer *look; /* for `cancelled`, while tasks are dialed */
};

/* client_close in any case. ERR_USAGE: no cluster is named; ERR_CONFIG: it has no such task;
 * ERR_DENIED: it is another key; ERR_UNAVAILABLE: one cannot be reached in time. */
int client_open(struct client *client, const struct client_options *options, struct error *err);
void client_close(struct client *client);

/* Asks all tasks, or one of them, and waits. Errors as of inquiry_finish. */
int client_ask(struct client *client, const struct task_request *request, struct error *err);
int client_ask_one(struct client *client, int task, const struct task_request *request,
                   struct error *err);

/* Before shards are asked to save: job_check_shards_keep, where there is a job. */
int client_check_shards_keep(const struct client *client, struct error *err);

/* Returns which of client->tasks it is. */
int client_task_index(const struct client *client, const char *task);

#endif
