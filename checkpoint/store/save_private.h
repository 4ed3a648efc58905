/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by save.c and save_compare.c: which chunks of a checkpoint the store already has.
 */
#ifndef TF_CHECKPOINT_SAVE_PRIVATE_H
#define TF_CHECKPOINT_SAVE_PRIVATE_H

#include "checkpoint/store/checkpoint.h"
#include "checkpoint/store/save.h"
#include "checkpoint/store/store_private.h"

#define CHUNK_NOWHERE UINT64_MAX

struct save_chunk {
    const void *data; /* NULL: request->read has it */
    size_t n;
    size_t tensor;        /* which of the request's, */
    uint64_t index;       /* and which chunk of that */
    struct digest digest; /* of the newest checkpoint's chunk at this place */
    uint64_t offset;      /* of that chunk in the file; CHUNK_NOWHERE: there is none */
    bool reused;          /* that chunk has the same bytes */
};

typedef VEC(struct save_chunk) save_chunks;

/* Lists the chunks of all tensors in order, and compares each with the chunk at its place in
 * `newest`: byte by byte, up to the first that differs. One that has to be read first is looked for
 * in the whole store, by its digest. */
int save_compare(struct store *store, const struct save_request *request,
                 struct ckpt_manifest *newest, save_chunks *chunks, struct error *err);

/* Sets the error of a save that `progress` has ended. */
int save_stopped(const struct store *store, const struct save_request *request, struct error *err);

/* ---- save_over.c ---- */

/* Finds the checkpoint of that step, unless it is damaged. */
int save_find_there(struct store *store, int64_t step, bool *is_there, struct ckpt_manifest *there,
                    struct error *err);

struct save_over_case {
    const struct save_request *request;
    const struct ckpt_manifest *mine;
    struct ckpt_manifest *there;
    const save_chunks *chunks; /* already compared with those of the existing checkpoint */
};

/* ERR_CONFIG: the existing checkpoint may not be replaced. *stays: it is equal. */
int save_check_over(const struct store *store, const struct save_over_case *over, bool *stays,
                    struct error *err);

/* The same for the tensors of a checkpoint, whose digests are known before anything is read. */
int save_check_copy(struct store *store, const struct checkpoint *from, bool *stays,
                    struct error *err);

/* Returns whether the store has exactly this chunk, intact. */
bool save_is_stored(struct store *store, MDB_txn *txn, const struct digest_item *item);

/* ---- save_again.c: what is kept when a step is saved again ---- */

struct save_again {
    struct ckpt_manifest before; /* the step's former manifest */
    bool is_same;                /* it exists, and no difference was found yet */
    size_t n_shards;             /* number of shards compared */
};

void save_again_begin(struct save_again *again, struct store *store, int64_t step);
/* Compares the new manifest of a shard with the listed one. */
void save_again_shard(struct save_again *again, struct store *shard, const char *name,
                      const struct ckpt_manifest *now);
/* Once digests are known: gives `now` the scalars that it lacks, if its variables are unchanged. */
void save_again_keep(struct save_again *again, struct ckpt_manifest *now);
void save_again_end(struct save_again *again);

#endif
