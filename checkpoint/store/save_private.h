/* SPDX-License-Identifier: Apache-2.0
 *
 * What save.c and save_compare.c share: which chunks of a checkpoint the store has already.
 */
#ifndef TF_CHECKPOINT_SAVE_PRIVATE_H
#define TF_CHECKPOINT_SAVE_PRIVATE_H

#include "checkpoint/store/checkpoint.h"
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

/* ---- save_over.c ---- */

/* The checkpoint of that step, unless it is damaged. */
int save_find_there(struct store *store, int64_t step, bool *is_there, struct ckpt_manifest *there,
                    struct error *err);

struct save_over_case {
    const struct save_request *request;
    const struct ckpt_manifest *mine, *there;
    const save_chunks *chunks; /* compared with those of what is there */
};

/* ERR_CONFIG when it may not be replaced. *stays: it is the same, and nothing is to be saved. */
int save_check_over(const struct store *store, const struct save_over_case *over, bool *stays,
                    struct error *err);

/* The same before anything is read, for who has the digests: the tensors of a checkpoint. */
int save_check_copy(struct store *store, const struct checkpoint *from, bool *stays,
                    struct error *err);

/* Whether the store has exactly this, in good order. */
bool save_is_stored(struct store *store, MDB_txn *txn, const struct digest_item *item);

#endif
