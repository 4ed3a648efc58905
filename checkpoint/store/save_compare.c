/* SPDX-License-Identifier: Apache-2.0
 *
 * The first pass of a save. One thread, as LMDB requires, looks up all places; then several threads
 * compare.
 */
#include <string.h>

#include "base/memory.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/parallel.h"
#include "checkpoint/store/save_private.h"

#define COMPARE_BYTES 65536

struct comparison {
    struct store *store;
    save_chunks *chunks;
};

static bool is_equal_at(const struct store *store, const void *data, size_t n, uint64_t place)
{
    uint8_t stored[COMPARE_BYTES];
    struct error ignored = ERROR_INIT;
    for (size_t done = 0; done < n;) {
        size_t part = n - done < sizeof stored ? n - done : sizeof stored;
        if (pages_read(store->fd, stored, part, place + done, &ignored) ||
            memcmp(stored, (const char *)data + done, part) != 0)
            return false;
        done += part;
    }
    return true;
}

bool save_is_stored(struct store *store, MDB_txn *txn, const struct digest_item *item)
{
    struct error ignored = ERROR_INIT;
    uint64_t place;
    return !store_find_chunk(store, txn, &item->digest, item->n, &place, &ignored) &&
           is_equal_at(store, item->data, item->n, place);
}

static void list(const struct save_request *request, struct ckpt_manifest *newest,
                 save_chunks *chunks)
{
    for (size_t i = 0; i < request->n_tensors; i++) {
        const struct variable_record *t = &request->tensors[i];
        const struct manifest_tensor *before = ckpt_manifest_find(newest, t->container, t->name);
        if (before && (before->bytes != tensor_bytes(&t->value) || !t->value.data))
            before = NULL;
        /* Adds the chunks of a tensor; `before` is the tensor in the newest checkpoint, NULL if
         * missing or of another size. */
        uint64_t bytes = tensor_bytes(&t->value);
        for (uint64_t k = 0; k < chunk_count(bytes); k++) {
            const char *data = t->value.data;
            struct save_chunk chunk = {.data = data ? data + k * CHUNK_BYTES : NULL,
                                       .n = chunk_size(bytes, k),
                                       .tensor = i,
                                       .index = k,
                                       .offset = CHUNK_NOWHERE};
            if (before) {
                chunk.digest = before->chunks[k];
                chunk.offset = 0;
            }
            vec_push(chunks, chunk);
        }
    }
}

static int compare_chunk(void *context, uint64_t i, struct error *err)
{
    const struct comparison *c = context;
    struct save_chunk *chunk = &c->chunks->items[i];
    (void)err;
    if (chunk->offset != CHUNK_NOWHERE)
        chunk->reused = is_equal_at(c->store, chunk->data, chunk->n, chunk->offset);
    return 0;
}

/* Looks for chunks that have no data here; `data` has place for one. */
static int find_chunks(struct store *store, MDB_txn *txn, const struct save_request *request,
                       save_chunks *chunks, void *data, struct error *err)
{
    uint64_t total = 0;
    vec_each(chunk, chunks)
        total += chunk->n;
    for (size_t i = 0; i < chunks->n && !err->code; i++) {
        struct save_chunk *chunk = &chunks->items[i];
        if (chunk->data)
            continue;
        struct digest_item item = {.data = data, .n = chunk->n};
        if (request->progress && !request->progress(request->context, 0, total))
            return save_stopped(store, request, err);
        if (!request->read(request->source, chunk->tensor, chunk->index, data, &item.digest, err)) {
            chunk->digest = item.digest;
            chunk->reused = save_is_stored(store, txn, &item);
        }
    }
    return err->code;
}

int save_compare(struct store *store, const struct save_request *request,
                 struct ckpt_manifest *newest, save_chunks *chunks, struct error *err)
{
    struct comparison comparison = {store, chunks};
    struct error ignored = ERROR_INIT;
    MDB_txn *txn;
    list(request, newest, chunks);
    if (store_begin(store, false, &txn, err))
        return err->code;
    vec_each(chunk, chunks) {
        if (chunk->offset != CHUNK_NOWHERE &&
            store_find_chunk(store, txn, &chunk->digest, chunk->n, &chunk->offset, &ignored))
            chunk->offset = CHUNK_NOWHERE; /* it is damaged, and is written again */
    }
    checkpoint_parallel(request->threads, chunks->n, compare_chunk, &comparison, err);
    if (request->read && newest->sequence) { /* an empty store has none of them */
        void *data = mem_array(1, CHUNK_BYTES);
        find_chunks(store, txn, request, chunks, data, err);
        mem_free(data);
    }
    store_abort(store, txn);
    return err->code;
}
