/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by pages.c and pages_tree.c: reading, and the layout of a page's header.
 */
#ifndef TF_CHECKPOINT_PAGES_PRIVATE_H
#define TF_CHECKPOINT_PAGES_PRIVATE_H

#include <string.h>

#include "checkpoint/store/pages.h"

/* Byte offsets in a page, and flags. */
enum {
    PAGE_NUMBER = 0,
    PAGE_FLAGS = 10,
    PAGE_LOWER = 12,
    PAGE_UPPER = 14,
    PAGE_RUN = 12, /* number of overflow pages */
    NODE_HEADER_BYTES = 8,
    FLAG_BRANCH = 1,
    FLAG_LEAF = 2,
    FLAG_OVERFLOW = 4,
    FLAG_META = 8,
    NODE_BIG = 1, /* the value lies in overflow pages */
};

/* Numbers have the machine's byte order, and may be unaligned. */
static inline uint16_t page_u16(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline uint32_t page_u32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static inline uint64_t page_u64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

/* Reads exactly n bytes; ERR_IO, or ERR_DATA at the end of the file. */
int pages_read(int fd, void *bytes, size_t n, uint64_t offset, struct error *err);

/* Writes all of the n bytes; ERR_IO. */
int pages_write(int fd, const void *bytes, size_t n, uint64_t offset, struct error *err);

/* Returns whether the header of a branch or leaf page is sound: number, kind, size of lists. */
bool page_header_fits(const uint8_t *page, uint32_t page_bytes, uint64_t number, int kind);

int page_node_count(const uint8_t *page);

#endif
