/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/saves.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "ps/durable.h"

#define PART ".part"

static char *path_of(const char *folder, int64_t step, const char *ending)
{
    struct str path = STR_INIT;
    str_printf(&path, "%s/%" PRId64 "%s", folder, step, ending);
    return path.data;
}

/* ---- removing ---- */

/* A folder of files, its manifest first, so that what is left is no checkpoint. Best effort. */
static void remove_folder(const char *path)
{
    DIR *all = opendir(path);
    struct dirent *entry;
    if (!all)
        return;
    unlinkat(dirfd(all), "manifest", 0);
    while ((entry = readdir(all)))
        unlinkat(dirfd(all), entry->d_name, 0);
    closedir(all);
    rmdir(path);
}

void saves_abandon(const char *part)
{
    remove_folder(part);
}

/* ---- what is there ---- */

typedef VEC(int64_t) step_vec;

/* "300" or "300.part"; -1: something else. */
static int64_t step_of(const char *name, const char *ending)
{
    char number[32];
    int64_t step;
    size_t n = strlen(name), tail = strlen(ending);
    if (n <= tail || n - tail >= sizeof number || strcmp(name + n - tail, ending))
        return -1;
    memcpy(number, name, n - tail);
    number[n - tail] = 0;
    return *number >= '0' && *number <= '9' && str_to_int64(number, &step) ? step : -1;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static int list(const char *folder, const char *ending, step_vec *steps, struct error *err)
{
    DIR *all = opendir(folder);
    struct dirent *entry;
    if (!all)
        return error_set_errno(err, errno == ENOENT ? ERR_NOINPUT : ERR_IO, "%s", folder);
    while ((entry = readdir(all)))
        if (step_of(entry->d_name, ending) >= 0)
            vec_push(steps, step_of(entry->d_name, ending));
    closedir(all);
    if (steps->n)
        qsort(steps->items, steps->n, sizeof *steps->items, newest_first);
    return 0;
}

static void remove_all(const char *folder, const char *ending, size_t but)
{
    struct error ignored = ERROR_INIT;
    step_vec steps = VEC_INIT;
    list(folder, ending, &steps, &ignored);
    for (size_t i = but; i < steps.n; i++) {
        char *path = path_of(folder, steps.items[i], ending);
        remove_folder(path);
        mem_free(path);
    }
    vec_release(&steps);
}

/* ---- saving ---- */

int saves_open(struct saves *saves, const char *folder, struct error *err)
{
    if (mkdir(folder, 0777) && errno != EEXIST)
        return durable_fail(folder, err);
    *saves = (struct saves){.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (saves->fd < 0)
        return durable_fail(folder, err);
    if (flock(saves->fd, LOCK_EX | LOCK_NB)) {
        int code = errno == EWOULDBLOCK
                       ? error_set(err, ERR_RETRY, "%s: another process saves there", folder)
                       : durable_fail(folder, err);
        close(saves->fd);
        return code;
    }
    saves->folder = mem_strdup(folder);
    remove_all(folder, PART, 0);
    return 0;
}

void saves_close(struct saves *saves)
{
    if (!saves->folder)
        return;
    close(saves->fd);
    mem_free(saves->folder);
    saves->folder = NULL;
}

int saves_begin(struct saves *saves, int64_t step, char **part, struct error *err)
{
    *part = path_of(saves->folder, step, PART);
    remove_folder(*part);
    if (!mkdir(*part, 0777))
        return 0;
    durable_fail(*part, err);
    mem_free(*part);
    *part = NULL;
    return err->code;
}

/* Where an older checkpoint of the step has the name the two change places in one move. A file
 * system that cannot do so loses the older one first; those of other steps are still there. */
static int give_name(const char *part, const char *path, struct error *err)
{
    if (!rename(part, path))
        return 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return durable_fail(path, err);
    if (!renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_EXCHANGE)) {
        remove_folder(part);
        return 0;
    }
    remove_folder(path);
    return rename(part, path) ? durable_fail(path, err) : 0;
}

int saves_commit(struct saves *saves, const char *part, struct manifest *manifest, int keep,
                 struct error *err)
{
    int code = manifest_write(manifest, part, err);
    if (code)
        return code;
    char *path = path_of(saves->folder, manifest->step, "");
    code = give_name(part, path, err);
    mem_free(path);
    if (!code)
        code = durable_sync_folder(saves->folder, err);
    if (!code)
        remove_all(saves->folder, "", (size_t)keep);
    return code;
}

/* ---- finding ---- */

static int check(const char *path, int64_t step, struct manifest *manifest, struct error *err)
{
    int code = manifest_read(manifest, path, err);
    if (!code && manifest->step != step)
        code = error_set(err, ERR_DATA, "%s/manifest: is of step %" PRId64, path, manifest->step);
    return code ? code : manifest_verify(manifest, path, err);
}

static bool is_intact(const char *folder, int64_t step, struct saves_skipped *skipped,
                      struct manifest *manifest, char **path)
{
    struct error err = ERROR_INIT;
    *path = path_of(folder, step, "");
    if (!check(*path, step, manifest, &err))
        return true;
    if (skipped)
        skipped->tell(skipped, err.text);
    manifest_release(manifest);
    *manifest = (struct manifest){0};
    mem_free(*path);
    *path = NULL;
    return false;
}

bool saves_exist(const char *folder)
{
    step_vec steps = VEC_INIT;
    struct error ignored = ERROR_INIT;
    struct stat status;
    bool found = false;
    list(folder, "", &steps, &ignored);
    for (size_t i = 0; !found && i < steps.n; i++) {
        char *manifest = path_of(folder, steps.items[i], "/manifest");
        found = !stat(manifest, &status);
        mem_free(manifest);
    }
    vec_release(&steps);
    return found;
}

int saves_find(const char *folder, int64_t step, struct saves_skipped *skipped,
               struct manifest *manifest, char **path, struct error *err)
{
    step_vec steps = VEC_INIT;
    bool found = false;
    *path = NULL;
    int code = list(folder, "", &steps, err);
    for (size_t i = 0; !code && !found && i < steps.n; i++)
        found = (step < 0 || steps.items[i] == step) &&
                is_intact(folder, steps.items[i], skipped, manifest, path);
    vec_release(&steps);
    if (code || found)
        return code;
    return step < 0 ? error_set(err, ERR_NOINPUT, "%s: no intact checkpoint", folder)
                    : error_set(err, ERR_NOINPUT, "%s: no intact checkpoint of step %" PRId64,
                                folder, step);
}
