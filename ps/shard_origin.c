/* SPDX-License-Identifier: Apache-2.0
 *
 * The checkpoint that the shards' values come from (ps/fields.h): the first shard decides, the
 * others ask it.
 */

#include "base/memory.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

struct shard_origin shard_origin(struct shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    struct shard_origin origin = shard->origin;
    origin.generation = shard->saves_as.generation;
    pthread_mutex_unlock(&shard->lock);
    return origin;
}

/* Counts the writes to all existing variables. */
static int count_updates(struct shard *shard, double seconds, uint64_t *n, struct error *err)
{
    variable_vec locked = VEC_INIT;
    *n = 0;
    if (!containers_lock(shard->options.variables, NULL, false, seconds, &locked, err))
        for (size_t i = 0; i < locked.n; i++)
            *n += locked.items[i]->updates;
    containers_unlock(&locked, false);
    return err->code;
}

void shard_origin_end(struct shard *shard)
{
    for (size_t i = 0; i < shard->askers.n; i++)
        mem_free(shard->askers.items[i]);
    vec_release(&shard->askers);
}

void shard_set_origin(struct shard *shard, const struct shard_origin *origin, bool is_told)
{
    struct error ignored = ERROR_INIT;
    uint64_t updates;
    count_updates(shard, SHARD_WAIT_SECONDS, &updates, &ignored);
    pthread_mutex_lock(&shard->lock);
    shard->origin = *origin;
    shard->saves_as.generation = origin->generation;
    shard->origin_updates = updates;
    shard->origin_is_told = is_told;
    shard_origin_end(shard);
    pthread_mutex_unlock(&shard->lock);
    *conns_origin(shard->options.conns) = origin->decision;
}

int shard_check_decision(struct shard *shard, uint64_t decision, struct error *err)
{
    if (shard_origin(shard).decision == decision)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "goes on from another checkpoint than the shard that asks for a save: they "
                     "were restored apart");
}

/* ---- the first shard is asked ---- */

/* A shard asks once. If it asks again, it alone was restarted: its updates since are lost, but the
 * other shards still have theirs. */
static bool asks_again(struct shard *shard, const char *task)
{
    pthread_mutex_lock(&shard->lock);
    bool again = shard->origin_is_told || vec_find(&shard->askers, task) < shard->askers.n;
    if (!again)
        vec_push(&shard->askers, mem_strdup(task));
    pthread_mutex_unlock(&shard->lock);
    return again;
}

static int check_rest(struct shard *shard, double seconds, struct error *err)
{
    struct clock *clock = containers_clock(shard->options.variables);
    uint64_t updates;
    if (count_updates(shard, seconds, &updates, err))
        return err->code;
    pthread_mutex_lock(&shard->lock);
    bool rests = updates == shard->origin_updates && !(clock && clock_was_joined(clock));
    pthread_mutex_unlock(&shard->lock);
    return rests ? 0
                 : error_set(err, ERR_RETRY,
                             "training has gone on since a checkpoint was restored: all shards "
                             "are started again, with --resume");
}

void shard_tell_origin(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct shard_fields reply = {.origin = shard_origin(query->shard)};
    if (!query->fields.name)
        error_set(&err, ERR_PROTOCOL, "a request for the origin needs a name");
    else if (!reply.origin.decision)
        error_set(&err, ERR_RETRY,
                  "it began anew, without --resume: so are the others to, or all with it");
    else if (asks_again(query->shard, query->fields.name))
        check_rest(query->shard, query->fields.seconds, &err);
    shard_query_end(query, &reply, &err);
}
