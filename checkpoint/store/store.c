/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/store/lock.h"
#include "checkpoint/store/store_private.h"

#define FORMAT "1"
#define DATA_FILE "data.mdb"
#define READERS 126

/* LMDB must not open a file twice in a process. */
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

bool store_exists(const char *path)
{
    struct str file = STR_INIT;
    struct stat status;
    str_printf(&file, "%s/" DATA_FILE, path);
    bool exists = !stat(file.data, &status);
    str_release(&file);
    return exists;
}

static int denied_or_io(int number)
{
    return number == EACCES || number == EPERM || number == EROFS ? ERR_DENIED : ERR_IO;
}

/* ---- opening ---- */

static char *folder_of(const char *path, const char *shard)
{
    struct str folder = STR_INIT;
    str_append(&folder, path);
    while (folder.n > 1 && folder.data[folder.n - 1] == '/')
        folder.data[--folder.n] = '\0';
    if (shard)
        str_printf(&folder, "/shards/%s", shard);
    return folder.data;
}

static int open_file(struct store *store, struct error *err)
{
    struct str file = STR_INIT;
    struct stat status;
    str_printf(&file, "%s/" DATA_FILE, store->folder);
    store->fd = open(file.data, (store->writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    int cause = errno;
    str_release(&file);
    if (store->fd < 0 && (cause == ENOENT || cause == ENOTDIR))
        return error_set(err, ERR_NOINPUT, "%s: no store there; tf-ckpt init makes one",
                         store->name);
    if (store->fd < 0 || fstat(store->fd, &status)) {
        errno = cause;
        return error_set_errno(err, denied_or_io(cause), "%s", store->name);
    }
    store->device = status.st_dev;
    store->inode = status.st_ino;
    return 0;
}

static struct store *find_opened(const struct store *like)
{
    struct store *s = opened;
    while (s && (s->device != like->device || s->inode != like->inode))
        s = s->next;
    return s;
}

/* The map is the file, all of it allocated: nothing can be written beyond, and nothing before can
 * find the disk full. */
static int size_map(struct store *store, struct error *err)
{
    struct stat status;
    if (fstat(store->fd, &status))
        return error_set_errno(err, ERR_IO, "%s", store->name);
    int failed = posix_fallocate(store->fd, 0, status.st_size);
    if (failed) {
        errno = failed;
        return error_set_errno(err, ERR_IO, "%s: allocating %lld bytes", store->name,
                               (long long)status.st_size);
    }
    return store_failed(store, mdb_env_set_mapsize(store->env, (size_t)status.st_size), "opening",
                        err);
}

static int create_environment(struct store *store, unsigned flags, struct error *err)
{
    int status = mdb_env_create(&store->env);
    if (!status)
        status = mdb_env_set_maxreaders(store->env, READERS);
    if (status)
        return store_failed(store, status, "opening", err);
    if (store->writes && size_map(store, err))
        return err->code;
    flags |= MDB_NOTLS | MDB_NORDAHEAD | (store->writes ? MDB_WRITEMAP : MDB_RDONLY);
    return store_failed(store, mdb_env_open(store->env, store->folder, flags, 0666), "opening",
                        err);
}

static int open_environment(struct store *store, struct error *err)
{
    int cleared;
    if (create_environment(store, 0, err) == ERR_DENIED && !store->writes) {
        mdb_env_close(store->env); /* readers cannot be announced in this folder */
        store->env = NULL;
        error_clear(err);
        create_environment(store, MDB_NOLOCK, err);
    }
    if (!err->code)
        mdb_reader_check(store->env, &cleared);
    return err->code;
}

/* A disk that cannot be read is no damage. */
static int blame_file(const struct store *store, struct error *err)
{
    return error_prefix(err, "%s: " DATA_FILE ": %s", store->name,
                        err->code == ERR_DATA ? "damaged: " : "");
}

/* Within a read transaction: its pages are not used again. Its meta page is, by the second commit
 * after it; so what looks damaged is looked at anew if something was committed. */
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
        if (pages_read_meta_of(store->fd, id, &meta, err) ||
            pages_check(store->fd, &meta, &store->pages, err))
            blame_file(store, err);
        store_abort(store, txn);
    } while (err->code == ERR_DATA && id != before);
    return err->code;
}

static int check_format(struct store *store, struct error *err)
{
    MDB_txn *txn;
    MDB_val key = {1, (void *)"f"}, value;
    if (store_begin(store, false, &txn, err))
        return err->code;
    int status = mdb_dbi_open(txn, NULL, 0, &store->dbi);
    if (!status)
        status = mdb_get(txn, store->dbi, &key, &value);
    if (status == MDB_NOTFOUND)
        error_set(err, ERR_DATA, "%s: is no store of checkpoints", store->name);
    else if (status)
        store_failed(store, status, "opening", err);
    else if (value.mv_size != strlen(FORMAT) || memcmp(value.mv_data, FORMAT, strlen(FORMAT)))
        error_set(err, ERR_PROTOCOL, "%s: its format is not " FORMAT ", which this program reads",
                  store->name);
    store_abort(store, txn);
    return err->code;
}

static int open_checked(struct store *store, struct error *err)
{
    struct pages_meta meta;
    if (pages_read_meta(store->fd, &meta, err))
        return blame_file(store, err);
    store->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    if (meta.page_bytes != store->page_bytes)
        return error_set(err, ERR_DATA, "%s: made for pages of %u bytes; this machine has %zu",
                         store->name, meta.page_bytes, store->page_bytes);
    if (open_environment(store, err) || check_pages(store, err))
        return err->code;
    return check_format(store, err);
}

static void destroy(struct store *store)
{
    if (store->env && !store->lost_map.code) /* it would unmap what is somebody else's by now */
        mdb_env_close(store->env);
    if (store->fd >= 0)
        close(store->fd);
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
    if (lock_take(file.data, options->owner ? options->owner : "tf-tools", options->lock_wait,
                  &store->lock_fd, err))
        error_prefix(err, "%s: ", store->name);
    str_release(&file);
    return err->code;
}

/* With opened_lock held. */
static int open_new(struct store *store, struct store **result, struct error *err)
{
    struct store *other = find_opened(store);
    if (other && store->writes)
        return error_set(err, ERR_RETRY, "%s: is in use by this process", store->name);
    if (other) {
        other->holders++;
        *result = other;
        destroy(store);
        return 0;
    }
    if (open_checked(store, err))
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
    struct store *store = mem_alloc(sizeof *store);
    store->lock_fd = -1;
    store->writes = options->write;
    store->folder = folder_of(path, options->shard);
    store->name = mem_strdup(store->folder);
    pthread_mutex_init(&store->map_lock, NULL);
    pthread_cond_init(&store->map_unused, NULL);
    if (options->write && options->shard && !store_exists(store->folder))
        store_create(store->folder, err);
    if (err->code || open_file(store, err) || (store->writes && take_lock(store, options, err))) {
        destroy(store);
        return err->code;
    }
    if (store->writes && options->make_way)
        options->make_way(options->context);
    pthread_mutex_lock(&opened_lock);
    int code = open_new(store, result, err);
    pthread_mutex_unlock(&opened_lock);
    if (code)
        destroy(store);
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
        destroy(store);
    }
    pthread_mutex_unlock(&opened_lock);
}

/* ---- making ---- */

static int make_folders(const char *path, struct error *err)
{
    char *copy = mem_strdup(path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST) {
            error_set_errno(err, denied_or_io(errno), "%s", copy);
            break;
        }
        *slash = '/';
    }
    mem_free(copy);
    return err->code;
}

static int fill_new(struct store *store, struct error *err)
{
    MDB_txn *txn = NULL;
    MDB_val key = {1, (void *)"f"}, value = {strlen(FORMAT), (void *)FORMAT};
    int status = mdb_env_create(&store->env);
    if (!status)
        status = mdb_env_open(store->env, store->folder, MDB_NOTLS, 0666);
    if (status)
        return store_failed(store, status, "making it", err);
    if (store_begin(store, true, &txn, err))
        return err->code;
    status = mdb_dbi_open(txn, NULL, 0, &store->dbi);
    if (!status)
        status = mdb_put(txn, store->dbi, &key, &value, 0);
    if (status) {
        store_failed(store, status, "making it", err);
        store_abort(store, txn);
        return err->code;
    }
    struct store_head head = {.step = -1};
    if (store_write_head(store, txn, &head, err)) {
        store_abort(store, txn);
        return err->code;
    }
    return store_commit(store, txn, err);
}

static void remove_new(const char *folder)
{
    static const char *const files[] = {"data.mdb", "lock.mdb"};
    struct str file = STR_INIT;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        str_clear(&file);
        str_printf(&file, "%s/%s", folder, files[i]);
        unlink(file.data);
    }
    str_release(&file);
    rmdir(folder);
}

static void sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static int move_new(const char *temporary, const char *folder, struct error *err)
{
    struct str parent = STR_INIT;
    sync_folder(temporary);
    if (rename(temporary, folder)) {
        if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
            return error_set(err, ERR_USAGE, "%s: is there already, and no store", folder);
        return error_set_errno(err, denied_or_io(errno), "%s", folder);
    }
    str_printf(&parent, "%s/..", folder);
    sync_folder(parent.data);
    str_release(&parent);
    return 0;
}

/* Under a temporary name first: a store is there whole or not at all. */
int store_create(const char *path, struct error *err)
{
    static atomic_int made; /* two threads do not meet in one temporary folder */
    struct str temporary = STR_INIT;
    error_clear(err);
    char *folder = folder_of(path, NULL);
    if (store_exists(folder)) {
        error_set(err, ERR_USAGE, "%s: is a store already", folder);
    } else if (!make_folders(folder, err)) {
        str_printf(&temporary, "%s.%ld-%d.tmp", folder, (long)getpid(), atomic_fetch_add(&made, 1));
        struct store new = {.name = folder,
                            .folder = temporary.data,
                            .fd = -1,
                            .lock_fd = -1,
                            .map_lock = PTHREAD_MUTEX_INITIALIZER,
                            .map_unused = PTHREAD_COND_INITIALIZER};
        if (mkdir(temporary.data, 0777) && errno != EEXIST)
            error_set_errno(err, denied_or_io(errno), "%s", folder);
        else
            fill_new(&new, err);
        if (new.env)
            mdb_env_close(new.env);
        if (!err->code)
            move_new(temporary.data, folder, err);
        if (err->code)
            remove_new(temporary.data);
    }
    str_release(&temporary);
    mem_free(folder);
    return err->code;
}
