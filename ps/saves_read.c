/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint of a job as one stream.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "ps/saves.h"

typedef VEC(int) fd_vec;

static int open_all(const struct manifest *manifest, const char *path, fd_vec *fds,
                    struct error *err)
{
    struct str file = STR_INIT;
    for (size_t i = 0; i < manifest->files.n && !err->code; i++) {
        str_clear(&file);
        str_printf(&file, "%s/%s", path, manifest->files.items[i].name);
        int fd = open(file.data, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            error_set_errno(err, ERR_IO, "%s", file.data);
        else
            vec_push(fds, fd);
    }
    str_release(&file);
    if (!err->code && !fds->n)
        error_set(err, ERR_DATA, "%s: a manifest of no files", path);
    return err->code;
}

static struct stream_reader *reader_of(const fd_vec *fds, const char *folder, int64_t step)
{
    struct str name = STR_INIT;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    str_printf(&name, "%.*s@%" PRId64, (int)n, folder, step);
    struct stream_reader *reader = stream_reader_new_files(fds->items, (int)fds->n, name.data);
    str_release(&name);
    return reader;
}

int saves_read(const char *folder, int64_t step, struct saves_skipped *skipped,
               struct stream_reader **reader, struct error *err)
{
    struct manifest manifest = {0};
    fd_vec fds = VEC_INIT;
    char *path;
    *reader = NULL;
    error_clear(err);
    if (!saves_find(folder, step, skipped, &manifest, &path, err) &&
        !open_all(&manifest, path, &fds, err))
        *reader = reader_of(&fds, folder, manifest.step);
    for (size_t i = 0; !*reader && i < fds.n; i++)
        close(fds.items[i]);
    vec_release(&fds);
    mem_free(path);
    manifest_release(&manifest);
    return err->code;
}
