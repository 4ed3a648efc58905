/* SPDX-License-Identifier: Apache-2.0
 *
 * The pages of an LMDB file (format 1, of LMDB 0.9), read without trusting them.
 *
 * LMDB trusts its pages: one flipped bit in a page of the tree can send it to any address, and a
 * free list that names a page in use lets the next writer overwrite it. So every store is walked
 * before LMDB may open it. The walk uses pread, which returns an error where a mapping would raise
 * a signal. A file that passes is a tree: each page is used once, has its own number and lies
 * within the file; keys ascend; counts and depths are those of the meta page. Values are not
 * checked here, as they have digests.
 */
#ifndef TF_CHECKPOINT_PAGES_H
#define TF_CHECKPOINT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct pages_db { /* one tree, as its meta page describes it */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries;
    uint64_t root; /* PAGES_NONE: empty */
};

#define PAGES_NONE UINT64_MAX

enum { PAGES_FREE, PAGES_MAIN, PAGES_DBS };

struct pages_meta {
    uint32_t page_bytes;
    uint64_t map_bytes, last_page, txn;
    struct pages_db dbs[PAGES_DBS]; /* free pages; keys and values */
};

#define PAGES_META_BYTES 152 /* the part of a meta page that is used */

/* Reads the bytes of meta page `number`, 0 or 1. ERR_DATA: they are no meta page. */
int pages_parse_meta(const uint8_t bytes[PAGES_META_BYTES], int number, struct pages_meta *meta,
                     struct error *err);

/* Turns the bytes into meta page `number` of the commit `txn`. */
void pages_renumber_meta(uint8_t bytes[PAGES_META_BYTES], uint64_t number, uint64_t txn);

/* Reads the newer of the two meta pages (PAGES_NONE), even while another process writes, or that of
 * the commit `txn`, which the caller keeps alive by a read transaction. ERR_DATA: one is invalid,
 * they contradict each other, or the file is shorter than they say. */
int pages_read_meta(int fd, uint64_t txn, struct pages_meta *meta, struct error *err);

struct pages_count {
    uint64_t tree, overflow, free;
    uint64_t lost; /* pages neither used nor free: harmless, but wasted */
};

/* Walks both trees of the commit that `meta` describes, which must stay alive meanwhile. ERR_DATA
 * naming page and defect; ERR_IO; ERR_OS: too little memory for a file of this size. */
int pages_check(int fd, const struct pages_meta *meta, struct pages_count *count,
                struct error *err);

/* ---- one leaf page, for the walk and for salvage ---- */

struct pages_node {
    const uint8_t *key;
    size_t key_bytes;
    uint64_t value_bytes;
    const uint8_t *value;    /* in the page; NULL: in overflow pages, from their 17th byte on */
    uint64_t overflow_page;  /* the first of them, if `value` is NULL */
    uint64_t overflow_pages; /* how many */
};

/* False if node i lies outside the page, or is of a kind that stores do not use. */
bool pages_leaf_node(const uint8_t *page, uint32_t page_bytes, int i, struct pages_node *node);

#define PAGES_HEADER_BYTES 16 /* of every page, and of a run of overflow pages */

#endif
