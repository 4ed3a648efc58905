/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/committed.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/store_private.h"

#define MAGIC "TFCOMMIT"
#define SLOT_BYTES 4096 /* at least what a disk writes at once */

struct note_slot { /* as it lies in the file */
    char magic[8];
    struct commit_note note;
    struct digest digest; /* SHA-256 of the members before it */
};
_Static_assert(sizeof(struct note_slot) ==
                   8 + 3 * 8 + DIGEST_BYTES + PAGES_META_BYTES + DIGEST_BYTES,
               "a slot has no holes");

static int fail(struct error *err, const char *what)
{
    return error_set_errno(err, store_errno_code(errno), COMMITTED_FILE ": %s", what);
}

int committed_open(const char *folder, bool write, int *fd, struct error *err)
{
    struct str file = STR_INIT;
    str_printf(&file, "%s/" COMMITTED_FILE, folder);
    *fd = open(file.data, (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0666);
    str_release(&file);
    if (*fd < 0)
        return !write && errno == ENOENT ? 0 : fail(err, "opening it");
    const off_t bytes = COMMITTED_SLOTS * SLOT_BYTES;
    struct stat status;
    int code = 0;
    if (write && fstat(*fd, &status))
        code = fail(err, "stat");
    else if (write && status.st_size < bytes && (errno = posix_fallocate(*fd, 0, bytes)))
        code = fail(err, "allocating it");
    if (code) {
        close(*fd);
        *fd = -1;
    }
    return code;
}

int committed_read_slot(int fd, int slot, struct commit_note *c, bool *is_there, struct error *err)
{
    struct note_slot found;
    struct error failed = ERROR_INIT;
    *is_there = false;
    if (pages_read(fd, &found, sizeof found, (uint64_t)slot * SLOT_BYTES, &failed) == ERR_IO) {
        *err = failed;
        return error_prefix(err, COMMITTED_FILE ": ");
    }
    if (failed.code || memcmp(found.magic, MAGIC, sizeof found.magic) != 0)
        return 0;
    struct digest digest = digest_of(&found, offsetof(struct note_slot, digest));
    *is_there = digest_equal(&digest, &found.digest);
    if (*is_there)
        *c = found.note;
    return 0;
}

int committed_read(int fd, struct commit_note *newest, bool *is_there, struct error *err)
{
    struct commit_note c;
    bool found;
    *is_there = false;
    for (int slot = 0; fd >= 0 && slot < COMMITTED_SLOTS; slot++) {
        if (committed_read_slot(fd, slot, &c, &found, err))
            return err->code;
        if (!found || (*is_there && newest->txn > c.txn))
            continue;
        *newest = c;
        *is_there = true;
    }
    return 0;
}

/* Writes the record of a slot. */
static int write_slot(int fd, uint64_t number, const struct note_slot *slot, struct error *err)
{
    return pages_write(fd, slot, sizeof *slot, number * SLOT_BYTES, err)
               ? error_prefix(err, COMMITTED_FILE ": ")
               : 0;
}

int committed_write(int fd, const struct commit_note *c, struct error *err)
{
    struct note_slot slot = {.note = *c};
    memcpy(slot.magic, MAGIC, sizeof slot.magic);
    slot.digest = digest_of(&slot, offsetof(struct note_slot, digest));
    if (write_slot(fd, c->txn % COMMITTED_SLOTS, &slot, err))
        return err->code;
    return fdatasync(fd) ? fail(err, "synchronising") : 0;
}

int committed_clear(int fd, struct error *err)
{
    const struct note_slot nothing = {0};
    for (uint64_t slot = 0; slot < COMMITTED_SLOTS; slot++)
        if (write_slot(fd, slot, &nothing, err))
            return err->code;
    return fdatasync(fd) ? fail(err, "synchronising") : 0;
}
