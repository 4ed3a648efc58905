/* SPDX-License-Identifier: Apache-2.0
 *
 * One checkpoint of a store, open for reading, with its tensors from all shards. Every byte read is
 * checked against the digests: a read returns what was saved, or an error naming tensor and chunk.
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
    struct name_index index; /* of the entries; built when a variable is first asked for */
    pthread_mutex_t index_lock;
    struct arena arena;
};

/* Returns whether the error means damage. Only then is an older checkpoint taken in place of a
 * newer one: any other error (unreadable disk, no descriptor, no memory) says nothing about the
 * checkpoint, and is returned. */
bool checkpoint_is_damaged(const struct error *err);

/* Opens the checkpoint of `step`, or the newest complete one, or the best. Its data is not pruned
 * until it is closed. If a newer one is incomplete or its manifest is damaged, `passed_over` (NULL:
 * not wanted) gets the reason. ERR_NOINPUT: there is none. The store must outlive the
 * checkpoint. */
int checkpoint_open(struct store *store, int64_t step, struct checkpoint **checkpoint,
                    struct error *passed_over, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint); /* NULL is harmless */

/* Hears why each newer checkpoint was not taken. */
struct checkpoint_listener {
    void (*tell)(struct checkpoint_listener *skipped, const char *why); /* NULL: nobody is told */
    struct error first; /* code 0: none was skipped */
};

/* As checkpoint_open, but reads and verifies every byte first. ERR_NOINPUT: none was ever saved;
 * ERR_DATA: none is intact. */
int checkpoint_open_intact(struct store *store, int64_t step, struct checkpoint_listener *skipped,
                           struct checkpoint **checkpoint, struct error *err);

/* Reads tensor i, with as many threads as there are cores; the caller releases it. */
int checkpoint_read(struct checkpoint *checkpoint, int i, struct tensor *value, struct error *err);

/* Checks every chunk of all tensors. */
int checkpoint_check_all(struct checkpoint *checkpoint, struct error *err);

struct chunk_place {
    int entry;
    uint64_t chunk;
    bool is_only_found; /* it is not read, and is good if it is there */
    bool is_bad;        /* after a check */
};

struct chunk_check {
    struct checkpoint *checkpoint;
    VEC(struct chunk_place) places;
    /* Is called for each group that was checked, by several threads; a failure ends the check.
     * NULL: so does the first damage. */
    int (*checked)(void *context, const struct chunk_place *places, size_t n, struct error *err);
    void *context;
};

int checkpoint_check_places(struct chunk_check *checking, struct error *err);
size_t checkpoint_chunk_size(const struct checkpoint *checkpoint, const struct chunk_place *place);

/* Reads the chunk of tensor i; `data` NULL: only finds it. Then compares its digest with the saved
 * one. */
int checkpoint_fetch_chunk(struct checkpoint *checkpoint, int i, uint64_t chunk, void *data,
                           struct error *err);
int checkpoint_check_digest(const struct checkpoint *checkpoint, int i, uint64_t chunk,
                            const struct digest *found, struct error *err);

#endif
