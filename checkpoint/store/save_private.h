/* SPDX-License-Identifier: Apache-2.0
 *
 * What save.c and save_compare.c share: which chunks of a checkpoint the store has already.
 */
#ifndef TF_CHECKPOINT_SAVE_PRIVATE_H
#define TF_CHECKPOINT_SAVE_PRIVATE_H

#include "checkpoint/store/save.h"
#include "checkpoint/store/store_private.h"

#define CHUNK_NOWHERE UINT64_MAX

struct save_chunk {
    const void *data;
    size_t n;
    struct digest digest; /* of what the newest checkpoint has at this place */
    uint64_t offset;      /* where in the file that lies; CHUNK_NOWHERE: there is none */
    bool reused;          /* it is the same */
};

typedef VEC(struct save_chunk) save_chunks;

/* Lists the chunks of all tensors, one after the other, and compares each with the one at its place
 * in `newest`: byte by byte, up to the first that differs. */
int save_compare(struct store *store, const struct save_request *request,
                 const struct ckpt_manifest *newest, save_chunks *chunks, struct error *err);

/* Whether the store has exactly this, in good order. */
bool save_is_stored(struct store *store, MDB_txn *txn, const struct digest_item *item);

#endif
