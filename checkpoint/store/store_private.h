/* SPDX-License-Identifier: Apache-2.0
 *
 * Transactions of a store, for the files of this folder.
 */
#ifndef TF_CHECKPOINT_STORE_PRIVATE_H
#define TF_CHECKPOINT_STORE_PRIVATE_H

#include <lmdb.h>
#include <pthread.h>
#include <sys/types.h>

#include "checkpoint/store/committed.h"
#include "checkpoint/store/store.h"

#define STORE_FORMAT "1"
#define STORE_DATA_FILE "data.mdb"
#define STORE_READERS_FILE "lock.mdb"
#define CHUNK_KEY_BYTES (1 + DIGEST_BYTES)
#define STEP_KEY_BYTES 9

struct store {
    char *name, *folder;
    MDB_env *env;
    MDB_dbi dbi;
    int fd, lock_fd, committed_fd; /* committed_fd: of `committed`; -1: none to read */
    size_t page_bytes;
    bool writes;
    int repairs;              /* as in store_options */
    struct error rolled_back; /* a commit was lost; code 0: none */
    struct pages_count pages;

    pthread_mutex_t map_lock; /* guards what follows */
    pthread_cond_t map_unused;
    int map_users;         /* mostly live transactions */
    struct error lost_map; /* LMDB unmaps before it maps anew, and does not notice if that fails:
                            * then nothing may be done any more. Code 0: all is well. */

    dev_t device; /* of data.mdb, with inode: identify an open store */
    ino_t inode;
    int holders;
    struct store *next;
};

/* Not opened yet. */
struct store *store_new(const char *name, const char *folder, bool writes);
void store_free(struct store *store);

/* ERR_USAGE if `path` is, or would be, in the folder `shards` of a store: the store lists what its
 * shards have saved by digest, so nobody else may write there. */
int store_check_whole(const char *path, struct error *err);

/* "STORE" or "STORE/shards/NAME", without a slash at the end; the caller frees it. */
char *store_folder_of(const char *path, const char *shard);

/* ERR_DENIED, ERR_OS or ERR_IO, for an errno. */
int store_errno_code(int number);

/* Turns an error of LMDB into ours, prefixed with the store's name. */
int store_failed(const struct store *store, int status, const char *what, struct error *err);

int store_begin(struct store *store, bool write, MDB_txn **txn, struct error *err);
/* Commits, or aborts if an error is set. */
int store_commit(struct store *store, MDB_txn *txn, struct error *err);
void store_abort(struct store *store, MDB_txn *txn); /* NULL is harmless */

MDB_val store_step_key(uint8_t key[STEP_KEY_BYTES], int64_t step);
MDB_val store_replaced_key(uint8_t key[CHUNK_KEY_BYTES], const struct digest *digest);
MDB_val store_chunk_key(uint8_t key[CHUNK_KEY_BYTES], const struct digest *digest);

int store_read_head(struct store *store, MDB_txn *txn, struct store_head *head, struct error *err);
int store_write_head(struct store *store, MDB_txn *txn, const struct store_head *head,
                     struct error *err);

/* Keys of one kind: they begin with the same letter and have the same length. */
struct store_keys {
    char letter;
    size_t bytes;
};
extern const struct store_keys store_step_keys, store_replaced_keys;

/* Calls `each` with every entry that has such a key, in key order, until `each` fails. The value
 * lies in the map: store_read_value copies it. */
typedef int store_visit(void *context, const MDB_val *key, const MDB_val *value, struct error *err);
int store_walk(struct store *store, MDB_txn *txn, const struct store_keys *keys, store_visit *each,
               void *context, struct error *err);

/* Returns the file offset of a value that LMDB has found. */
uint64_t store_offset(const struct store *store, const void *value);

/* As store_manifest, within a transaction. */
int store_manifest_in(struct store *store, MDB_txn *txn, int64_t step,
                      struct ckpt_manifest *manifest, struct error *err);

/* ---- in shards: manifests that were replaced by another of the same step ---- */

/* Stores the manifest of that step, if there is one, under its digest. */
int store_keep_replaced(struct store *store, MDB_txn *txn, int64_t step, struct error *err);
/* ERR_DATA: there is none. */
int store_find_replaced(struct store *store, MDB_txn *txn, const struct digest *digest,
                        struct ckpt_manifest *manifest, struct error *err);
/* Lists the digests under which replaced manifests are stored. */
typedef VEC(struct digest) digest_vec;
int store_replaced(struct store *store, digest_vec *digests, struct error *err);
int store_forget_replaced(struct store *store, const struct digest *digests, size_t n,
                          struct error *err);

/* Finds the file offset of the chunk of n bytes, valid as long as the transaction lives. ERR_DATA:
 * "is missing". The error does not start with the store's name. */
int store_find_chunk(struct store *store, MDB_txn *txn, const struct digest *digest, size_t n,
                     uint64_t *offset, struct error *err);

/* Copies a value from the file; the caller frees it. */
int store_read_value(struct store *store, const MDB_val *value, void **copy, struct error *err);

/* A commit that changes nothing. */
int store_commit_nothing(struct store *store, struct error *err);

/* Allocates LMDB's table of readers before the environment is opened: it is written through a map,
 * which on a full disk would raise a signal. */
int store_reserve_readers(struct store *store, struct error *err);

/* Makes LMDB open the environment `env`, whose data was already checked. */
int store_open_environment(struct store *store, unsigned flags, struct error *err);

/* Opens the files that are read and written without the map. */
int store_open_files(struct store *store, struct error *err);

/* repair.c: writes the meta pages of the last commit, if all that it refers to exists. Called
 * before the environment is opened. ERR_DATA: the commit is lost. */
int store_mend(struct store *store, struct error *err);

/* Ensures that a transaction can write `bytes` more; this process may have no live transaction.
 * `certainly`: does not rely on freed pages. ERR_IO: the disk is full. */
int store_reserve(struct store *store, uint64_t bytes, bool certainly, struct error *err);

#endif
