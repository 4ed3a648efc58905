/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "checkpoint/store/committed.h"
#include "checkpoint/store/lock.h"
#include "checkpoint/store/store_private.h"

#define READERS 126
#define READERS_BYTES 8192 /* LMDB's size of their table */

/* LMDB must not open a file twice in one process. */
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct store *opened;

const char *store_name(const struct store *store)
{
    return store->name;
}

const struct pages_count *store_pages(const struct store *store)
{
    return &store->pages;
}

const struct error *store_rolled_back(const struct store *store)
{
    return &store->rolled_back;
}

bool store_exists(const char *path)
{
    struct str file = STR_INIT;
    struct stat status;
    str_printf(&file, "%s/" STORE_DATA_FILE, path);
    bool exists = !stat(file.data, &status);
    str_release(&file);
    return exists;
}

/* ---- opening ---- */

int store_check_whole(const char *path, struct error *err)
{
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    error_clear(err);
    for (bool in_shards = false; slash && !in_shards; slash = strrchr(real, '/')) {
        in_shards = !strcmp(slash, "/shards");
        *slash = '\0';
        if (in_shards && store_exists(real))
            error_set(err, ERR_USAGE, "%s: is a part of %s, which is to be named", path, real);
    }
    free(real);
    return err->code;
}

char *store_folder_of(const char *path, const char *shard)
{
    struct str folder = STR_INIT;
    str_append(&folder, path);
    while (folder.n > 1 && folder.data[folder.n - 1] == '/')
        folder.data[--folder.n] = '\0';
    if (shard)
        str_printf(&folder, "/shards/%s", shard);
    return folder.data;
}

int store_open_files(struct store *store, struct error *err)
{
    struct str file = STR_INIT;
    struct stat status;
    str_printf(&file, "%s/" STORE_DATA_FILE, store->folder);
    store->fd = open(file.data, (store->writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    int cause = store->fd < 0 || fstat(store->fd, &status) ? errno : 0;
    str_release(&file);
    if (store->fd < 0 && (cause == ENOENT || cause == ENOTDIR))
        return error_set(err, ERR_NOINPUT, "%s: no store there; tf-ckpt init makes one",
                         store->name);
    if (cause) {
        errno = cause;
        return error_set_errno(err, store_errno_code(cause), "%s", store->name);
    }
    store->device = status.st_dev;
    store->inode = status.st_ino;
    /* A reader works without files that it may not read. */
    struct error failed = ERROR_INIT;
    if (committed_open(store->folder, store->writes, &store->committed_fd, &failed) &&
        (store->writes || failed.code != ERR_DENIED)) {
        *err = failed;
        return error_prefix(err, "%s: ", store->name);
    }
    return 0;
}

int store_reserve_readers(struct store *store, struct error *err)
{
    struct str file = STR_INIT;
    struct stat status;
    str_printf(&file, "%s/" STORE_READERS_FILE, store->folder);
    bool is_there = !stat(file.data, &status) && status.st_size >= READERS_BYTES &&
                    (int64_t)status.st_blocks * 512 >= READERS_BYTES;
    int fd = is_there ? -1 : open(file.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int failed = fd >= 0 ? posix_fallocate(fd, 0, READERS_BYTES) : is_there ? 0 : errno;
    close_if_open(fd);
    str_release(&file);
    if (!failed)
        return 0;
    errno = failed;
    return error_set_errno(err, store_errno_code(failed), "%s: " STORE_READERS_FILE, store->name);
}

/* An unreadable disk does not count as damage. */
static int blame_file(const struct store *store, struct error *err)
{
    return error_prefix(err, "%s: " STORE_DATA_FILE ": %s", store->name,
                        err->code == ERR_DATA ? "damaged: " : "");
}

int store_open_environment(struct store *store, unsigned flags, struct error *err)
{
    int status = mdb_env_open(store->env, store->folder, flags, 0666);
    if (status == MDB_INVALID) {
        /* LMDB returns the same error for both of its files. The data was sound, or new, before
         * that, and may have been truncated since. */
        struct pages_meta meta;
        if (store->fd >= 0 && pages_read_meta(store->fd, PAGES_NONE, &meta, err))
            return blame_file(store, err);
        return error_set(err, ERR_IO, "%s: " STORE_READERS_FILE ": is no table of readers",
                         store->name);
    }
    return store_failed(store, status, "opening", err);
}

static int create_environment(struct store *store, unsigned flags, struct error *err)
{
    int status = mdb_env_create(&store->env);
    if (!status)
        status = mdb_env_set_maxreaders(store->env, READERS);
    if (status)
        return store_failed(store, status, "opening", err);
    /* The map has the size of the file, which is allocated in full: nothing can be written beyond
     * it, and no write within it can find the disk full. */
    struct stat file;
    if (store->writes && fstat(store->fd, &file))
        return error_set_errno(err, ERR_IO, "%s", store->name);
    if (store->writes && (errno = posix_fallocate(store->fd, 0, file.st_size)))
        return error_set_errno(err, ERR_IO, "%s: allocating %lld bytes", store->name,
                               (long long)file.st_size);
    if (store->writes)
        status = mdb_env_set_mapsize(store->env, (size_t)file.st_size);
    if (store_failed(store, status, "opening", err))
        return err->code;
    if (!(flags & MDB_NOLOCK) && store_reserve_readers(store, err))
        return err->code;
    flags |= MDB_NOTLS | MDB_NORDAHEAD | (store->writes ? MDB_WRITEMAP : MDB_RDONLY);
    return store_open_environment(store, flags, err);
}

/* Runs within a read transaction, whose pages are not reused. Its meta page is, by the second
 * commit after it; so if damage is found, the check is repeated if something was committed. */
static int check_pages(struct store *store, struct error *err)
{
    uint64_t before, id = 0;
    struct pages_meta meta;
    MDB_txn *txn;
    do {
        error_clear(err);
        if (store_begin(store, false, &txn, err))
            return err->code;
        before = id, id = mdb_txn_id(txn);
        if (pages_read_meta(store->fd, id, &meta, err) ||
            pages_check(store->fd, &meta, &store->pages, err))
            blame_file(store, err);
        store_abort(store, txn);
    } while (err->code == ERR_DATA && id != before);
    return err->code;
}

/* Checks that the newest commit that LMDB finds is the last one made. The note was read before the
 * transaction began, as a writer may be at work. */
static int check_commit(struct store *store, MDB_txn *txn, const struct commit_note *last,
                        struct error *err)
{
    MDB_val key = {1, (void *)"n"}, value;
    uint64_t number = mdb_txn_id(txn), own = number;
    struct store_head head;
    if (!mdb_get(txn, store->dbi, &key, &value) && value.mv_size == sizeof own)
        memcpy(&own, value.mv_data, sizeof own);
    if (store_read_head(store, txn, &head, err))
        return err->code;
    bool is_last = !last || last->txn < number ||
                   (last->txn == number && last->head.sequence == head.sequence &&
                    digest_equal(&last->head.manifest, &head.manifest));
    if (own == number && is_last)
        return 0;
    error_set(&store->rolled_back, ERR_DATA, "%s: went back to commit %llu, step %lld", store->name,
              (unsigned long long)own, (long long)head.step);
    if (last) {
        size_t used = strlen(store->rolled_back.text);
        snprintf(store->rolled_back.text + used, sizeof store->rolled_back.text - used,
                 "; the last one was %llu, step %lld; tf-ckpt repair mends it",
                 (unsigned long long)last->txn, (long long)last->head.step);
    }
    return 0;
}

struct store *store_new(const char *name, const char *folder, bool writes)
{
    struct store *store = mem_alloc(sizeof *store);
    store->name = mem_strdup(name);
    store->folder = mem_strdup(folder);
    store->fd = store->lock_fd = store->committed_fd = -1;
    store->writes = writes;
    store->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_init(&store->map_lock, NULL);
    pthread_cond_init(&store->map_unused, NULL);
    return store;
}

void store_free(struct store *store)
{
    if (store->env && !store->lost_map.code) /* it would unmap memory reused by others */
        mdb_env_close(store->env);
    close_if_open(store->fd);
    close_if_open(store->committed_fd);
    lock_release(store->lock_fd);
    pthread_cond_destroy(&store->map_unused);
    pthread_mutex_destroy(&store->map_lock);
    mem_free(store->name);
    mem_free(store->folder);
    mem_free(store);
}

static int take_lock(struct store *store, const struct store_options *options, struct error *err)
{
    struct str file = STR_INIT;
    str_printf(&file, "%s/writer.lock", store->folder);
    const struct lock_request request = {.path = file.data,
                                         .data_fd = store->fd,
                                         .name = store->name,
                                         .cancelled = options->cancelled,
                                         .owner = options->owner ? options->owner : "tf-tools",
                                         .seconds = options->lock_wait};
    if (lock_take(&request, &store->lock_fd, err))
        error_prefix(err, "%s: ", store->name);
    str_release(&file);
    return err->code;
}

/* Called with opened_lock held. */
static int open_new(struct store *store, struct store **result, struct error *err)
{
    struct store *other = opened;
    while (other && (other->device != store->device || other->inode != store->inode))
        other = other->next;
    if (other && store->writes)
        return error_set(err, ERR_RETRY, "%s: is in use by this process", store->name);
    if (other) {
        other->holders++;
        *result = other;
        store_free(store);
        return 0;
    }
    struct pages_meta meta;
    struct commit_note last;
    if (store->repairs == STORE_MENDS && store_mend(store, err))
        return err->code;
    bool has_last;
    if (committed_read(store->committed_fd, &last, &has_last, err))
        return error_prefix(err, "%s: ", store->name);
    if (pages_read_meta(store->fd, PAGES_NONE, &meta, err))
        return blame_file(store, err);
    if (meta.page_bytes != store->page_bytes)
        return error_set(err, ERR_DATA, "%s: made for pages of %u bytes; this machine has %zu",
                         store->name, meta.page_bytes, store->page_bytes);
    int cleared;
    if (create_environment(store, 0, err) == ERR_DENIED && !store->writes) {
        mdb_env_close(store->env); /* readers cannot register in this folder */
        store->env = NULL;
        error_clear(err);
        create_environment(store, MDB_NOLOCK, err);
    }
    if (!err->code)
        mdb_reader_check(store->env, &cleared);
    if (err->code || check_pages(store, err))
        return err->code;
    MDB_txn *txn;
    if (store_begin(store, false, &txn, err))
        return err->code;
    MDB_val key = {1, (void *)"f"}, value;
    int status = mdb_dbi_open(txn, NULL, 0, &store->dbi);
    if (!status)
        status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND)
        error_set(err, ERR_DATA, "%s: is no store of checkpoints", store->name);
    else if (status)
        store_failed(store, status, "opening", err);
    else if (value.mv_size != strlen(STORE_FORMAT) ||
             memcmp(value.mv_data, STORE_FORMAT, strlen(STORE_FORMAT)))
        error_set(err, ERR_PROTOCOL,
                  "%s: its format is not " STORE_FORMAT ", which this program reads", store->name);
    if (!err->code)
        check_commit(store, txn, has_last ? &last : NULL, err);
    store_abort(store, txn);
    if (err->code)
        return err->code;
    if (store->writes && store->repairs == STORE_SOUND)
        *err = store->rolled_back;
    if (err->code)
        return err->code;
    store->holders = 1;
    store->next = opened;
    opened = store;
    *result = store;
    return 0;
}

int store_open(const char *path, const struct store_options *options, struct store **result,
               struct error *err)
{
    const struct store_options reading = {0};
    if (!options)
        options = &reading;
    error_clear(err);
    bool is_own = !options->write || options->shard || options->repairs != STORE_SOUND;
    if (!is_own && store_check_whole(path, err))
        return err->code;
    char *folder = store_folder_of(path, options->shard);
    struct store *store = store_new(folder, folder, options->write);
    store->repairs = options->repairs;
    mem_free(folder);
    if (options->write && options->shard)
        store_ensure(store->folder, err);
    if (err->code || store_open_files(store, err) ||
        (store->writes && take_lock(store, options, err))) {
        store_free(store);
        return err->code;
    }
    if (store->writes && options->make_way)
        options->make_way(options->context);
    pthread_mutex_lock(&opened_lock);
    int code = open_new(store, result, err);
    pthread_mutex_unlock(&opened_lock);
    if (code)
        store_free(store);
    return code;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    pthread_mutex_lock(&opened_lock);
    bool last = !--store->holders;
    struct store **link = &opened;
    while (last && *link != store)
        link = &(*link)->next;
    if (last) {
        *link = store->next;
        store_free(store);
    }
    pthread_mutex_unlock(&opened_lock);
}
