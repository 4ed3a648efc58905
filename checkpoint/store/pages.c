/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/pages.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint/store/pages_private.h"

#define MAGIC 0xBEEFC0DE
#define VERSION 1
#define DB_BYTES 48
#define FREE_FLAGS 8 /* integer keys */
#define MAP_BYTES_MAX ((uint64_t)1 << 47)
#define ATTEMPTS 20 /* a meta page may be read while it is written */

enum { /* byte offsets in a meta page */
       META_MAGIC = 16,
       META_VERSION = 20,
       META_MAP_BYTES = 32,
       META_DBS = 40,
       META_LAST_PAGE = 136,
       META_TXN = 144,
};

int pages_read(int fd, void *bytes, size_t n, uint64_t offset, struct error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)bytes + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(err, ERR_IO, "reading at byte %llu",
                                   (unsigned long long)(offset + done));
        if (!got)
            return error_set(err, ERR_DATA, "truncated at byte %llu",
                             (unsigned long long)(offset + done));
        done += (size_t)got;
    }
    return 0;
}

int pages_write(int fd, const void *bytes, size_t n, uint64_t offset, struct error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        errno = put ? errno : ENOSPC;
        if (put <= 0)
            return error_set_errno(err, ERR_IO, "writing");
        done += (size_t)put;
    }
    return 0;
}

int pages_parse_meta(const uint8_t p[PAGES_META_BYTES], int number, struct pages_meta *meta,
                     struct error *err)
{
    if (page_u64(p + PAGE_NUMBER) != (uint64_t)number || page_u16(p + PAGE_FLAGS) != FLAG_META ||
        page_u32(p + META_MAGIC) != MAGIC || page_u32(p + META_VERSION) != VERSION)
        return error_set(err, ERR_DATA, "page %d is no meta page", number);
    *meta = (struct pages_meta){.page_bytes = page_u32(p + META_DBS),
                                .map_bytes = page_u64(p + META_MAP_BYTES),
                                .last_page = page_u64(p + META_LAST_PAGE),
                                .txn = page_u64(p + META_TXN)};
    for (int i = 0; i < PAGES_DBS; i++) {
        const uint8_t *db = p + META_DBS + i * DB_BYTES;
        meta->dbs[i] = (struct pages_db){.flags = page_u16(db + 4),
                                         .depth = page_u16(db + 6),
                                         .branch_pages = page_u64(db + 8),
                                         .leaf_pages = page_u64(db + 16),
                                         .overflow_pages = page_u64(db + 24),
                                         .entries = page_u64(db + 32),
                                         .root = page_u64(db + 40)};
    }
    uint32_t page = meta->page_bytes;
    if (page < 512 || page > 65536 || (page & (page - 1)) || meta->map_bytes > MAP_BYTES_MAX ||
        meta->dbs[PAGES_FREE].flags != FREE_FLAGS || meta->dbs[PAGES_MAIN].flags ||
        meta->last_page < 1 || meta->last_page >= MAP_BYTES_MAX / page)
        return error_set(err, ERR_DATA, "meta page %d is damaged", number);
    return 0;
}

void pages_renumber_meta(uint8_t bytes[PAGES_META_BYTES], uint64_t number, uint64_t txn)
{
    memcpy(bytes + PAGE_NUMBER, &number, sizeof number);
    memcpy(bytes + META_TXN, &txn, sizeof txn);
}

/* A commit's number selects the meta page it writes, so the two numbers always differ by one. */
static bool metas_agree(const struct pages_meta metas[2])
{
    uint64_t a = metas[0].txn, b = metas[1].txn;
    if (metas[0].page_bytes != metas[1].page_bytes)
        return false;
    if (a == b) /* a store without commits */
        return !a;
    return a % 2 == 0 && b % 2 == 1 && (a == b + 1 || b == a + 1);
}

static int choose(int fd, uint64_t txn, struct pages_meta *meta, struct error *err)
{
    struct pages_meta metas[2];
    error_clear(err);
    uint8_t page[PAGES_META_BYTES];
    for (int i = 0; i < 2; i++)
        if (pages_read(fd, page, sizeof page, i ? metas[0].page_bytes : 0, err) ||
            pages_parse_meta(page, i, &metas[i], err))
            return err->code;
    if (!metas_agree(metas))
        return error_set(err, ERR_DATA, "the meta pages contradict each other");
    if (txn == PAGES_NONE)
        txn = metas[0].txn > metas[1].txn ? metas[0].txn : metas[1].txn;
    *meta = metas[txn % 2];
    if (meta->txn != txn)
        return error_set(err, ERR_DATA, "no meta page is of commit %llu", (unsigned long long)txn);
    struct stat status;
    uint64_t wanted = (meta->last_page + 1) * meta->page_bytes;
    if (fstat(fd, &status))
        return error_set_errno(err, ERR_IO, "stat");
    if ((uint64_t)status.st_size < wanted)
        return error_set(err, ERR_DATA, "truncated: %llu of %llu bytes are there",
                         (unsigned long long)status.st_size, (unsigned long long)wanted);
    return 0;
}

int pages_read_meta(int fd, uint64_t txn, struct pages_meta *meta, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; choose(fd, txn, meta, err) == ERR_DATA && i < ATTEMPTS; i++)
        nanosleep(&pause, NULL);
    return err->code;
}
