/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of what was fitted. What can be read is written, and read again, the same.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "bin/prep_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void path_of(int fd, struct str *path)
{
    str_clear(path);
    str_printf(path, "/proc/self/fd/%d", fd);
}

/* False where a name is no text, which is refused. */
static bool write_text(const struct prep *prep, int fd)
{
    struct error err = ERROR_INIT;
    if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET))
        abort();
    FILE *out = fdopen(dup(fd), "w");
    if (!out)
        abort();
    bool is_text = !prep_write(prep, out, &err);
    fclose(out);
    return is_text;
}

static char *text_of(int fd)
{
    off_t n = lseek(fd, 0, SEEK_END);
    char *text = mem_alloc((size_t)n + 1);
    if (pread(fd, text, (size_t)n, 0) != n)
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct prep prep = {0}, again = {0};
    struct error err = ERROR_INIT;
    struct str path = STR_INIT;
    if (fd < 0)
        fd = memfd_create("prep", MFD_CLOEXEC);
    if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    path_of(fd, &path);
    if (!prep_read(&prep, path.data, &err) && write_text(&prep, fd)) {
        char *first = text_of(fd);
        if (prep_read(&again, path.data, &err))
            abort();
        if (!write_text(&again, fd))
            abort();
        char *second = text_of(fd);
        if (strcmp(first, second) != 0)
            abort();
        mem_free(first);
        mem_free(second);
    }
    prep_release(&prep);
    prep_release(&again);
    str_release(&path);
    return 0;
}
