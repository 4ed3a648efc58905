/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool's connection to a running job: finds, links to and asks its shards. One thread.
 */
#ifndef TF_PS_CLIENT_H
#define TF_PS_CLIENT_H

#include "graph/cluster.h"
#include "transport/job/job.h"
#include "transport/value/inquiry.h"

struct client_options {
    const char *cluster_path; /* NULL: the job's, */
    const char *job_folder;   /* NULL: none */
    const char *key_file;     /* NULL: the job's */
    bool no_key;
    const char *task;             /* the only task to ask; NULL: all tasks of the job "ps" */
    const char *producer;         /* "tf-ps 1.0" */
    double timeout;               /* seconds, for linking and for each request; 0: 30 */
    bool awaits_start;            /* waits for a dead task, as it will be restarted */
    const atomic_bool *cancelled; /* when true, ends all waits with ERR_CANCELLED; or NULL */

    /* "waiting for ps:1 at 127.0.0.1:7001: connection refused, 27 s left"; may be NULL. */
    void (*waiting)(void *context, const char *text);
    void *context;
};

struct client {
    struct client_options options;
    struct cluster cluster;
    VEC(const char *) tasks; /* to ask, in the cluster's order */
    struct job job;          /* with a folder if there is one */
    char *key_path;
    struct error died; /* a task that cannot be reached */
    struct conns *conns;
    struct loop_event *look; /* polls `cancelled` while tasks are dialed */
};

/* Call client_close in any case. ERR_USAGE: no cluster is named; ERR_CONFIG: it has no such task;
 * ERR_DENIED: the key is wrong; ERR_UNAVAILABLE: a task cannot be reached in time. */
int client_open(struct client *client, const struct client_options *options, struct error *err);
void client_close(struct client *client);

/* Sends a request to all tasks, or to one, and waits. Errors are those of inquiry_finish. */
int client_ask(struct client *client, const struct task_request *request, struct error *err);
int client_ask_one(struct client *client, int task, const struct task_request *request,
                   struct error *err);

/* Called before shards are asked to save: job_check_shards_keep, if there is a job. */
int client_check_shards_keep(const struct client *client, struct error *err);

/* Returns the index of the task in client->tasks. */
int client_task_index(const struct client *client, const char *task);

#endif
