/* SPDX-License-Identifier: Apache-2.0
 *
 * A shard that saves a step again must keep the manifest that the coordinating one lists: a kill
 * before that one is rewritten would lose a checkpoint. The old manifest stays under its digest.
 */
#include <string.h>

#include "base/memory.h"
#include "checkpoint/store/store_private.h"

#define SLACK_BYTES (256 << 10)

int store_keep_replaced(struct store *store, MDB_txn *txn, int64_t step, struct error *err)
{
    uint8_t bytes[STEP_KEY_BYTES], other[CHUNK_KEY_BYTES];
    MDB_val key = store_step_key(bytes, step), value;
    struct ckpt_manifest manifest;
    struct error damaged = ERROR_INIT;
    void *copy;
    int status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND)
        return 0;
    if (status)
        return store_failed(store, status, "reading", err);
    if (store_read_value(store, &value, &copy, err))
        return err->code;
    if (!ckpt_manifest_decode(copy, value.mv_size, &manifest, &damaged)) {
        MDB_val kept = store_replaced_key(other, &manifest.digest), old = {value.mv_size, copy};
        status = mdb_put(txn, store->dbi, &kept, &old, 0);
        ckpt_manifest_release(&manifest);
    }
    mem_free(copy);
    return store_failed(store, status, "writing", err);
}

int store_find_replaced(struct store *store, MDB_txn *txn, const struct digest *digest,
                        struct ckpt_manifest *manifest, struct error *err)
{
    uint8_t bytes[CHUNK_KEY_BYTES];
    MDB_val key = store_replaced_key(bytes, digest), value;
    int status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND)
        return error_set(err, ERR_DATA, "%s: the manifest is not the one that is listed",
                         store->name);
    if (status)
        return store_failed(store, status, "reading", err);
    void *copy;
    if (store_read_value(store, &value, &copy, err))
        return err->code;
    if (ckpt_manifest_decode(copy, value.mv_size, manifest, err))
        error_prefix(err, "%s: a manifest that was replaced: ", store->name);
    mem_free(copy);
    return err->code;
}

static int add_replaced(void *context, const MDB_val *key, const MDB_val *value, struct error *err)
{
    digest_vec *digests = context;
    struct digest digest;
    (void)value, (void)err;
    memcpy(&digest, (const char *)key->mv_data + 1, sizeof digest);
    vec_push(digests, digest);
    return 0;
}

int store_replaced(struct store *store, digest_vec *digests, struct error *err)
{
    MDB_txn *txn;
    *digests = (digest_vec)VEC_INIT;
    if (store_begin(store, false, &txn, err))
        return err->code;
    store_walk(store, txn, &store_replaced_keys, add_replaced, digests, err);
    store_abort(store, txn);
    if (err->code)
        vec_release(digests);
    return err->code;
}

int store_forget_replaced(struct store *store, const struct digest *digests, size_t n,
                          struct error *err)
{
    MDB_txn *txn;
    int status = 0;
    if (!n)
        return 0;
    if (store_reserve(store, SLACK_BYTES + 4096 * n, false, err) ||
        store_begin(store, true, &txn, err))
        return err->code;
    for (size_t i = 0; i < n && !status; i++) {
        uint8_t bytes[CHUNK_KEY_BYTES];
        MDB_val key = store_replaced_key(bytes, &digests[i]);
        status = mdb_del(txn, store->dbi, &key, NULL);
    }
    store_failed(store, status, "forgetting", err);
    return store_commit(store, txn, err);
}
