/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/store_private.h"

#define GROWTH ((uint64_t)1 << 20)
_Static_assert(sizeof(struct store_head) == 8 + 8 + DIGEST_BYTES, "a head is stored as it is");

/* ---- errors ---- */

int store_errno_code(int number)
{
    if (number == ENOMEM || number == EMFILE || number == ENFILE || number == EAGAIN)
        return ERR_OS;
    return number == EACCES || number == EPERM || number == EROFS ? ERR_DENIED : ERR_IO;
}

int store_failed(const struct store *store, int status, const char *what, struct error *err)
{
    if (!status)
        return 0;
    int code = status == MDB_READERS_FULL       ? ERR_RETRY
               : status == MDB_VERSION_MISMATCH ? ERR_PROTOCOL
               : status > 0                     ? store_errno_code(status)
                                                : ERR_DATA;
    return error_set(err, code, "%s: %s: %s", store->name, what, mdb_strerror(status));
}

/* ---- transactions ---- */

/* Keeps the map in place until unuse_map, which another thread may call: a checkpoint may be closed
 * by a thread that did not open it. Fails if there is no map. */
static int use_map(struct store *store, struct error *err)
{
    pthread_mutex_lock(&store->map_lock);
    int code = store->lost_map.code;
    if (code)
        *err = store->lost_map;
    else
        store->map_users++;
    pthread_mutex_unlock(&store->map_lock);
    return code;
}

static void unuse_map(struct store *store)
{
    pthread_mutex_lock(&store->map_lock);
    if (!--store->map_users)
        pthread_cond_broadcast(&store->map_unused);
    pthread_mutex_unlock(&store->map_lock);
}

/* Waits until nobody uses the map, and resizes it. 0: to the size of the file. */
static int resize_map(struct store *store, uint64_t bytes)
{
    pthread_mutex_lock(&store->map_lock);
    while (store->map_users)
        pthread_cond_wait(&store->map_unused, &store->map_lock);
    int status = mdb_env_set_mapsize(store->env, (size_t)bytes);
    store_failed(store, status, "mapping", &store->lost_map);
    pthread_mutex_unlock(&store->map_lock);
    return status;
}

int store_begin(struct store *store, bool write, MDB_txn **txn, struct error *err)
{
    for (;;) {
        if (use_map(store, err))
            return err->code;
        int cleared;
        if (write)
            mdb_reader_check(store->env, &cleared);
        int status = mdb_txn_begin(store->env, NULL, write ? 0 : MDB_RDONLY, txn);
        if (status == MDB_READERS_FULL) { /* some readers may be dead */
            mdb_reader_check(store->env, &cleared);
            status = mdb_txn_begin(store->env, NULL, MDB_RDONLY, txn);
        }
        if (!status)
            return 0;
        unuse_map(store);
        if (status == MDB_MAP_RESIZED) /* another process has made it larger */
            status = resize_map(store, 0);
        if (status)
            return store_failed(store, status, "starting a transaction", err);
    }
}

int store_commit(struct store *store, MDB_txn *txn, struct error *err)
{
    struct commit_note committed;
    /* The commit's number, read from the tree itself, and its head. */
    committed.txn = txn ? mdb_txn_id(txn) : 0;
    MDB_val key = {1, (void *)"n"}, value = {sizeof committed.txn, &committed.txn};
    if (!err->code && !store_read_head(store, txn, &committed.head, err))
        store_failed(store, mdb_put(txn, store->dbi, &key, &value, 0), "writing", err);
    if (err->code) {
        store_abort(store, txn);
        return err->code;
    }
    int status = mdb_txn_commit(txn);
    unuse_map(store);
    if (status)
        return store_failed(store, status, "committing", err);
    /* The commit is done. If noting it fails, or the process is killed before, the note is one
     * commit behind. */
    if (pages_read(store->fd, committed.meta, sizeof committed.meta,
                   committed.txn % 2 * store->page_bytes, err) ||
        committed_write(store->committed_fd, &committed, err))
        return error_prefix(err, "%s: ", store->name);
    return 0;
}

void store_abort(struct store *store, MDB_txn *txn)
{
    if (!txn)
        return;
    mdb_txn_abort(txn);
    unuse_map(store);
}

/* ---- keys and values ---- */

MDB_val store_step_key(uint8_t key[STEP_KEY_BYTES], int64_t step)
{
    key[0] = (uint8_t)store_step_keys.letter;
    for (int i = 0; i < 8; i++)
        key[1 + i] = (uint8_t)((uint64_t)step >> (56 - 8 * i));
    return (MDB_val){STEP_KEY_BYTES, key};
}

static MDB_val digest_key(char kind, uint8_t key[CHUNK_KEY_BYTES], const struct digest *digest)
{
    key[0] = (uint8_t)kind;
    memcpy(key + 1, digest->bytes, DIGEST_BYTES);
    return (MDB_val){CHUNK_KEY_BYTES, key};
}

MDB_val store_replaced_key(uint8_t key[CHUNK_KEY_BYTES], const struct digest *digest)
{
    return digest_key(store_replaced_keys.letter, key, digest);
}

MDB_val store_chunk_key(uint8_t key[CHUNK_KEY_BYTES], const struct digest *digest)
{
    return digest_key('c', key, digest);
}

/* Each page, and each run of pages, begins with its number; a value that LMDB returns begins in the
 * first page of a run. */
uint64_t store_offset(const struct store *store, const void *value)
{
    size_t in_page = (uintptr_t)value % store->page_bytes;
    return page_u64((const uint8_t *)value - in_page) * store->page_bytes + in_page;
}

int store_read_value(struct store *store, const MDB_val *value, void **copy, struct error *err)
{
    *copy = mem_try(value->mv_size);
    if (!*copy)
        return error_set(err, ERR_OS, "%s: no memory for %zu bytes", store->name, value->mv_size);
    if (pages_read(store->fd, *copy, value->mv_size, store_offset(store, value->mv_data), err)) {
        mem_free(*copy);
        return error_prefix(err, "%s: ", store->name);
    }
    return 0;
}

int store_read_head(struct store *store, MDB_txn *txn, struct store_head *head, struct error *err)
{
    MDB_val key = {1, (void *)"h"}, value;
    int status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND || (!status && value.mv_size != sizeof *head))
        return error_set(err, ERR_DATA, "%s: damaged: it has no head", store->name);
    if (status)
        return store_failed(store, status, "reading", err);
    memcpy(head, value.mv_data, sizeof *head);
    if (head->sequence < 0 || head->sequence == INT64_MAX || head->step < -1)
        return error_set(err, ERR_DATA, "%s: damaged: its head", store->name);
    return 0;
}

int store_write_head(struct store *store, MDB_txn *txn, const struct store_head *head,
                     struct error *err)
{
    MDB_val key = {1, (void *)"h"}, value = {sizeof *head, (void *)(uintptr_t)head};
    return store_failed(store, mdb_put(txn, store->dbi, &key, &value, 0), "writing", err);
}

/* ---- space ---- */

struct free_pages {
    uint64_t usable, young; /* young: freed by the last commit, usable after the next */
};

static int count_free(struct store *store, struct free_pages *pages, struct error *err)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    *pages = (struct free_pages){0};
    if (store_begin(store, false, &txn, err))
        return err->code;
    int status = mdb_cursor_open(txn, 0, &cursor);
    if (!status) {
        while (!(status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
            *(page_u64(key.mv_data) < mdb_txn_id(txn) ? &pages->usable : &pages->young) +=
                page_u64(value.mv_data);
        mdb_cursor_close(cursor);
    }
    store_abort(store, txn);
    return status == MDB_NOTFOUND ? 0 : store_failed(store, status, "reading", err);
}

int store_commit_nothing(struct store *store, struct error *err)
{
    struct store_head head;
    MDB_txn *txn;
    if (store_begin(store, true, &txn, err))
        return err->code;
    if (!store_read_head(store, txn, &head, err))
        store_write_head(store, txn, &head, err);
    return store_commit(store, txn, err);
}

/* Returns whether the free pages suffice. They are scattered: not every run can hold a chunk. After
 * an empty commit, pages freed by the commit before it can be used. */
static bool free_pages_suffice(struct store *store, uint64_t bytes)
{
    struct free_pages pages;
    struct error ignored = ERROR_INIT;
    uint64_t wanted = bytes / store->page_bytes / 7 * 8 + 8;
    if (count_free(store, &pages, &ignored))
        return false;
    return pages.usable >= wanted ||
           (pages.usable + pages.young >= wanted && !store_commit_nothing(store, &ignored));
}

int store_reserve(struct store *store, uint64_t bytes, bool certainly, struct error *err)
{
    MDB_envinfo info;
    if (use_map(store, err))
        return err->code;
    mdb_env_info(store->env, &info);
    unuse_map(store);
    uint64_t used = (info.me_last_pgno + 1) * store->page_bytes, map = info.me_mapsize;
    uint64_t tail = map > used ? map - used : 0;
    if (tail >= bytes || (!certainly && free_pages_suffice(store, bytes - tail)))
        return 0;
    uint64_t new = (map + (bytes - tail) + GROWTH - 1) / GROWTH *GROWTH;
    int failed;
    do
        failed = posix_fallocate(store->fd, (off_t)map, (off_t)(new - map));
    while (failed == EINTR);
    if (failed) {
        if (ftruncate(store->fd, (off_t)map)) /* frees what was allocated */
            failed = failed ? failed : errno;
        errno = failed;
        return error_set_errno(err, ERR_IO, "%s: %llu more bytes are needed", store->name,
                               (unsigned long long)(new - map));
    }
    return store_failed(store, resize_map(store, new), "mapping", err);
}
