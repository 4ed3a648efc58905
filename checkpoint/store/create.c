/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating a store. It is filled under a temporary name and then renamed, so that it exists
 * completely or not at all. If the folder already exists, perhaps as a mount point that cannot be
 * renamed, the files are moved into it instead, data.mdb last: that file makes it a store.
 *
 * The creator holds a kernel lock on the temporary folder. A temporary folder without a lock was
 * left by a process that was killed, and is removed.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/patience.h"
#include "checkpoint/store/committed.h"
#include "checkpoint/store/store_private.h"

#define INSIDE "new" /* name of temporary folders in an existing folder */

/* The files of a store, in order of moving, and with the file that LMDB adds. */
static const char *const files[] = {COMMITTED_FILE, STORE_DATA_FILE};
static const char *const all_files[] = {COMMITTED_FILE, STORE_DATA_FILE, STORE_READERS_FILE};

struct creation {
    const char *folder; /* of the store */
    char *place;        /* the parent of the temporary folder: the store's, or the store */
    char *prefix;       /* temporary folders are named PREFIX.PID-N.tmp */
    bool is_inside;
    struct str temporary;
    int lock; /* on the temporary folder */
};

/* ---- folders ---- */

static int make_folders(const char *path, struct error *err)
{
    char *copy = mem_strdup(path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST) {
            error_set_errno(err, store_errno_code(errno), "%s", copy);
            break;
        }
        *slash = '/';
    }
    mem_free(copy);
    return err->code;
}

static void remove_new(const char *folder)
{
    struct str file = STR_INIT;
    for (size_t i = 0; i < sizeof all_files / sizeof *all_files; i++) {
        str_clear(&file);
        str_printf(&file, "%s/%s", folder, all_files[i]);
        unlink(file.data);
    }
    str_release(&file);
    rmdir(folder);
}

static bool is_temporary(const struct creation *c, const char *name)
{
    size_t n = strlen(c->prefix);
    if (strncmp(name, c->prefix, n) != 0 || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
        return false;
    const char *rest = name + n + 1 + strspn(name + n + 1, "0123456789-");
    return !strcmp(rest, ".tmp");
}

/* ---- the temporary folder ---- */

static bool lock_folder(struct creation *c, struct error *err)
{
    c->lock = open(c->temporary.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Another process that cleans up may remove a new folder before it is locked; then another is
     * created. */
    struct stat held, named;
    if (c->lock >= 0 && !patience_lock(c->lock, c->temporary.data, err) && !fstat(c->lock, &held) &&
        !stat(c->temporary.data, &named) && held.st_dev == named.st_dev &&
        held.st_ino == named.st_ino)
        return true;
    close_if_open(c->lock);
    c->lock = -1;
    return false;
}

/* ---- what is in it ---- */

static int fill_new(struct store *store, struct error *err)
{
    MDB_txn *txn = NULL;
    if (store_reserve_readers(store, err))
        return err->code;
    int status = mdb_env_create(&store->env);
    if (status)
        return store_failed(store, status, "making it", err);
    if (store_open_environment(store, MDB_NOTLS, err) || store_open_files(store, err) ||
        store_begin(store, true, &txn, err))
        return err->code;
    MDB_val key = {1, (void *)"f"}, value = {strlen(STORE_FORMAT), (void *)STORE_FORMAT};
    const struct store_head head = {.step = -1};
    status = mdb_dbi_open(txn, NULL, 0, &store->dbi);
    if (!status)
        status = mdb_put(txn, store->dbi, &key, &value, 0);
    if (!store_failed(store, status, "making it", err))
        store_write_head(store, txn, &head, err);
    return store_commit(store, txn, err);
}

/* ---- its name ---- */

/* Only one creator at a time: a second one finds a store. */
static int move_files(const struct creation *c, struct error *err)
{
    int place = open(c->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0)
        error_set_errno(err, store_errno_code(errno), "%s", c->folder);
    else if (!patience_lock(place, c->folder, err) && store_exists(c->folder))
        error_set(err, ERR_USAGE, "%s: is a store already", c->folder);
    for (size_t i = 0; i < sizeof files / sizeof *files && !err->code; i++) {
        struct str from = STR_INIT, to = STR_INIT;
        str_printf(&from, "%s/%s", c->temporary.data, files[i]);
        str_printf(&to, "%s/%s", c->folder, files[i]);
        if (rename(from.data, to.data))
            error_set_errno(err, store_errno_code(errno), "%s", c->folder);
        else
            file_sync_folder(c->place);
        str_release(&from);
        str_release(&to);
    }
    close_if_open(place);
    return err->code;
}

/* ---- all of it ---- */

static int create(struct creation *c, struct error *err)
{
    static atomic_int made; /* gives each thread a temporary folder of its own */
    struct str other = STR_INIT;
    struct stat status;
    char *slash = strrchr(c->folder, '/');
    c->is_inside = !stat(c->folder, &status);
    if (c->is_inside && !S_ISDIR(status.st_mode))
        return error_set(err, ERR_USAGE, "%s: is there already, and no store", c->folder);
    c->place = c->is_inside ? mem_strdup(c->folder)
               : slash      ? mem_strndup(c->folder, (size_t)(slash - c->folder))
                            : mem_strdup(".");
    c->prefix = mem_strdup(c->is_inside ? INSIDE : slash ? slash + 1 : c->folder);
    /* removes what was left there; `other` gets the name of anything else */
    struct dirent *entry;
    DIR *place = opendir(c->place);
    while (place && (entry = readdir(place))) {
        struct str path = STR_INIT;
        str_printf(&path, "%s/%s", c->place, entry->d_name);
        if (is_temporary(c, entry->d_name)) { /* if locked, its creator lives */
            int fd = open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
                remove_new(path.data);
            close_if_open(fd);
        } else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                   strcmp(entry->d_name, "lost+found") != 0 &&
                   strcmp(entry->d_name, COMMITTED_FILE) != 0 && !other.n) {
            str_append(&other, entry->d_name);
        }
        str_release(&path);
    }
    if (place)
        closedir(place);
    if (c->is_inside && other.n)
        error_set(err, ERR_USAGE, "%s: is there already, and no store", c->folder);
    str_release(&other);
    if (err->code)
        return err->code;
    do {
        str_clear(&c->temporary);
        str_printf(&c->temporary, "%s/%s.%ld-%d.tmp", c->place, c->prefix, (long)getpid(),
                   atomic_fetch_add(&made, 1));
        if (mkdir(c->temporary.data, 0777) && errno != EEXIST)
            return error_set_errno(err, store_errno_code(errno), "%s", c->folder);
    } while (!lock_folder(c, err) && !err->code);
    if (err->code)
        return err->code;
    struct store *new = store_new(c->folder, c->temporary.data, true);
    fill_new(new, err);
    store_free(new);
    if (err->code)
        return err->code;
    file_sync_folder(c->temporary.data);
    if (c->is_inside)
        return move_files(c, err);
    if (!rename(c->temporary.data, c->folder))
        file_sync_folder(c->place);
    else if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
        error_set(err, ERR_USAGE, "%s: is there already, and no store", c->folder);
    else
        error_set_errno(err, store_errno_code(errno), "%s", c->folder);
    return err->code;
}

static int check_writable(const char *path, struct error *err)
{
    struct stat is;
    if (!stat(path, &is) && !S_ISDIR(is.st_mode))
        errno = ENOTDIR;
    else if (!faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
        return 0;
    bool is_missing = errno == ENOENT || errno == ENOTDIR;
    return error_set_errno(err, is_missing ? ERR_NOINPUT : store_errno_code(errno), "%s", path);
}

/* Folders like /proc claim to be writable, but no file can be created. The probe has the name of a
 * store's temporary folder, which other creators ignore, and remove if it was left. */
static int check_takes(const char *path, struct error *err)
{
    struct str probe = STR_INIT;
    str_printf(&probe, "%s/" INSIDE ".%ld.tmp", path, (long)getpid());
    if (mkdir(str_text(&probe), 0700) && errno != EEXIST)
        error_set_errno(err, store_errno_code(errno), "%s: nothing can be made there", path);
    else
        rmdir(str_text(&probe));
    str_release(&probe);
    return err->code;
}

int store_check_place(const char *path, struct error *err)
{
    char *folder = store_folder_of(path, NULL);
    char *slash = access(folder, F_OK) ? strrchr(folder, '/') : folder + strlen(folder);
    const char *place = !slash ? "." : slash == folder ? "/" : folder;
    bool is_store = store_exists(folder);
    if (slash)
        *slash = '\0';
    if (!store_check_whole(place, err) && !check_writable(place, err) && !is_store)
        check_takes(place, err);
    mem_free(folder);
    return err->code;
}

int store_create(const char *path, struct error *err)
{
    error_clear(err);
    char *folder = store_folder_of(path, NULL);
    struct creation creation = {.folder = folder, .lock = -1};
    if (store_exists(folder)) {
        error_set(err, ERR_USAGE, "%s: is a store already", folder);
    } else if (!make_folders(folder, err)) {
        create(&creation, err);
        if (creation.temporary.n && (creation.is_inside || err->code))
            remove_new(creation.temporary.data);
        close_if_open(creation.lock);
        str_release(&creation.temporary);
        mem_free(creation.place);
        mem_free(creation.prefix);
    }
    mem_free(folder);
    return err->code;
}

int store_ensure(const char *path, struct error *err)
{
    error_clear(err);
    if (!store_exists(path) && store_create(path, err) && store_exists(path))
        error_clear(err);
    return err->code;
}
