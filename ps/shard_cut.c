/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of what a shard keeps, each under the name of who wants it, until it is written to a
 * store or was fetched over the link. There is one of each kind; a later one replaces an earlier
 * one.
 */
#include <string.h>

#include "base/memory.h"
#include "base/time.h"
#include "ps/containers.h"
#include "ps/shard_private.h"
#include "wire/slice.h"

#define FORGOTTEN_SECONDS 120 /* a fetcher that asks for nothing for so long has died */

static struct shard_cut *slot_of(struct shard *shard, const char *name)
{
    return &shard->cuts[str_starts(name, SHARD_CUT_REMOTE)];
}

/* With the lock, like everything that touches a snapshot. */
void shard_cut_release(struct shard_cut *cut)
{
    cut_release(&cut->cut);
    mem_free(cut->name);
    *cut = (struct shard_cut){0};
}

static int collect(struct shard_cut *cut, struct error *err)
{
    if (!cut->name || cut->is_collected)
        return 0;
    if (!cut_collect(&cut->cut, err))
        cut->is_collected = true;
    return err->code;
}

int shard_cut_take(struct shard *shard, const char *name, int64_t step, double seconds,
                   struct error *err)
{
    struct shard_cut cut = {.step = step, .used = time_now()};
    error_clear(err);
    shard_claims_shut(shard); /* claimed values are in memory; other graphs may come later */
    pthread_mutex_lock(&shard->cuts_lock);
    shard_cut_release(slot_of(shard, name));
    for (int i = 0; i < SHARD_CUTS && !err->code; i++) /* a variable has one snapshot at a time */
        collect(&shard->cuts[i], err);
    /* All variables are locked for reading here, that is, between two steps of their writers. */
    variable_vec locked = VEC_INIT, saved = VEC_INIT;
    if (!err->code)
        containers_lock(shard->options.variables, NULL, false, seconds, &locked, err);
    for (size_t i = 0; i < locked.n && !err->code; i++) {
        if (locked.items[i]->is_local) /* a worker's */
            continue;
        vec_push(&saved, locked.items[i]);
        if (!locked.items[i]->initialized) /* created by a graph: the checkpoint would lack it */
            error_set(err, ERR_RETRY, "nothing to save: variable '%s' has no value",
                      locked.items[i]->name);
    }
    if (!err->code) {
        cut_take(shard->options.variables, &saved, &cut.cut);
        cut.name = mem_strdup(name);
        *slot_of(shard, name) = cut;
        /* A worker itself may save after the next step. */
        if (shard->steps && collect(slot_of(shard, name), err))
            shard_cut_release(slot_of(shard, name));
    }
    vec_release(&saved);
    containers_unlock(&locked, false);
    pthread_mutex_unlock(&shard->cuts_lock);
    return err->code;
}

/* With the lock. */
static struct shard_cut *find(struct shard *shard, const char *name, struct error *err)
{
    struct shard_cut *cut = slot_of(shard, name);
    if (!cut->name || strcmp(cut->name, name)) {
        error_set(err, ERR_RETRY, "another save began meanwhile");
        return NULL;
    }
    cut->used = time_now();
    return collect(cut, err) ? NULL : cut;
}

int shard_cut_get(struct shard *shard, const char *name, struct shard_cut *taken, struct error *err)
{
    error_clear(err);
    pthread_mutex_lock(&shard->cuts_lock);
    struct shard_cut *cut = find(shard, name, err);
    if (cut) {
        *taken = *cut;
        *cut = (struct shard_cut){0};
    }
    pthread_mutex_unlock(&shard->cuts_lock);
    return err->code;
}

void shard_cuts_end(struct shard *shard)
{
    for (int i = 0; i < SHARD_CUTS; i++)
        shard_cut_release(&shard->cuts[i]);
}

void shard_cuts_forget(struct shard *shard)
{
    struct shard_cut *cut = &shard->cuts[1];
    if (pthread_mutex_trylock(&shard->cuts_lock))
        return; /* it is in use */
    if (cut->name && time_now() - cut->used > FORGOTTEN_SECONDS)
        shard_cut_release(cut);
    pthread_mutex_unlock(&shard->cuts_lock);
}

/* ---- requests ---- */

void shard_snapshot(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    const struct shard_fields *fields = &query->fields;
    if (!fields->folder || fields->origin.step < 0)
        error_set(&err, ERR_PROTOCOL, "a request for a snapshot needs a folder and a step");
    else if (!shard_check_decision(query->shard, fields->origin.decision, &err))
        shard_cut_take(query->shard, fields->folder, fields->origin.step, fields->seconds, &err);
    shard_query_end(query, NULL, &err);
}

/* Sends a part; after the last one the snapshot is released. */
void shard_part(struct shard_query *query)
{
    struct error err = ERROR_INIT;
    struct shard *shard = query->shard;
    if (!query->fields.folder || query->fields.index < 0) {
        error_set(&err, ERR_PROTOCOL, "a request for a part needs a folder and an index");
        shard_query_end(query, NULL, &err);
        return;
    }
    pthread_mutex_lock(&shard->cuts_lock);
    struct shard_cut *cut = find(shard, query->fields.folder, &err);
    size_t n = cut ? cut->cut.tensors.n : 0, i = (size_t)query->fields.index;
    msgpack_packer *packer;
    const struct variable_record *tensor = cut && i < n ? &cut->cut.tensors.items[i] : NULL;
    if (tensor) {
        struct named_tensor named = {tensor->name, tensor->value};
        packer = reply_begin(query->peer, query->id, 3 + slice_fields(&tensor->slice));
        if (packer) {
            pack_key_text(packer, "container", tensor->container);
            pack_key_uint(packer, "updates", tensor->updates);
            pack_key_uint(packer, "n", n);
            pack_slice(packer, &tensor->slice);
            reply_end(query->peer, &named, 1);
        }
    } else if (cut && (packer = reply_begin(query->peer, query->id, 1))) {
        pack_key_uint(packer, "n", 0);
        reply_end(query->peer, NULL, 0);
    }
    if (cut && i + 1 >= n)
        shard_cut_release(cut);
    pthread_mutex_unlock(&shard->cuts_lock);
    if (err.code)
        shard_reply_failure(query, &err);
    shard_query_free(query);
}
