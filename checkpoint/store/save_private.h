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
                 struct ckpt_manifest *newest, save_chunks *chunks, struct error *err);

/* ---- save_over.c ---- */

/* The checkpoint of that step, unless it is damaged. */
int save_find_there(struct store *store, int64_t step, bool *is_there, struct ckpt_manifest *there,
                    struct error *err);

struct save_over_case {
    const struct save_request *request;
    const struct ckpt_manifest *mine;
    struct ckpt_manifest *there;
    const save_chunks *chunks; /* compared with those of what is there */
};

/* ERR_CONFIG when it may not be replaced. *stays: it is the same, and nothing is to be saved. */
int save_check_over(const struct store *store, const struct save_over_case *over, bool *stays,
                    struct error *err);

/* The same before anything is read, for who has the digests: the tensors of a checkpoint. */
int save_check_copy(struct store *store, const struct checkpoint *from, bool *stays,
                    struct error *err);

/* Returns whether the store has exactly this, in good order. */
bool save_is_stored(struct store *store, MDB_txn *txn, const struct digest_item *item);

/* ---- save_again.c: what a step that is saved once more keeps ---- */

struct save_again {
    struct ckpt_manifest before; /* of the step */
    bool is_same;                /* there is one, and no difference was found yet */
    size_t n_shards;             /* that were compared */
};

void save_again_begin(struct save_again *again, struct store *store, int64_t step);
/* Compares the new manifest of a shard with the one that is listed. */
void save_again_shard(struct save_again *again, struct store *shard, const char *name,
                      const struct ckpt_manifest *now);
/* When digests are known: gives `now` the scalars that it lacks, if its variables are the same. */
void save_again_keep(struct save_again *again, struct ckpt_manifest *now);
void save_again_end(struct save_again *again);

#endif
