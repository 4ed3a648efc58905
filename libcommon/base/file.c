/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <stdio.h>

static int read_all(FILE *file, size_t most, struct str *text)
{
    char block[4096];
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        if (n > most)
            return ERR_DATA;
        str_append_bytes(text, block, n);
        most -= n;
    }
    return ferror(file) ? ERR_NOINPUT : 0;
}

int file_read(const char *path, size_t most, struct str *text, struct error *err)
{
    FILE *file = fopen(path, "re");
    int code = file ? read_all(file, most, text) : ERR_NOINPUT;
    if (code == ERR_NOINPUT)
        error_set_errno(err, ERR_NOINPUT, "%s", path);
    else if (code)
        error_set(err, ERR_DATA, "%s: more than %zu MiB", path, most >> 20);
    if (file)
        fclose(file);
    return code;
}
