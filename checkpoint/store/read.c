/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads manifests and chunks from a store.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "checkpoint/store/store_private.h"

const struct store_keys store_step_keys = {'m', STEP_KEY_BYTES},
                        store_replaced_keys = {'o', CHUNK_KEY_BYTES};

int store_walk(struct store *store, MDB_txn *txn, const struct store_keys *keys, store_visit *each,
               void *context, struct error *err)
{
    MDB_cursor *cursor;
    char first = keys->letter;
    MDB_val key = {1, &first}, value;
    int status = mdb_cursor_open(txn, store->dbi, &cursor);
    if (status)
        return store_failed(store, status, "reading", err);
    status = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (!status && key.mv_size == keys->bytes && *(const char *)key.mv_data == keys->letter &&
           !each(context, &key, &value, err))
        status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    mdb_cursor_close(cursor);
    if (!err->code && status && status != MDB_NOTFOUND)
        store_failed(store, status, "reading", err);
    return err->code;
}

void manifests_release(manifest_vec *manifests)
{
    for (size_t i = 0; i < manifests->n; i++)
        ckpt_manifest_release(&manifests->items[i]);
    vec_release(manifests);
}

static int decode(struct store *store, int64_t step, const MDB_val *value,
                  struct ckpt_manifest *manifest, struct error *err)
{
    void *copy;
    if (store_read_value(store, value, &copy, err))
        return err->code;
    if (!ckpt_manifest_decode(copy, value->mv_size, manifest, err) && manifest->step != step) {
        error_set(err, ERR_DATA, "it is that of step %" PRId64, manifest->step);
        ckpt_manifest_release(manifest);
    }
    mem_free(copy);
    return err->code ? error_prefix(err, "%s@%" PRId64 ": ", store->name, step) : 0;
}

static int64_t key_step(const MDB_val *key)
{
    const uint8_t *p = key->mv_data;
    uint64_t step = 0;
    for (int i = 1; i < STEP_KEY_BYTES; i++)
        step = step << 8 | p[i];
    return (int64_t)step;
}

/* Checks that the newest manifest is the one that the head names. */
static int check_head(struct store *store, MDB_txn *txn, const manifest_vec *manifests,
                      struct error *err)
{
    struct store_head head;
    if (store_read_head(store, txn, &head, err) || head.step < 0)
        return err->code;
    for (size_t i = 0; i < manifests->n; i++)
        if (manifests->items[i].step == head.step &&
            digest_equal(&manifests->items[i].digest, &head.manifest))
            return 0;
    return error_set(err, ERR_DATA, "%s@%" PRId64 ": the newest manifest is missing", store->name,
                     head.step);
}

struct manifest_reader {
    struct store *store;
    manifest_vec *manifests; /* NULL: not wanted */
    damage_vec *damages;
};

static void add_damage(damage_vec *damages, int64_t step, const struct error *err)
{
    struct store_damage damage = {step, *err};
    vec_push(damages, damage);
}

static int add_manifest(void *context, const MDB_val *key, const MDB_val *value, struct error *err)
{
    const struct manifest_reader *taking = context;
    struct ckpt_manifest manifest;
    struct error failed = ERROR_INIT;
    if (!decode(taking->store, key_step(key), value, &manifest, &failed))
        vec_push(taking->manifests, manifest);
    else if (failed.code == ERR_DATA)
        add_damage(taking->damages, key_step(key), &failed);
    else
        *err = failed;
    return err->code;
}

int store_read_all(struct store *store, manifest_vec *manifests, damage_vec *damages,
                   struct error *err)
{
    MDB_txn *txn;
    struct manifest_reader taking = {store, manifests, damages};
    struct store_head head;
    struct error lost = ERROR_INIT;
    *manifests = (manifest_vec)VEC_INIT;
    *damages = (damage_vec)VEC_INIT;
    error_clear(err);
    if (store->rolled_back.code)
        add_damage(damages, STORE_NO_STEP, &store->rolled_back);
    if (store_begin(store, false, &txn, err))
        return err->code;
    store_walk(store, txn, &store_step_keys, add_manifest, &taking, err);
    if (!err->code && check_head(store, txn, manifests, &lost)) {
        bool is_known = false;
        if (!store_read_head(store, txn, &head, &lost))
            for (size_t i = 0; i < damages->n; i++)
                is_known = is_known || damages->items[i].step == head.step;
        if (!is_known)
            add_damage(damages, STORE_NO_STEP, &lost);
    }
    store_abort(store, txn);
    if (manifests->n)
        qsort(manifests->items, manifests->n, sizeof *manifests->items, ckpt_manifest_by_sequence);
    if (err->code) {
        manifests_release(manifests);
        vec_release(damages);
    }
    return err->code;
}

int store_manifests(struct store *store, manifest_vec *manifests, struct error *damaged,
                    struct error *err)
{
    damage_vec damages;
    if (store_read_all(store, manifests, &damages, err))
        return err->code;
    if (damages.n && damaged)
        *damaged = damages.items[0].err;
    vec_release(&damages);
    return 0;
}

int store_next_step(struct store *store, int64_t *step, struct error *err)
{
    manifest_vec all;
    damage_vec damages;
    int64_t last = 0;
    if (store_read_all(store, &all, &damages, err))
        return err->code;
    for (size_t i = 0; i < all.n; i++)
        last = all.items[i].step > last ? all.items[i].step : last;
    for (size_t i = 0; i < damages.n; i++)
        last = damages.items[i].step > last ? damages.items[i].step : last;
    manifests_release(&all);
    vec_release(&damages);
    *step = last + 1;
    return 0;
}

int store_manifest_in(struct store *store, MDB_txn *txn, int64_t step,
                      struct ckpt_manifest *manifest, struct error *err)
{
    uint8_t bytes[STEP_KEY_BYTES];
    MDB_val key = store_step_key(bytes, step), value;
    int status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND && store->rolled_back.code) {
        *err = store->rolled_back;
        return err->code;
    }
    if (status == MDB_NOTFOUND)
        return error_set(err, ERR_NOINPUT, "%s@%" PRId64 ": there is no checkpoint of this step",
                         store->name, step);
    if (status)
        return store_failed(store, status, "reading", err);
    return decode(store, step, &value, manifest, err);
}

int store_manifest(struct store *store, int64_t step, struct ckpt_manifest *manifest,
                   struct error *err)
{
    MDB_txn *txn;
    error_clear(err);
    if (store_begin(store, false, &txn, err))
        return err->code;
    store_manifest_in(store, txn, step, manifest, err);
    store_abort(store, txn);
    return err->code;
}

int store_find_chunk(struct store *store, MDB_txn *txn, const struct digest *digest, size_t n,
                     uint64_t *offset, struct error *err)
{
    uint8_t bytes[CHUNK_KEY_BYTES];
    MDB_val key = store_chunk_key(bytes, digest), value;
    int status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND)
        return error_set(err, ERR_DATA, "is missing");
    if (status)
        return store_failed(store, status, "reading", err);
    if (value.mv_size != n)
        return error_set(err, ERR_DATA, "has %zu bytes, not %zu", value.mv_size, n);
    *offset = store_offset(store, value.mv_data);
    return 0;
}
