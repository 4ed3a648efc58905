/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of checkpoints: a folder with an LMDB environment (data.mdb, lock.mdb), the lock of its
 * one writer (writer.lock), and, of a job with several shards, an environment of the same kind for
 * each in shards/NAME. Manifests and chunks lie in the environment under these keys:
 *
 *   f              the format's number
 *   h              the head: the last sequence number, and which manifest is the newest
 *   n              the number of the commit
 *   g              the generation: how often a job has resumed from it (save.h)
 *   m STEP         a manifest (manifest.h); STEP is 8 bytes, the highest first
 *   o DIGEST       of a shard: a manifest whose step was saved once more
 *   c DIGEST       a chunk (digest.h)
 *
 * One transaction makes a checkpoint visible or leaves no trace. Before LMDB works on a file, its
 * pages are walked (pages.h); chunks and manifests are checked against their digests whenever they
 * are read, and read and written by pread and pwrite, so that a failing disk is an error and not a
 * signal. The space of a transaction is allocated before it, so that a full disk is one, too.
 *
 * Errors start with the store's name: ERR_NOINPUT when there is no store, ERR_DATA when it is
 * damaged, ERR_RETRY when another process writes, ERR_CANCELLED when this one was asked to end
 * while it waited for that (base/patience.h), ERR_DENIED, ERR_IO, ERR_OS, ERR_PROTOCOL (made by a
 * newer program). Thread-safe, if the functions that change a store are called by one thread at a
 * time. Not to be used on network file systems, which LMDB does not support.
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
    const atomic_bool *cancelled; /* ends that wait, too; NULL: nobody does */
    const char *owner;            /* who writes: "tf-ckpt prune" */
    const char *shard; /* its environment of a sharded store, made if it is missing; NULL: the one
                        * that coordinates, or all there is */

    enum {
        STORE_SOUND,
        STORE_ROLLED_BACK, /* to write: also a store that went back to an older commit, */
        STORE_MENDS,       /* or brings back its last one first */
    } repairs;

    /* To write: called when the lock is held, before the environment is opened. Called so that this
     * process closes it where it is open for reading. NULL: nothing has. */
    void (*make_way)(void *context);
    void *context;
};

/* Checks what can be known of a store before there is anything to save, which is made if it is
 * missing: ERR_NOINPUT when what it is to lie in is missing or no folder, as only one is made, not
 * all that are missing on the way; ERR_DENIED when it cannot be written to; ERR_IO where nothing
 * can be made, as in /proc; ERR_USAGE where the store would be a part of another one. */
int store_check_place(const char *path, struct error *err);

/* Returns whether the folder looks like a store: it may still be damaged. */
bool store_exists(const char *path);

/* Makes an empty store, or nothing. ERR_USAGE when the name is taken. */
int store_create(const char *path, struct error *err);
/* The same where there is no store yet; one that another process makes meanwhile will do. */
int store_ensure(const char *path, struct error *err);

/* `options` NULL: for reading. A store that this process has open is opened once more only for
 * reading. In a folder that may not be written a store can be read, too, as long as nobody writes.
 */
int store_open(const char *path, const struct store_options *options, struct store **store,
               struct error *err);
void store_close(struct store *store); /* NULL is harmless */

const char *store_name(const struct store *store);

/* Returns the counts that the walk at opening has found. */
const struct pages_count *store_pages(const struct store *store);

/* Why what is found is not what was committed last (checkpoint/store/committed.h); code 0: it is.
 * Such a store can be read, and is not written to. */
const struct error *store_rolled_back(const struct store *store);

/* Mends a store whose meta pages are damaged, and those of its shards: brings back the commit that
 * was the last or, where that is lost, settles for the one that is found. `say` gets a line for
 * each that was mended. ERR_DATA: it cannot be done. */
int store_repair(const char *path, const struct store_options *options,
                 void (*say)(void *context, const char *line), void *context, struct error *err);

/* ---- what is in it ---- */

typedef VEC(struct ckpt_manifest) manifest_vec;

/* Damage of one of them, or of the list of all. */
struct store_damage {
    int64_t step; /* STORE_NO_STEP: of none */
    struct error err;
};
#define STORE_NO_STEP (-1)
typedef VEC(struct store_damage) damage_vec;

/* All manifests, in the order of saving. Those that are damaged are passed over, and told in
 * `damages`; the caller releases both. */
int store_read_all(struct store *store, manifest_vec *manifests, damage_vec *damages,
                   struct error *err);

/* The same, for whom the first damage will do. */
int store_manifests(struct store *store, manifest_vec *manifests, struct error *damaged,
                    struct error *err);
void manifests_release(manifest_vec *manifests);

/* One more than the highest that is there: for who does not count steps. */
int store_next_step(struct store *store, int64_t *step, struct error *err);

/* ERR_NOINPUT when there is none of that step. */
int store_manifest(struct store *store, int64_t step, struct ckpt_manifest *manifest,
                   struct error *err);

#endif
