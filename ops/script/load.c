/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/script/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

static char *read_all(FILE *in, const char *name, size_t most, size_t *n, struct error *err)
{
    size_t capacity = 1 << 16, got;
    char *text = mem_alloc(capacity);
    *n = 0;
    while ((got = fread(text + *n, 1, capacity - *n, in)) > 0) {
        *n += got;
        if (*n > most)
            break;
        if (*n == capacity)
            text = mem_realloc(text, capacity *= 2);
    }
    if (*n > most)
        error_set(err, ERR_DATA, "%s: more than %zu MiB", name, most >> 20);
    else if (ferror(in))
        error_set_errno(err, errno == EISDIR ? ERR_DATA : ERR_IO, "%s", name);
    else
        return text;
    mem_free(text);
    return NULL;
}

char *load_file(const char *path, size_t most, size_t *n, struct error *err)
{
    if (!strcmp(path, "-"))
        return read_all(stdin, "stdin", most, n, err);
    FILE *in = fopen(path, "rbe");
    if (!in) {
        error_set_errno(err, file_error_code(), "%s", path);
        return NULL;
    }
    char *text = read_all(in, path, most, n, err);
    fclose(in);
    return text;
}
