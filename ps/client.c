/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/time.h"
#include "graph/holders.h"

#define LOOK_SECONDS 0.02

static bool is_wanted(const struct client *client, const struct cluster_task *task)
{
    return *client->only ? !strcmp(task->name, client->only) : !strcmp(task->job, SHARD_JOB);
}

/* Finds a task to ask whose port is not known yet; NULL: none. */
static const struct cluster_task *find_unknown(const struct client *client, const char **why)
{
    vec_each(task, &client->member.cluster.tasks)
        if (is_wanted(client, task) && str_ends(task->address, ":0") &&
            (*why = job_lacks(&client->member.job, task)))
            return task;
    return NULL;
}

static bool is_cancelled(void *context)
{
    const struct client *client = context;
    return client->cancelled && atomic_load(client->cancelled);
}

static int give_up(const char *task, struct error *err)
{
    return error_set(err, ERR_CANCELLED, "interrupted while waiting for %s", task);
}

/* Waits while a job starts: its tasks write the ports that they got into the cluster file. */
static int await_ports(struct client *client, struct error *err)
{
    const struct peers_news *news = &client->member.options.news;
    double now = time_now(), told = now, end = now + client->member.options.timeout;
    const struct cluster_task *task;
    const char *why = NULL;
    while ((task = find_unknown(client, &why))) {
        char text[256];
        now = time_now();
        if (now >= end)
            return error_set(err, ERR_UNAVAILABLE, "%s: %s", task->name, why);
        snprintf(text, sizeof text, "waiting for %.64s: %s, %.0f s left", task->name, why,
                 end - now);
        if (news->waiting && now - told >= 1) {
            news->waiting(news->context, task->name, text);
            told = now;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * LOOK_SECONDS)}, NULL);
        if (is_cancelled(client))
            return give_up(task->name, err);
        cluster_release(&client->member.cluster);
        client->member.cluster = (struct cluster){0};
        if (job_cluster(&client->member.job, &client->member.cluster, err))
            return err->code;
    }
    return 0;
}

/* Returns who holds the variables of the job; HOLDERS_KINDS: it is not known. */
static enum holders find_holders(const struct client *client)
{
    char *word = client->member.job.folder ? job_holders(&client->member.job) : NULL;
    size_t found = word ? names_find(holders_words, HOLDERS_KINDS, word) : HOLDERS_KINDS;
    mem_free(word);
    return (enum holders)found;
}

int client_check_holders(const struct client *client, struct error *err)
{
    return find_holders(client) == HOLDERS_SPREAD
               ? error_set(err, ERR_CONFIG,
                           "job directory %s: neither the shards nor any one worker have all "
                           "variables",
                           client->member.job.folder)
               : 0;
}

/* Fails for a task that is known to be dead: it is not waited for. */
static int check_alive(const struct client *client, const struct cluster_task *task,
                       struct error *err)
{
    struct job_process process;
    if (client->awaits_start)
        return 0;
    int code =
        client->member.job.folder ? job_look(&client->member.job, task->name, &process, err) : 0;
    if (!code && client->member.job.folder && process.pid && !process.alive)
        code = error_set(err, ERR_UNAVAILABLE, "%s at %s: its process (pid %ld) has died",
                         task->name, task->address, (long)process.pid);
    return code;
}

/* Returns whether a task of the job has run on this host, and does not now. */
static bool worker_is_gone(const struct client *client, const struct cluster_task *task)
{
    struct job_process process;
    struct error ignored = ERROR_INIT;
    return !job_look(&client->member.job, task->name, &process, &ignored) && !process.alive &&
           process.incarnation;
}

/* Returns the worker to ask, the first that lives if each has all variables; NULL: none. */
static const struct cluster_task *find_worker(const struct client *client)
{
    const struct cluster *cluster = &client->member.cluster;
    const enum holders holders = find_holders(client);
    bool each = holders == HOLDERS_EACH_WORKER;
    bool has_values = client->of_values && (each || holders == HOLDERS_FIRST_WORKER);
    const struct cluster_task *worker = NULL;
    if (holders == HOLDERS_SPREAD || (cluster_count(cluster, SHARD_JOB) && !has_values))
        return NULL;
    vec_each(task, &cluster->tasks) {
        if (!strcmp(task->job, SHARD_JOB))
            continue;
        worker = worker ? worker : task;
        if (each && !worker_is_gone(client, task))
            return task;
    }
    return worker;
}

static int choose_tasks(struct client *client, struct error *err)
{
    for (size_t i = 0; i < client->member.cluster.tasks.n; i++) {
        const struct cluster_task *task = &client->member.cluster.tasks.items[i];
        if (is_wanted(client, task))
            vec_push(&client->tasks, task->name);
    }
    return client->tasks.n ? 0
           : *client->only
               ? error_set(err, ERR_CONFIG, "there is no task %s in the cluster", client->only)
               : error_set(err, ERR_CONFIG, "there is no task of job " SHARD_JOB " in the cluster");
}

/* Returns the address: for a job on this host the control socket, which needs no key. */
static const char *address_of(struct client *client, const struct cluster_task *task)
{
    struct arena *arena = &client->member.cluster.arena;
    const char *name = arena_printf(arena, "%s-%d.sock", task->job, task->index);
    struct job_process process;
    struct error ignored = ERROR_INIT;
    if (client->member.options.key_file || !client->member.job.folder ||
        client->member.options.cluster_path || faccessat(client->member.job.fd, name, F_OK, 0) ||
        job_look(&client->member.job, task->name, &process, &ignored) || !process.alive)
        return task->address;
    return arena_printf(arena, "unix:%s", name);
}

/* Returns the first task without a link. */
static const char *find_awaited(const struct client *client)
{
    vec_each(task, &client->tasks)
        if (!conns_is_linked(client->member.conns, *task))
            return *task;
    return "the cluster";
}

/* A stalled task may delay a dial until the timeout. */
static void check_limit(void *context)
{
    struct client *client = context;
    if (is_cancelled(client) && give_up(find_awaited(client), &client->died))
        loop_stop(conns_loop(client->member.conns));
    else
        loop_timer_set(client->look, LOOK_SECONDS);
}

static int dial_all(struct client *client, struct error *err)
{
    vec_each(task, &client->member.cluster.tasks) {
        if (client_task_index(client, task->name) < 0)
            continue;
        if (check_alive(client, task, err) ||
            peers_connect(conns_peers(client->member.conns), task->name, address_of(client, task),
                          client->member.options.timeout, err))
            return err->code;
    }
    client->look = loop_timer_new(conns_loop(client->member.conns), check_limit, client);
    check_limit(client);
    int code = peers_wait(conns_peers(client->member.conns), err);
    loop_event_free(client->look);
    if (client->died.code)
        *err = client->died;
    return client->died.code ? client->died.code : code;
}

/* Called once a second while a task is dialed. */
static void waits(void *context, const char *name, const char *text)
{
    struct client *client = context;
    vec_each(task, &client->member.cluster.tasks)
        if (!strcmp(task->name, name) && check_alive(client, task, &client->died))
            loop_stop(conns_loop(client->member.conns));
    if (client->news.waiting && !client->died.code)
        client->news.waiting(client->news.context, name, text);
}

int client_open(struct client *client, const struct member_options *options, struct error *err)
{
    char own[TASK_TEXT_BYTES];
    struct member *member = &client->member;
    if (member_find(member, options, own, err))
        return err->code;
    const struct cluster_task *worker = options->task ? NULL : find_worker(client);
    snprintf(client->only, sizeof client->only, "%s",
             options->task ? options->task
             : worker      ? worker->name
                           : "");
    if ((member->job.folder && !options->cluster_path && await_ports(client, err)) ||
        choose_tasks(client, err))
        return err->code;
    client->news = options->news;
    member->options.news = (struct peers_news){.waiting = waits, .context = client};
    return member_connect(member, err) ? err->code : dial_all(client, err);
}

void client_close(struct client *client)
{
    member_close(&client->member);
    vec_release(&client->tasks);
}

bool client_asks_worker(const struct client *client)
{
    return *client->only && !str_starts(client->only, SHARD_JOB ":");
}

int client_task_index(const struct client *client, const char *task)
{
    size_t i = vec_find(&client->tasks, task);
    return i < client->tasks.n ? (int)i : -1;
}

static int ask(struct client *client, const char *const *tasks, size_t n,
               const struct task_request *request, struct error *err)
{
    const struct inquiry_wait wait = {true, client->member.options.timeout, is_cancelled, client};
    if (FAILPOINT("client.ask"))
        return error_set(err, ERR_UNAVAILABLE, "failpoint client.ask");
    struct inquiry *inquiry = inquiry_new(client->member.conns);
    inquiry_ask_all(inquiry, tasks, n, request);
    return inquiry_finish(inquiry, &wait, err);
}

int client_ask(struct client *client, const struct task_request *request, struct error *err)
{
    return ask(client, client->tasks.items, client->tasks.n, request, err);
}

int client_ask_one(struct client *client, int task, const struct task_request *request,
                   struct error *err)
{
    return ask(client, &client->tasks.items[task], 1, request, err);
}
