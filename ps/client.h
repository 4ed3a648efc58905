/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool's connection to a running job: finds, links to and asks its shards. One thread.
 */
#ifndef TF_PS_CLIENT_H
#define TF_PS_CLIENT_H

#include <stdatomic.h>

#include "transport/job/member.h"
#include "transport/value/inquiry.h"

struct client {
    /* Set by the caller: */
    bool awaits_start;            /* waits for a dead task, as it will be restarted */
    bool of_values;               /* asks who has the variables, which may be a worker */
    const atomic_bool *cancelled; /* when true, ends all waits with ERR_CANCELLED; or NULL */

    struct member member;       /* no task of the cluster */
    struct peers_news news;     /* of the options */
    char only[TASK_TEXT_BYTES]; /* the only task to ask; "": all shards */
    VEC(const char *) tasks;    /* to ask, in the cluster's order */
    struct error died;          /* a task that cannot be reached */
    struct loop_event *look;    /* polls `cancelled` while tasks are dialed */
};

/* The task of the options is the only one to ask. NULL: all tasks of the job "ps"; or a worker, if
 * there are none, or if it has the variables and these are asked for. The timeout is for linking,
 * and for each request. Call client_close in any case. ERR_USAGE: no cluster is named;
 * ERR_CONFIG: it has no such task; ERR_DENIED: the key is wrong; ERR_UNAVAILABLE: a task cannot be
 * reached in time. */
int client_open(struct client *client, const struct member_options *options, struct error *err);
void client_close(struct client *client);

/* Sends a request to all tasks, or to one, and waits. Errors are those of inquiry_finish. */
int client_ask(struct client *client, const struct task_request *request, struct error *err);
int client_ask_one(struct client *client, int task, const struct task_request *request,
                   struct error *err);

/* Called before a checkpoint of the job is asked for. ERR_CONFIG: the tasks that are asked do not
 * have all variables. */
int client_check_holders(const struct client *client, struct error *err);

/* Returns whether the task to ask is no shard. */
bool client_asks_worker(const struct client *client);

/* Returns the index of the task in client->tasks. */
int client_task_index(const struct client *client, const char *task);

#endif
