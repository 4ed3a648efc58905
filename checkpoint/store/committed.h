/* SPDX-License-Identifier: Apache-2.0
 *
 * A record of the last commit, in a separate file: `committed`, beside a store's data.mdb.
 *
 * LMDB finds its newest commit by a number in one of two meta pages. A flipped bit there can make
 * an older commit look newest. All pages of that commit are sound, so nobody would notice that the
 * last checkpoint is lost. So after each commit, its number, its head and its meta page are written
 * here and synced. A record older than data.mdb means that a writer was killed in between; a newer
 * record means that data.mdb fell back, and the recorded meta page repairs it.
 *
 * There are two slots of one page each, which commits use in turn: if a write tears one, the other
 * is intact.
 */
#ifndef TF_CHECKPOINT_COMMITTED_H
#define TF_CHECKPOINT_COMMITTED_H

#include <stdbool.h>

#include "checkpoint/store/digest.h"
#include "checkpoint/store/pages.h"

#define COMMITTED_FILE "committed"
#define COMMITTED_SLOTS 2

struct store_head {
    int64_t sequence; /* the last one assigned */
    int64_t step;     /* the newest manifest; -1: there is none */
    struct digest manifest;
};

struct commit_note {
    uint64_t txn; /* the commit's number */
    struct store_head head;
    uint8_t meta[PAGES_META_BYTES]; /* the meta page that the commit wrote */
};

/* Opens FOLDER/committed; to write, a missing file is created at its full size. *fd is -1 if there
 * is none to read. ERR_IO, ERR_DENIED. */
int committed_open(const char *folder, bool write, int *fd, struct error *err);

/* Reads a slot. *is_there false: it is empty or damaged. ERR_IO. */
int committed_read_slot(int fd, int slot, struct commit_note *committed, bool *is_there,
                        struct error *err);
/* Reads the newer of both. *is_there false: neither is intact, or fd is -1. ERR_IO. */
int committed_read(int fd, struct commit_note *committed, bool *is_there, struct error *err);

/* Writes the note into the slot for its number, and syncs it. ERR_IO. */
int committed_write(int fd, const struct commit_note *committed, struct error *err);

/* Clears both slots, before a record older than theirs is written. ERR_IO. */
int committed_clear(int fd, struct error *err);

#endif
