/* SPDX-License-Identifier: Apache-2.0
 *
 * One checkpoint of a store, open for reading: its tensors, from whichever shards hold them. A read
 * gives what was saved, or an error that names tensor and chunk: every byte is checked against the
 * digests.
 */
#ifndef TF_CHECKPOINT_CHECKPOINT_H
#define TF_CHECKPOINT_CHECKPOINT_H

#include <pthread.h>

#include "base/name_index.h"
#include "checkpoint/store/store.h"

#define CHECKPOINT_NEWEST (-1)
#define CHECKPOINT_BEST (-2) /* checkpoint/store/best.h */

struct checkpoint_part; /* the environment of a shard, or the store's own */

struct checkpoint_entry {
    const struct manifest_tensor *tensor;
    struct checkpoint_part *part;
    const char *shard; /* "ps-0"; "" in a store without shards */
};

struct checkpoint {
    const char *name;              /* "backup@41000" */
    struct ckpt_manifest manifest; /* of the store's own environment */
    VEC(struct checkpoint_entry) entries;
    VEC(struct checkpoint_part *) parts;
    struct name_index index; /* of the entries, once somebody has asked for a variable */
    pthread_mutex_t index_lock;
    struct arena arena;
};

/* Returns whether the error is damage: for that alone an older checkpoint is taken in place of a
 * newer one. Any other (a disk that does not read, no descriptor, no memory) says nothing of it,
 * and is handed on. */
bool checkpoint_is_damaged(const struct error *err);

/* Opens `step`, or the newest complete one, or the best. Its data cannot be pruned away until it is
 * closed. When a newer one is not complete or its manifest is damaged, `passed_over` (NULL: not
 * wanted) gets the reason. ERR_NOINPUT: there is none. The store must outlive the checkpoint. */
int checkpoint_open(struct store *store, int64_t step, struct checkpoint **checkpoint,
                    struct error *passed_over, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL is harmless */

/* As checkpoint_open, and every byte of it is as it was saved: all are read. `skipped` (may be
 * NULL) is told why each newer one was not taken. ERR_NOINPUT when none was ever saved, ERR_DATA
 * when none is intact. */
struct checkpoint_listener {
    void (*tell)(struct checkpoint_listener *skipped, const char *why);
};
int checkpoint_open_intact(struct store *store, int64_t step, struct checkpoint_listener *skipped,
                           struct checkpoint **checkpoint, struct error *err);

/* -1: there is none of that name. */
int checkpoint_find(const struct checkpoint *checkpoint, const char *container, const char *name);

/* Reads tensor i; the caller releases it. By as many threads as there are cores. */
int checkpoint_read(struct checkpoint *checkpoint, int i, struct tensor *value, struct error *err);

/* Checks every chunk of all of them. */
int checkpoint_check_all(struct checkpoint *checkpoint, struct error *err);

/* Checks one chunk of tensor i without keeping it: `scratch` has CHUNK_BYTES. */
int checkpoint_check_chunk(struct checkpoint *checkpoint, int i, uint64_t chunk, void *scratch,
                           struct error *err);

/* The same in two parts, for who takes the digests of many at once: what is there, and whether its
 * digest is the one that was saved. */
int checkpoint_fetch_chunk(struct checkpoint *checkpoint, int i, uint64_t chunk, void *data,
                           struct error *err);
int checkpoint_check_digest(const struct checkpoint *checkpoint, int i, uint64_t chunk,
                            const struct digest *found, struct error *err);

/* Returns whether it is there, without reading it. */
int checkpoint_find_chunk(struct checkpoint *checkpoint, int i, uint64_t chunk, struct error *err);

#endif
