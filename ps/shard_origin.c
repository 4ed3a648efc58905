/* SPDX-License-Identifier: Apache-2.0
 *
 * What a shard goes on from, and saves as. The shards' values come from one checkpoint
 * (ps/fields.h): the first shard decides, the others ask it. They save as one run: that of the
 * leader of the first save, or that of the checkpoint that they resumed from.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "checkpoint/store/save.h"
#include "ps/containers.h"
#include "ps/shard_private.h"

/* ---- the run ---- */

void shard_go_on_with(struct shard *shard, const struct store_writer *writer)
{
    struct error ignored = ERROR_INIT;
    struct store_writer *own = &shard->saves_as;
    pthread_mutex_lock(&shard->lock);
    if (run_is_known(&writer->run))
        own->run = writer->run;
    own->goes_on |= writer->goes_on;
    if (writer->generation)
        own->generation = writer->generation;
    if (*shard->options.run.name)
        run_set_name(&own->run, shard->options.run.name, &ignored);
    pthread_mutex_unlock(&shard->lock);
}

struct store_writer shard_saves_as(struct shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    struct store_writer writer = shard->saves_as;
    pthread_mutex_unlock(&shard->lock);
    return writer;
}

int shard_check_store(struct shard *shard, struct error *err)
{
    struct store *store;
    struct store_writer writer = shard_saves_as(shard);
    const char *folder = shard->options.save_folder;
    *err = shard->no_store;
    if (err->code)
        return err->code;
    if (!folder || writer.goes_on || !store_exists(folder) ||
        store_open(folder, NULL, &store, err)) {
        error_clear(err);
        return 0;
    }
    int64_t generation;
    if (!store_generation(store, &generation, err)) {
        store_check_writer(store, &writer, err);
        shard_go_on_with(shard, &writer);
        if (err->code != ERR_CONFIG && err->code != ERR_DENIED)
            error_clear(err);
    }
    store_close(store);
    return err->code;
}

/* The asker may name the folder by another path. */
bool shard_is_own_folder(const struct shard *shard, const char *folder)
{
    const char *own = shard->options.save_folder;
    struct stat a, b;
    return own && (!strcmp(own, folder) || (!stat(own, &a) && !stat(folder, &b) &&
                                            a.st_dev == b.st_dev && a.st_ino == b.st_ino));
}

/* ---- the checkpoint ---- */

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
