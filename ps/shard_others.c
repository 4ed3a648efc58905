/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "ps/shard_private.h"

/* The waiter may give up before the loop gets to the dial: the last of the two frees it. */
struct awaited_dial {
    struct conns *conns;
    char *task, *address;
    double seconds;
    atomic_int holders;
    atomic_bool given_up; /* the connection manager may be ending: do not dial */
    struct error err;     /* valid once done */
    atomic_bool done;
};

static void dial_release(struct awaited_dial *d)
{
    if (atomic_fetch_sub(&d->holders, 1) > 1)
        return;
    mem_free(d->task);
    mem_free(d->address);
    mem_free(d);
}

static void dial(void *argument)
{
    struct awaited_dial *d = argument;
    if (!atomic_load(&d->given_up))
        peers_connect(conns_peers(d->conns), d->task, d->address, d->seconds, &d->err);
    atomic_store(&d->done, true);
    dial_release(d);
}

/* Gives up early only if the shard ends, whose loop then runs on for a while, or not at all. */
static int link_to(struct shard *shard, const char *task, const char *address, double seconds,
                   struct error *err)
{
    const struct timespec pause = {0, 2000000};
    struct conns *conns = shard->options.conns;
    double end = time_now() + seconds;
    if (conns_is_linked(conns, task))
        return 0;
    struct awaited_dial *d = mem_alloc(sizeof *d);
    d->conns = conns;
    d->task = mem_strdup(task);
    d->address = mem_strdup(address);
    d->seconds = seconds;
    atomic_init(&d->holders, 2);
    loop_post(conns_loop(conns), dial, d);
    while (!atomic_load(&shard->ends) &&
           (!atomic_load(&d->done) ||
            (!d->err.code && !conns_is_linked(conns, task) && time_now() < end)))
        nanosleep(&pause, NULL);
    atomic_store(&d->given_up, true);
    if (atomic_load(&d->done) && d->err.code)
        *err = d->err;
    else if (!conns_is_linked(conns, task))
        error_set(err, ERR_UNAVAILABLE, "%s at %s: cannot be reached in %g s", task, address,
                  seconds);
    dial_release(d);
    return err->code;
}

bool shard_is_of_job(const struct shard *shard, const struct cluster_task *task)
{
    const char *own = shard->options.task; /* "ps:0" */
    return !strncmp(task->name, own, strcspn(own, ":") + 1);
}

int shard_find_others(struct shard *shard, struct shard_others *others, double seconds,
                      struct error *err)
{
    const struct shard_options *options = &shard->options;
    if (!options->find_cluster)
        return 0;
    int code = options->find_cluster(options->context, &others->cluster, err);
    for (size_t i = 0; !code && i < others->cluster.tasks.n; i++) {
        const struct cluster_task *task = &others->cluster.tasks.items[i];
        if (!shard_is_of_job(shard, task) || !strcmp(task->name, options->task))
            continue;
        vec_push(&others->tasks, task->name);
        code = link_to(shard, task->name, task->address, seconds, err);
    }
    return code;
}

void shard_others_release(struct shard_others *others)
{
    cluster_release(&others->cluster);
    vec_release(&others->tasks);
}
