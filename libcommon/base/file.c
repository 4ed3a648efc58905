/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>

/* A directory can be opened, but not read. */
static int read_all(FILE *file, const char *path, size_t most, struct str *text, struct error *err)
{
    char block[4096];
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        str_append_bytes(text, block, n);
        if (text->n > most)
            return error_set(err, ERR_DATA, "%s: more than %zu MiB", path, most >> 20);
    }
    if (ferror(file))
        return error_set_errno(err, errno == EISDIR ? ERR_DATA : ERR_NOINPUT, "%s", path);
    return 0;
}

int file_read(const char *path, size_t most, struct str *text, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERR_NOINPUT, "%s", path);
    int code = read_all(file, path, most, text, err);
    fclose(file);
    return code;
}

int file_error_code(void)
{
    bool denied = errno == EACCES || errno == EPERM || errno == EROFS;
    bool absent = errno == ENOENT || errno == ENOTDIR;
    return denied ? ERR_DENIED : absent ? ERR_NOINPUT : ERR_IO;
}
