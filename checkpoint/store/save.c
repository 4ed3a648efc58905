/* SPDX-License-Identifier: Apache-2.0
 *
 * Three passes over the chunks. The first (save_compare.c) compares each chunk with the one at its
 * place in the newest checkpoint, up to the first different byte, and tells how much may be new;
 * space is allocated for that. The second computes digests, in several threads, and writes chunks
 * that no checkpoint has, in one transaction or, beyond LMDB's limit, in several: chunks without a
 * manifest are not a checkpoint. The last transaction adds the manifest and moves the head.
 *
 * Chunks are written by pwrite to where LMDB has placed them: the map shows the same pages, and a
 * failing disk gives an error with pwrite but a signal with the map.
 */
#include "checkpoint/store/save_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/time.h"
#include "checkpoint/store/best.h"
#include "checkpoint/store/pages_private.h"
#include "exec/state/resource.h"

#define TXN_CHUNKS 16384 /* LMDB allows 131,071 dirty pages or runs per transaction */
#define TREE_BYTES(n) ((n)*512 + ((uint64_t)1 << 18)) /* maximum space of n keys in the tree */
#define ATTEMPTS 3

static const struct timespec look_again = {.tv_nsec = 10000000}; /* pause of the rate limit */

struct store_save {
    struct store *store;
    const struct save_request *request;
    struct ckpt_manifest *manifest;
    struct ckpt_manifest newest; /* the previous one */
    struct ckpt_manifest there;  /* of the same step */
    bool is_there;
    struct save_again again;
    save_chunks chunks;
    struct digest_item *items;        /* of the chunks that are not reused, */
    const struct save_chunk **wanted; /* which are these */
    size_t n_items;
    void *data;          /* of a chunk that had to be read */
    uint64_t done;       /* bytes processed */
    uint64_t shards_new; /* bytes that the shards wrote */
    double started;
};

/* ---- first pass: what may be new ---- */

static int find_newest(struct store_save *s, struct error *err)
{
    struct store_head head;
    struct error ignored = ERROR_INIT;
    MDB_txn *txn;
    if (store_begin(s->store, false, &txn, err))
        return err->code;
    store_read_head(s->store, txn, &head, err);
    store_abort(s->store, txn);
    if (err->code)
        return err->code;
    s->manifest->sequence = head.sequence + 1;
    if (head.step >= 0) /* a damaged one is simply not used */
        store_manifest(s->store, head.step, &s->newest, &ignored);
    return 0;
}

/* ---- second pass: chunks ---- */

int save_stopped(const struct store *store, const struct save_request *request, struct error *err)
{
    return error_set(err, ERR_CANCELLED, "%s: stopped; step %" PRId64 " was not saved", store->name,
                     request->step);
}

/* Returns item i with its data and its digest. */
static int get_item(struct store_save *s, struct digest_pool *pool, size_t i,
                    struct digest_item *item, struct error *err)
{
    const struct save_chunk *chunk = s->wanted[i];
    if (pool)
        digest_pool_wait(pool, i);
    else if (s->items[i].data)
        s->items[i].digest = digest_of(s->items[i].data, s->items[i].n);
    else
        s->request->read(s->request->source, chunk->tensor, chunk->index, s->data,
                         &s->items[i].digest, err);
    *item = s->items[i];
    if (!item->data)
        item->data = s->data;
    return err->code;
}

/* `status` tells MDB_MAP_FULL from other errors. */
static int put_item(struct store_save *s, MDB_txn *txn, const struct digest_item *item, int *status,
                    struct error *err)
{
    uint8_t bytes[CHUNK_KEY_BYTES];
    MDB_val key = store_chunk_key(bytes, &item->digest), value = {item->n, NULL};
    if (save_is_stored(s->store, txn, item))
        return 0;
    *status = mdb_put(txn, s->store->dbi, &key, &value, MDB_RESERVE);
    if (*status)
        return store_failed(s->store, *status, "writing", err);
    uint64_t offset = store_offset(s->store, value.mv_data);
    s->manifest->new_bytes += item->n;
    if (item->n < s->store->page_bytes) { /* it lies in a page of the tree, which may move: write
                                           * only by the map */
        memcpy(value.mv_data, item->data, item->n);
        return 0;
    }
    if (pages_write(s->store->fd, item->data, item->n, offset, err))
        return error_prefix(err, "%s: ", s->store->name);
    /* starts the disk before the commit waits for it; only a hint: errors show at the commit
     */
    sync_file_range(s->store->fd, (off_t)offset, (off_t)item->n, SYNC_FILE_RANGE_WRITE);
    return 0;
}

/* Writes chunks from `first` on, as many as fit into a transaction; the last transaction stays open
 * for the manifest. */
static int put_some(struct store_save *s, struct digest_pool *pool, size_t first, MDB_txn **txn,
                    int *status, struct error *err)
{
    size_t end = s->n_items - first < TXN_CHUNKS ? s->n_items : first + TXN_CHUNKS;
    if (store_begin(s->store, true, txn, err))
        return err->code;
    for (size_t i = first; i < end; i++) {
        struct digest_item item;
        if (get_item(s, pool, i, &item, err) || put_item(s, *txn, &item, status, err))
            return err->code;
        const struct save_request *request = s->request;
        s->done += item.n;
        if (request->progress && !request->progress(request->context, s->done, s->manifest->bytes))
            return save_stopped(s->store, request, err);
        while (request->bytes_per_second > 0 && !(request->hurry && atomic_load(request->hurry)) &&
               s->started + (double)s->done / request->bytes_per_second > time_now())
            nanosleep(&look_again, NULL);
    }
    if (end == s->n_items)
        return 0;
    MDB_txn *finished = *txn;
    *txn = NULL;
    return store_commit(s->store, finished, err);
}

/* ---- the manifest ---- */

static void list_tensors(struct store_save *s)
{
    struct ckpt_manifest *m = s->manifest;
    struct digest *digests = arena_array(&m->arena, s->chunks.n + 1, sizeof *digests);
    size_t next = 0;
    for (size_t i = 0; i < s->chunks.n; i++)
        digests[i] =
            s->chunks.items[i].reused ? s->chunks.items[i].digest : s->items[next++].digest;
    m->tensors.n = 0;
    for (size_t i = 0; i < s->request->n_tensors; i++) {
        struct manifest_tensor entry = manifest_tensor_of(&s->request->tensors[i]);
        entry.chunks = digests;
        digests += chunk_count(entry.bytes);
        vec_push(&m->tensors, entry);
    }
}

static int put_manifest(struct store_save *s, MDB_txn *txn, int *status, struct error *err)
{
    uint8_t bytes[STEP_KEY_BYTES];
    struct str text = STR_INIT;
    struct store_head head = {.sequence = s->manifest->sequence, .step = s->manifest->step};
    list_tensors(s);
    save_again_keep(&s->again, s->manifest);
    if (s->request->is_part && store_keep_replaced(s->store, txn, s->manifest->step, err))
        return err->code;
    ckpt_manifest_encode(s->manifest, &text);
    MDB_val key = store_step_key(bytes, s->manifest->step), value = {text.n, text.data};
    *status = mdb_put(txn, s->store->dbi, &key, &value, 0);
    str_release(&text);
    if (*status)
        return store_failed(s->store, *status, "writing", err);
    head.manifest = s->manifest->digest;
    return store_write_head(s->store, txn, &head, err);
}

static int put_all(struct store_save *s, struct digest_pool *pool, int *status, struct error *err)
{
    MDB_txn *txn = NULL;
    size_t first = 0;
    int code;
    s->manifest->new_bytes = s->shards_new;
    s->done = 0;
    for (size_t i = 0; i < s->chunks.n; i++)
        s->done += s->chunks.items[i].reused ? s->chunks.items[i].n : 0;
    while (!(code = put_some(s, pool, first, &txn, status, err)) && !txn)
        first += TXN_CHUNKS;
    if (!code)
        put_manifest(s, txn, status, err);
    return store_commit(s->store, txn, err);
}

/* ---- all of it ---- */

static int describe_shards(struct store_save *s, struct error *err)
{
    for (size_t i = 0; i < s->request->n_shards; i++) {
        struct store *store;
        struct ckpt_manifest manifest;
        struct manifest_shard shard = {.name = s->request->shards[i]};
        const struct store_options options = {.shard = shard.name};
        if (store_open(s->store->folder, &options, &store, err))
            return err->code;
        if (!store_manifest(store, s->request->step, &manifest, err)) {
            shard.manifest = manifest.digest;
            s->manifest->bytes += manifest.bytes;
            s->manifest->n_tensors += manifest.n_tensors;
            s->shards_new += manifest.new_bytes;
            vec_push(&s->manifest->shards, shard);
            save_again_shard(&s->again, store, shard.name, &manifest);
            ckpt_manifest_release(&manifest);
        }
        store_close(store);
        if (err->code)
            return err->code;
    }
    return 0;
}

static int describe(struct store_save *s, struct error *err)
{
    struct ckpt_manifest *m = s->manifest;
    const struct save_request *request = s->request;
    m->step = request->step;
    save_again_begin(&s->again, s->store, request->step);
    m->time = request->time ? request->time : (int64_t)(time_wall() * 1e6);
    m->producer = request->producer;
    m->run = request->run;
    for (size_t i = 0; i < request->n_scalars; i++)
        vec_push(&m->scalars, request->scalars[i]);
    for (size_t i = 0; i < request->n_blobs; i++)
        vec_push(&m->blobs, request->blobs[i]);
    if (run_equal(&m->run, &s->again.before.run))
        ckpt_manifest_add_tags(m, &s->again.before);
    for (size_t i = 0; i < request->n_tensors; i++) {
        m->n_tensors += !resource_is_part(request->tensors[i].name);
        m->bytes += tensor_bytes(&request->tensors[i].value);
    }
    if (describe_shards(s, err))
        return err->code;
    /* An empty checkpoint would hide all earlier ones, and nobody could resume from it. A shard's
     * part may be empty: a shard has no variables before its first graph. */
    const struct ckpt_manifest *newest = &s->newest;
    if (s->request->is_part || s->manifest->n_tensors)
        return 0;
    error_set(err, ERR_RETRY, "%s: nothing to save: no variable has a value yet", s->store->name);
    if (newest->n_tensors)
        error_append(err, ", and step %lld has %llu", (long long)newest->step,
                     (unsigned long long)newest->n_tensors);
    return err->code;
}

/* An existing checkpoint of the step stays, is replaced, or is an error. */
static int save_all(struct store_save *s, bool *stays, struct error *err)
{
    struct ckpt_manifest *before = s->is_there ? &s->there : &s->newest;
    const struct save_over_case over = {s->request, s->manifest, &s->there, &s->chunks};
    *stays = false;
    if (save_compare(s->store, s->request, before, &s->chunks, err) ||
        (s->is_there && save_check_over(s->store, &over, stays, err)) || *stays)
        return err->code;
    uint64_t room = 0; /* bytes that may have to be written */
    s->items = mem_array(s->chunks.n + 1, sizeof *s->items);
    s->wanted = mem_array(s->chunks.n + 1, sizeof *s->wanted);
    s->data = s->request->read ? mem_array(1, CHUNK_BYTES) : NULL;
    vec_each(chunk, &s->chunks) {
        if (chunk->reused)
            continue;
        s->wanted[s->n_items] = chunk;
        s->items[s->n_items++] = (struct digest_item){.data = chunk->data, .n = chunk->n};
        size_t page = s->store->page_bytes;
        room += (chunk->n + PAGES_HEADER_BYTES + page - 1) / page * page;
    }
    room += TREE_BYTES(s->n_items + s->request->n_tensors);
    /* Tests the manifest, as it will be but for digests: one that cannot be read back would be
     * damage in the store. */
    struct str text = STR_INIT;
    struct ckpt_manifest back;
    list_tensors(s);
    if (ckpt_manifest_check_names(s->manifest, err))
        return error_prefix(err, "%s: ", s->store->name);
    ckpt_manifest_encode(s->manifest, &text);
    room += (s->request->is_part ? 2 : 1) * text.n;
    if (ckpt_manifest_decode(text.data, text.n, &back, err))
        error_prefix(err, "%s: cannot be saved: ", s->store->name);
    else
        ckpt_manifest_release(&back);
    str_release(&text);
    if (err->code)
        return err->code;
    struct digest_pool *pool =
        s->data ? NULL : digest_pool_new(s->items, s->n_items, s->request->threads);
    int code = ERR_DATA;
    /* Free pages may be too scattered: then tries again with more space. */
    for (int i = 0, status = MDB_MAP_FULL; code && status == MDB_MAP_FULL && i < ATTEMPTS; i++) {
        error_clear(err);
        code = store_reserve(s->store, room, i > 0, err);
        status = 0;
        if (!code)
            code = put_all(s, pool, &status, err);
    }
    if (pool)
        digest_pool_free(pool);
    return code;
}

int store_save(struct store *store, const struct save_request *request, struct ckpt_manifest *saved,
               struct error *err)
{
    struct ckpt_manifest manifest = {0};
    struct store_save s = {
        .store = store, .request = request, .manifest = &manifest, .started = time_now()};
    error_clear(err);
    BUG_ON(!store->writes || request->step < 0);
    bool stays = false;
    if (!find_newest(&s, err) && !describe(&s, err) &&
        !save_find_there(store, request->step, &s.is_there, &s.there, err))
        save_all(&s, &stays, err);
    if (err->code || !saved) {
        ckpt_manifest_release(&manifest);
    } else {
        /* The caller gets the manifest of what was saved; if the old one stays, nothing is new and
         * this save has no sequence number. */
        *saved = stays ? s.there : *s.manifest;
        if (stays) {
            saved->sequence = 0;
            saved->new_bytes = 0;
            s.there = (struct ckpt_manifest){0};
            ckpt_manifest_release(s.manifest);
        }
    }
    ckpt_manifest_release(&s.newest);
    ckpt_manifest_release(&s.there);
    save_again_end(&s.again);
    vec_release(&s.chunks);
    mem_free(s.items);
    mem_free(s.wanted);
    mem_free(s.data);
    return err->code;
}

int store_save_at(const char *path, const struct store_options *options,
                  const struct save_request *request, struct error *err)
{
    struct store *store;
    if (store_open(path, options, &store, err))
        return err->code;
    store_save(store, request, NULL, err);
    store_close(store);
    return err->code;
}
