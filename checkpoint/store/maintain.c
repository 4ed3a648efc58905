/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/maintain.h"

#include "base/memory.h"
#include "checkpoint/store/best.h"
#include "checkpoint/store/save.h"
#include "checkpoint/store/store_private.h"

#define SLACK_BYTES (256 << 10)

/* ---- forgetting ---- */

struct newest {
    struct store_head *head;
    int64_t sequence;
};

/* A damaged manifest cannot be the newest. */
static int check_newest(void *context, const MDB_val *key, const MDB_val *value, struct error *err)
{
    struct newest *newest = context;
    struct ckpt_manifest m;
    struct error ignored = ERROR_INIT;
    (void)key, (void)err;
    if (ckpt_manifest_decode(value->mv_data, value->mv_size, &m, &ignored))
        return 0;
    if (m.sequence > newest->sequence) {
        newest->sequence = m.sequence;
        newest->head->step = m.step;
        newest->head->manifest = m.digest;
    }
    ckpt_manifest_release(&m);
    return 0;
}

int store_forget(struct store *store, const int64_t *steps, size_t n, struct error *err)
{
    MDB_txn *txn;
    error_clear(err);
    if (!n)
        return 0;
    if (store_reserve(store, SLACK_BYTES + 4096 * n, false, err) ||
        store_begin(store, true, &txn, err))
        return err->code;
    for (size_t i = 0; i < n && !err->code; i++) {
        uint8_t bytes[STEP_KEY_BYTES];
        MDB_val key = store_step_key(bytes, steps[i]);
        int status = mdb_del(txn, store->dbi, &key, NULL);
        if (status != MDB_NOTFOUND)
            store_failed(store, status, "forgetting", err);
    }
    /* The head must name the newest remaining manifest. */
    struct store_head head;
    struct newest newest = {&head, -1};
    if (!err->code && !store_read_head(store, txn, &head, err)) {
        head.step = -1;
        if (!store_walk(store, txn, &store_step_keys, check_newest, &newest, err))
            store_write_head(store, txn, &head, err);
    }
    return store_commit(store, txn, err);
}

int store_forget_old(struct store *store, const struct ckpt_run *run, size_t n, struct error *err)
{
    manifest_vec all;
    VEC(int64_t) steps = VEC_INIT;
    size_t n_own = 0;
    if (store_manifests(store, &all, NULL, err))
        return err->code;
    const struct ckpt_manifest *best = best_of(&all);
    for (size_t i = 0; i < all.n; i++)
        n_own += run_equal(&all.items[i].run, run);
    for (size_t i = 0; i < all.n && n_own > n; i++) {
        if (!run_equal(&all.items[i].run, run))
            continue;
        size_t tag = 0;
        if (&all.items[i] != best && !ckpt_manifest_next_tag(&all.items[i], &tag))
            vec_push(&steps, all.items[i].step);
        n_own--;
    }
    store_forget(store, steps.items, steps.n, err);
    vec_release(&steps);
    manifests_release(&all);
    return err->code;
}

/* ---- copying ---- */

static int read_chunk(void *source, size_t tensor, uint64_t chunk, void *data,
                      struct digest *digest, struct error *err)
{
    struct checkpoint *from = source;
    const struct chunk_place place = {.entry = (int)tensor, .chunk = chunk};
    if (checkpoint_fetch_chunk(from, place.entry, chunk, data, err))
        return err->code;
    *digest = digest_of(data, checkpoint_chunk_size(from, &place));
    return checkpoint_check_digest(from, place.entry, chunk, digest, err);
}

int checkpoint_copy(struct checkpoint *from, struct store *to, bool over,
                    const struct maintain_watch *watch, struct ckpt_manifest *saved,
                    struct error *err)
{
    bool stays = false;
    const struct ckpt_manifest *m = &from->manifest;
    size_t n = from->entries.n;
    struct variable_record *tensors = mem_array(n + 1, sizeof *tensors);
    struct save_request request = {.step = m->step,
                                   .run = m->run,
                                   .over = SAVE_OVER_ANY,
                                   .time = m->time,
                                   .producer = m->producer,
                                   .tensors = tensors,
                                   .n_tensors = n,
                                   .scalars = m->scalars.items,
                                   .n_scalars = m->scalars.n,
                                   .blobs = m->blobs.items,
                                   .n_blobs = m->blobs.n,
                                   .progress = watch ? watch->progress : NULL,
                                   .context = watch ? watch->context : NULL,
                                   .read = read_chunk,
                                   .source = from};
    error_clear(err);
    if (!over)
        save_check_copy(to, from, &stays, err);
    if (saved && stays)
        *saved = (struct ckpt_manifest){.sequence = 0};
    for (size_t i = 0; i < n && !stays && !err->code; i++) {
        const struct manifest_tensor *t = from->entries.items[i].tensor;
        tensors[i] = manifest_tensor_record(t);
        tensors[i].value = (struct tensor){.type = t->type, .shape = t->shape};
        if (t->type == STRING)
            checkpoint_read(from, (int)i, &tensors[i].value, err);
    }
    if (!err->code && !stays)
        store_save(to, &request, saved, err);
    for (size_t i = 0; i < n; i++)
        tensor_release(&tensors[i].value);
    mem_free(tensors);
    return err->code;
}
