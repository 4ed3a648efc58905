/* SPDX-License-Identifier: Apache-2.0
 *
 * A slot holds a magic number, the commit's number, sequence and step, the manifest's digest, the
 * meta page, and the SHA-256 of all these.
 */
#include "checkpoint/store/committed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "checkpoint/store/pages_private.h"
#include "checkpoint/store/store_private.h"

#define MAGIC "TFCOMMIT"
#define SLOT_BYTES 4096 /* at least what a disk writes at once */
enum {
    AT_TXN = 8,
    AT_SEQUENCE = 16,
    AT_STEP = 24,
    AT_MANIFEST = 32,
    AT_META = AT_MANIFEST + DIGEST_BYTES,
    AT_DIGEST = AT_META + PAGES_META_BYTES,
    RECORD_BYTES = AT_DIGEST + DIGEST_BYTES
};

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
    uint8_t bytes[RECORD_BYTES];
    struct error failed = ERROR_INIT;
    *is_there = false;
    if (pages_read(fd, bytes, sizeof bytes, (uint64_t)slot * SLOT_BYTES, &failed) == ERR_IO) {
        *err = failed;
        return error_prefix(err, COMMITTED_FILE ": ");
    }
    if (failed.code || memcmp(bytes, MAGIC, AT_TXN) != 0)
        return 0;
    struct digest found = digest_of(bytes, AT_DIGEST);
    if (memcmp(&found, bytes + AT_DIGEST, sizeof found) != 0)
        return 0;
    *is_there = true;
    c->txn = page_u64(bytes + AT_TXN);
    c->sequence = (int64_t)page_u64(bytes + AT_SEQUENCE);
    c->step = (int64_t)page_u64(bytes + AT_STEP);
    memcpy(&c->manifest, bytes + AT_MANIFEST, DIGEST_BYTES);
    memcpy(c->meta, bytes + AT_META, PAGES_META_BYTES);
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
static int write_slot(int fd, uint64_t slot, const uint8_t bytes[RECORD_BYTES], struct error *err)
{
    return pages_write(fd, bytes, RECORD_BYTES, slot * SLOT_BYTES, err)
               ? error_prefix(err, COMMITTED_FILE ": ")
               : 0;
}

int committed_write(int fd, const struct commit_note *c, struct error *err)
{
    uint8_t bytes[RECORD_BYTES];
    memcpy(bytes, MAGIC, AT_TXN);
    memcpy(bytes + AT_TXN, &c->txn, sizeof c->txn);
    memcpy(bytes + AT_SEQUENCE, &c->sequence, sizeof c->sequence);
    memcpy(bytes + AT_STEP, &c->step, sizeof c->step);
    memcpy(bytes + AT_MANIFEST, &c->manifest, DIGEST_BYTES);
    memcpy(bytes + AT_META, c->meta, PAGES_META_BYTES);
    struct digest digest = digest_of(bytes, AT_DIGEST);
    memcpy(bytes + AT_DIGEST, &digest, sizeof digest);
    if (write_slot(fd, c->txn % COMMITTED_SLOTS, bytes, err))
        return err->code;
    return fdatasync(fd) ? fail(err, "synchronising") : 0;
}

int committed_clear(int fd, struct error *err)
{
    static const uint8_t nothing[RECORD_BYTES];
    for (uint64_t slot = 0; slot < COMMITTED_SLOTS; slot++)
        if (write_slot(fd, slot, nothing, err))
            return err->code;
    return fdatasync(fd) ? fail(err, "synchronising") : 0;
}
