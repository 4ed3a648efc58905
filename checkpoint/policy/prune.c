/* SPDX-License-Identifier: Apache-2.0
 *
 * Mark and sweep. The marks are made under the writer's lock, so that nothing is saved between
 * marking and sweeping. Chunks are removed in batches, one transaction each, so that the lists of
 * freed pages stay small and a kill loses little.
 */
#include <dirent.h>
#include <string.h>

#include "base/memory.h"
#include "checkpoint/store/digest_set.h"
#include "checkpoint/store/maintain.h"
#include "checkpoint/store/store_private.h"

#define BATCH_CHUNKS 1024
/* Space to remove one chunk: the list of its pages, and the tree pages on its path. */
#define REMOVAL_BYTES ((CHUNK_BYTES / 4096 + 1) * 8 + 4096)
#define SLACK_BYTES (64 << 10)

struct pruner {
    struct store *store;
    bool dry_run;
    const struct maintain_watch *watch;
    struct prune_report *report;
    struct digest_set used;
    MDB_txn *marking;   /* of the marks */
    struct digest from; /* where the next batch begins */
    uint64_t batch;     /* chunks */
    uint64_t entries, seen;
};

/* ---- marking ---- */

/* A damaged manifest may refer to any digest that can be found in it. */
static void mark_damaged(struct pruner *p, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i + DIGEST_BYTES <= n; i++) {
        uint8_t text[CHUNK_KEY_BYTES];
        struct digest digest;
        memcpy(&digest, bytes + i, sizeof digest);
        MDB_val key = store_chunk_key(text, &digest), value;
        if (!mdb_get(p->marking, p->store->dbi, &key, &value))
            digest_set_put(&p->used, &digest, 1);
    }
}

static int mark_value(void *context, const MDB_val *key, const MDB_val *value, struct error *err)
{
    struct pruner *p = context;
    struct ckpt_manifest m;
    struct error damaged = ERROR_INIT;
    void *copy;
    (void)key;
    if (store_read_value(p->store, value, &copy, err))
        return err->code;
    if (ckpt_manifest_decode(copy, value->mv_size, &m, &damaged)) {
        mark_damaged(p, copy, value->mv_size);
    } else {
        for (size_t i = 0; i < m.tensors.n; i++)
            for (uint64_t c = 0; c < chunk_count(m.tensors.items[i].bytes); c++)
                digest_set_put(&p->used, &m.tensors.items[i].chunks[c], 1);
        ckpt_manifest_release(&m);
    }
    mem_free(copy);
    return 0;
}

/* ---- sweeping ---- */

/* Removes a batch. *more: the batch was full; the next begins at p->from. */
static int sweep_batch(struct pruner *p, MDB_cursor *cursor, bool *more)
{
    uint8_t bytes[CHUNK_KEY_BYTES];
    MDB_val key = store_chunk_key(bytes, &p->from), value;
    uint64_t removed = 0;
    int status = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (!status && key.mv_size == CHUNK_KEY_BYTES && *(const char *)key.mv_data == 'c') {
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

static int sweep_once(struct pruner *p, bool *more, struct error *err)
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

static int sweep(struct pruner *p, struct error *err)
{
    bool more = true;
    while (more) {
        /* On a full disk a smaller batch may fit in the free pages; it frees more for the next. */
        if (!p->dry_run) {
            while (store_reserve(p->store, p->batch * REMOVAL_BYTES + SLACK_BYTES, false, err) &&
                   p->batch > 1) {
                p->batch /= 4;
                error_clear(err);
            }
            if (err->code)
                return err->code;
        }
        if (sweep_once(p, &more, err))
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
    struct pruner p = {.store = store,
                       .dry_run = dry_run,
                       .watch = watch,
                       .report = report,
                       .batch = BATCH_CHUNKS};
    mdb_env_stat(store->env, &stat);
    p.entries = stat.ms_entries;
    if (!store_begin(store, false, &p.marking, err)) {
        if (!store_walk(store, p.marking, &store_step_keys, mark_value, &p, err))
            store_walk(store, p.marking, &store_replaced_keys, mark_value, &p, err);
        store_abort(store, p.marking);
    }
    if (!err->code)
        sweep(&p, err);
    digest_set_release(&p.used);
    return err->code;
}

/* ---- shards ---- */

struct store_list { /* the manifests of the store itself */
    manifest_vec all;
    damage_vec damages;
};

/* A damaged manifest may list any shard manifest of its step. */
static bool may_be_listed(const struct store_list *l, const char *shard, int64_t step,
                          const struct digest *digest)
{
    for (size_t i = 0; i < l->all.n; i++)
        for (size_t k = 0; k < l->all.items[i].shards.n; k++)
            if (!strcmp(l->all.items[i].shards.items[k].name, shard) &&
                digest_equal(&l->all.items[i].shards.items[k].manifest, digest))
                return true;
    for (size_t i = 0; i < l->damages.n; i++)
        if (step == STORE_NO_STEP || l->damages.items[i].step == step)
            return true;
    return false;
}

static int forget_replaced(struct store *shard, const char *name, const struct store_list *l,
                           struct error *err)
{
    digest_vec own;
    size_t n = 0;
    if (store_replaced(shard, &own, err))
        return err->code;
    for (size_t i = 0; i < own.n; i++)
        if (!may_be_listed(l, name, STORE_NO_STEP, &own.items[i]))
            own.items[n++] = own.items[i];
    store_forget_replaced(shard, own.items, n, err);
    vec_release(&own);
    return err->code;
}

/* Forgets shard manifests that no coordinating manifest lists and that are older than a listed
 * one. */
static int forget_unlisted(struct store *shard, const char *name, const struct store_list *l,
                           struct error *err)
{
    manifest_vec own;
    VEC(int64_t) steps = VEC_INIT;
    bool newer_is_listed = false;
    if (store_manifests(shard, &own, NULL, err))
        return err->code;
    for (size_t i = own.n; i-- > 0;) {
        if (may_be_listed(l, name, own.items[i].step, &own.items[i].digest))
            newer_is_listed = true;
        else if (newer_is_listed)
            vec_push(&steps, own.items[i].step);
    }
    store_forget(shard, steps.items, steps.n, err);
    vec_release(&steps);
    manifests_release(&own);
    return err->code ? err->code : forget_replaced(shard, name, l, err);
}

static int prune_shards(struct pruner *p, struct error *err)
{
    struct store_list l;
    struct str folder = STR_INIT;
    struct dirent *entry;
    str_printf(&folder, "%s/shards", p->store->folder);
    DIR *shards = opendir(folder.data);
    str_release(&folder);
    if (!shards) /* a store without shards */
        return 0;
    if (!store_read_all(p->store, &l.all, &l.damages, err)) {
        while (!err->code && (entry = readdir(shards))) {
            if (*entry->d_name == '.' || str_ends(entry->d_name, ".tmp"))
                continue;
            struct store *shard;
            const struct store_options options = {.write = !p->dry_run,
                                                  .lock_wait = -1,
                                                  .owner = "tf-ckpt prune",
                                                  .shard = entry->d_name};
            if (!store_open(p->store->folder, &options, &shard, err)) {
                if (p->dry_run || !forget_unlisted(shard, entry->d_name, &l, err))
                    prune_one(shard, p->dry_run, p->watch, p->report, err);
                store_close(shard);
            }
        }
        manifests_release(&l.all);
        vec_release(&l.damages);
    }
    closedir(shards);
    return err->code;
}

int store_prune(struct store *store, bool dry_run, const struct maintain_watch *watch,
                struct prune_report *report, struct error *err)
{
    struct pruner p = {.store = store, .dry_run = dry_run, .watch = watch, .report = report};
    *report = (struct prune_report){0};
    error_clear(err);
    if (!prune_one(store, dry_run, watch, report, err))
        prune_shards(&p, err);
    return err->code;
}

int store_keep_newest(struct store *store, const struct ckpt_run *run, size_t n, struct error *err)
{
    struct prune_report report;
    error_clear(err);
    if (n > 0 && !store_forget_old(store, run, n, err))
        store_prune(store, false, NULL, &report, err);
    return err->code;
}
