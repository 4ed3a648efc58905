/* SPDX-License-Identifier: Apache-2.0
 *
 * Mark and sweep. The marks are made under the writer's lock, so that nothing is saved between
 * marking and sweeping; chunks go in batches, each a transaction, so that the lists of their pages
 * stay small and a kill loses little.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/store/digest_set.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/store_private.h"

#define BATCH_CHUNKS 1024
/* What the list of the pages of one removed chunk takes, and its way through the tree. */
#define REMOVAL_BYTES ((CHUNK_BYTES / 4096 + 1) * 8 + 4096)
#define SLACK_BYTES (64 << 10)

struct prune {
    struct store *store;
    bool dry_run;
    const struct maintain_watch *watch;
    struct prune_report *report;
    struct digest_set used;
    struct digest from; /* where the next batch begins */
    uint64_t batch;     /* chunks */
    uint64_t entries, seen;
};

static void mark_all(struct prune *p, manifest_vec *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->items[i].tensors.n; k++) {
            const struct manifest_tensor *t = &all->items[i].tensors.items[k];
            for (uint64_t c = 0; c < chunk_count(t->bytes); c++)
                digest_set_put(&p->used, &t->chunks[c], 1);
        }
    manifests_release(all);
}

static int mark(struct prune *p, struct error *err)
{
    manifest_vec all;
    if (store_manifests(p->store, &all, NULL, err))
        return err->code;
    mark_all(p, &all);
    if (store_replaced(p->store, &all, err))
        return err->code;
    mark_all(p, &all);
    return 0;
}

static bool is_chunk_key(const MDB_val *key)
{
    return key->mv_size == CHUNK_KEY_BYTES && *(const char *)key->mv_data == 'c';
}

/* Removes a batch. *more: it is full, and the next begins at p->from. */
static int sweep_batch(struct prune *p, MDB_cursor *cursor, bool *more)
{
    uint8_t bytes[CHUNK_KEY_BYTES];
    MDB_val key = store_chunk_key(bytes, &p->from), value;
    uint64_t removed = 0;
    int status = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (!status && is_chunk_key(&key)) {
        memcpy(&p->from, (const char *)key.mv_data + 1, DIGEST_BYTES);
        if (removed == p->batch)
            break;
        p->seen++;
        if (digest_set_get(&p->used, &p->from)) {
            p->report->kept_chunks++;
            p->report->kept_bytes += value.mv_size;
        } else {
            removed++;
            p->report->chunks++;
            p->report->bytes += value.mv_size;
            status = p->dry_run ? 0 : mdb_cursor_del(cursor, 0);
        }
        if (!status)
            status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    *more = !status && removed == p->batch;
    return status == MDB_NOTFOUND ? 0 : status;
}

static int sweep_once(struct prune *p, bool *more, struct error *err)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    if (store_begin(p->store, !p->dry_run, &txn, err))
        return err->code;
    int status = mdb_cursor_open(txn, p->store->dbi, &cursor);
    if (!status) {
        status = sweep_batch(p, cursor, more);
        mdb_cursor_close(cursor);
    }
    if (!status && !p->dry_run)
        return store_commit(p->store, txn, err);
    store_abort(p->store, txn);
    return store_failed(p->store, status, "pruning", err);
}

/* On a full disk smaller batches may do with the pages that are free: they free more. */
static int make_room(struct prune *p, struct error *err)
{
    if (p->dry_run)
        return 0;
    while (store_reserve(p->store, p->batch * REMOVAL_BYTES + SLACK_BYTES, false, err) &&
           p->batch > 1) {
        p->batch /= 4;
        error_clear(err);
    }
    return err->code;
}

static int sweep(struct prune *p, struct error *err)
{
    bool more = true;
    while (more) {
        if (make_room(p, err) || sweep_once(p, &more, err))
            return err->code;
        if (p->watch && p->watch->progress &&
            !p->watch->progress(p->watch->context, p->seen, p->entries))
            return error_set(err, ERR_CANCELLED, "%s: stopped; the rest can be pruned later",
                             p->store->name);
    }
    return 0;
}

static int prune_one(struct store *store, bool dry_run, const struct maintain_watch *watch,
                     struct prune_report *report, struct error *err)
{
    MDB_stat stat;
    struct prune p = {.store = store,
                      .dry_run = dry_run,
                      .watch = watch,
                      .report = report,
                      .batch = BATCH_CHUNKS};
    mdb_env_stat(store->env, &stat);
    p.entries = stat.ms_entries;
    if (!mark(&p, err))
        sweep(&p, err);
    digest_set_release(&p.used);
    return err->code;
}

/* ---- shards ---- */

static bool is_listed(const manifest_vec *all, const char *shard, const struct ckpt_manifest *m)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->items[i].shards.n; k++)
            if (!strcmp(all->items[i].shards.items[k].name, shard) &&
                digest_equal(&all->items[i].shards.items[k].manifest, &m->digest))
                return true;
    return false;
}

static int forget_replaced(struct store *shard, const char *name, const manifest_vec *all,
                           struct error *err)
{
    manifest_vec own;
    VEC(struct digest) digests = VEC_INIT;
    if (store_replaced(shard, &own, err))
        return err->code;
    for (size_t i = 0; i < own.n; i++)
        if (!is_listed(all, name, &own.items[i]))
            vec_push(&digests, own.items[i].digest);
    store_forget_replaced(shard, digests.items, digests.n, err);
    vec_release(&digests);
    manifests_release(&own);
    return err->code;
}

/* What no coordinating manifest lists, and is older than one that is listed. */
static int forget_unlisted(struct store *shard, const char *name, const manifest_vec *all,
                           struct error *err)
{
    manifest_vec own;
    VEC(int64_t) steps = VEC_INIT;
    bool newer_is_listed = false;
    if (store_manifests(shard, &own, NULL, err))
        return err->code;
    for (size_t i = own.n; i-- > 0;) {
        if (is_listed(all, name, &own.items[i]))
            newer_is_listed = true;
        else if (newer_is_listed)
            vec_push(&steps, own.items[i].step);
    }
    store_forget(shard, steps.items, steps.n, err);
    vec_release(&steps);
    manifests_release(&own);
    return err->code ? err->code : forget_replaced(shard, name, all, err);
}

static int prune_shard(struct prune *p, const char *name, const manifest_vec *all,
                       struct error *err)
{
    struct store *shard;
    struct str folder = STR_INIT;
    const struct store_options options = {
        .write = !p->dry_run, .lock_wait = -1, .owner = "tf-ckpt prune"};
    str_printf(&folder, "%s/shards/%s", p->store->folder, name);
    if (!store_open(folder.data, &options, &shard, err)) {
        if (p->dry_run || !forget_unlisted(shard, name, all, err))
            prune_one(shard, p->dry_run, p->watch, p->report, err);
        store_close(shard);
    }
    str_release(&folder);
    return err->code;
}

static int prune_shards(struct prune *p, struct error *err)
{
    manifest_vec all;
    struct str folder = STR_INIT;
    struct dirent *entry;
    str_printf(&folder, "%s/shards", p->store->folder);
    DIR *shards = opendir(folder.data);
    str_release(&folder);
    if (!shards) /* a store without */
        return 0;
    if (!store_manifests(p->store, &all, NULL, err)) {
        while (!err->code && (entry = readdir(shards)))
            if (*entry->d_name != '.' && !str_ends(entry->d_name, ".tmp"))
                prune_shard(p, entry->d_name, &all, err);
        manifests_release(&all);
    }
    closedir(shards);
    return err->code;
}

int store_prune(struct store *store, bool dry_run, const struct maintain_watch *watch,
                struct prune_report *report, struct error *err)
{
    struct prune p = {.store = store, .dry_run = dry_run, .watch = watch, .report = report};
    *report = (struct prune_report){0};
    error_clear(err);
    if (!prune_one(store, dry_run, watch, report, err))
        prune_shards(&p, err);
    return err->code;
}
