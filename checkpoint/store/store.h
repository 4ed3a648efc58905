/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of checkpoints: a folder with an LMDB environment (data.mdb, lock.mdb), the lock of its
 * only writer (writer.lock), and, for a job with several shards, an environment of the same kind
 * per shard in shards/NAME. An environment holds manifests and chunks under these keys:
 *
 *   f              the format's number
 *   h              the head: the last sequence number, and the newest manifest
 *   n              the number of the commit
 *   g              the generation: how often a job has resumed from it (save.h)
 *   m STEP         a manifest (manifest.h); STEP is 8 bytes, the highest first
 *   o DIGEST       in a shard: a manifest whose step was saved again
 *   c DIGEST       a chunk (digest.h)
 *
 * One transaction makes a checkpoint visible or leaves no trace. Before LMDB works on a file, its
 * pages are walked (pages.h); chunks and manifests are checked against their digests whenever they
 * are read, and read and written by pread and pwrite, so that a failing disk is an error and not a
 * signal. The space of a transaction is allocated before it starts: a full disk is an error, too.
 *
 * Errors start with the store's name: ERR_NOINPUT: no store; ERR_DATA: it is damaged; ERR_RETRY:
 * another process writes; ERR_CANCELLED: this process was asked to end while it waited for that
 * (base/patience.h); ERR_DENIED, ERR_IO, ERR_OS; ERR_PROTOCOL: made by a newer program.
 * Thread-safe, if only one thread at a time calls functions that change a store. Do not use it on
 * network file systems: LMDB does not support them.
 */
#ifndef TF_CHECKPOINT_STORE_H
#define TF_CHECKPOINT_STORE_H

#include <stdatomic.h>

#include "checkpoint/store/manifest.h"
#include "checkpoint/store/pages.h"

struct store;

struct store_options {
    bool write;
    double lock_wait;             /* seconds to wait for another writer; negative: without end */
    const atomic_bool *cancelled; /* when true, ends the wait; NULL: cannot be cancelled */
    const char *owner;            /* the writer: "tf-ckpt prune" */
    const char *shard; /* its environment of a sharded store, created if missing; NULL: the one that
                        * coordinates, or the only one */

    enum {
        STORE_SOUND,
        STORE_ROLLED_BACK, /* opens to write also a store that fell back to an older commit */
        STORE_MENDS,       /* and restores its last commit first */
    } repairs;

    /* To write: called with the lock held, before the environment is opened, so that this process
     * can close it if it is open for reading. NULL: it is not open. */
    void (*make_way)(void *context);
    void *context;
};

/* Checks what can be known of a store before there is anything to save, which is made if it is
 * missing: ERR_NOINPUT when what it is to lie in is missing or no folder, as only one is made, not
 * all that are missing on the way; ERR_DENIED when it cannot be written to; ERR_IO where nothing
 * can be made, as in /proc; ERR_USAGE where the store would be a part of another one. */
int store_check_place(const char *path, struct error *err);

/* Returns whether the folder looks like a store; the store may still be damaged. */
bool store_exists(const char *path);

/* Creates an empty store, completely or not at all. ERR_USAGE: the name is taken. */
int store_create(const char *path, struct error *err);
/* Creates a store unless there is one; one that another process creates meanwhile is fine. */
int store_ensure(const char *path, struct error *err);

/* `options` NULL: for reading. A store that this process has open can be opened again only for
 * reading. A store in a read-only folder can be read, too, as long as nobody writes.
 */
int store_open(const char *path, const struct store_options *options, struct store **store,
               struct error *err);
void store_close(struct store *store); /* NULL is harmless */

const char *store_name(const struct store *store);

/* Returns the counts found by the walk at opening. */
const struct pages_count *store_pages(const struct store *store);

/* Why the newest commit found is not the last one made (checkpoint/store/committed.h); code 0: it
 * is. Such a store can be read, but not written. */
const struct error *store_rolled_back(const struct store *store);

/* Repairs damaged meta pages of a store and its shards: restores the last commit or, if that is
 * lost, accepts the newest one found. `say` gets a line for each repair. ERR_DATA: the store cannot
 * be repaired. */
int store_repair(const char *path, const struct store_options *options,
                 void (*say)(void *context, const char *line), void *context, struct error *err);

/* ---- what is in it ---- */

typedef VEC(struct ckpt_manifest) manifest_vec;

/* Damage of one manifest, or of the list of all. */
struct store_damage {
    int64_t step; /* STORE_NO_STEP: of the list */
    struct error err;
};
#define STORE_NO_STEP (-1)
typedef VEC(struct store_damage) damage_vec;

/* Reads all manifests, in the order of saving. Damaged ones are skipped and listed in `damages`;
 * the caller releases both. */
int store_read_all(struct store *store, manifest_vec *manifests, damage_vec *damages,
                   struct error *err);

/* The same, reporting only the first damage; `damaged` NULL: none. */
int store_manifests(struct store *store, manifest_vec *manifests, struct error *damaged,
                    struct error *err);
void manifests_release(manifest_vec *manifests);

/* One more than the highest step in the store, for callers that do not count steps. */
int store_next_step(struct store *store, int64_t *step, struct error *err);

/* ERR_NOINPUT: there is none of that step. */
int store_manifest(struct store *store, int64_t step, struct ckpt_manifest *manifest,
                   struct error *err);

#endif
