/* SPDX-License-Identifier: Apache-2.0
 *
 * What was committed last, in a place of its own: the file `committed` beside a store's data.mdb.
 *
 * LMDB finds its newest commit by a number in one of two meta pages. A flipped bit there can make
 * an older commit the newest, all of whose pages are sound: nobody would notice that the last
 * checkpoint is gone. So after each commit its number, the head that it has, and its meta page are
 * written here and synchronised. A record that is behind what data.mdb says is of a writer that was
 * killed in between; one that is ahead means that data.mdb went back, and its meta page is what
 * repairs that.
 *
 * Two slots of a page each, which commits take in turns: a slot that was torn leaves the other.
 */
#ifndef TF_CHECKPOINT_COMMITTED_H
#define TF_CHECKPOINT_COMMITTED_H

#include <stdbool.h>

#include "checkpoint/store/digest.h"
#include "checkpoint/store/pages.h"

#define COMMITTED_FILE "committed"
#define COMMITTED_SLOTS 2

struct commit_note {
    uint64_t txn;     /* the commit's number */
    int64_t sequence; /* of its head */
    int64_t step;     /* the newest manifest; -1: there is none */
    struct digest manifest;
    uint8_t meta[PAGES_META_BYTES]; /* the meta page that the commit has written */
};

/* Opens FOLDER/committed; to write it is made if it is missing, with all of its space. *fd is -1
 * where there is none to read. ERR_IO, ERR_DENIED. */
int committed_open(const char *folder, bool write, int *fd, struct error *err);

/* A slot. *is_there false: it holds nothing, or was damaged. ERR_IO. */
int committed_read_slot(int fd, int slot, struct commit_note *committed, bool *is_there,
                        struct error *err);
/* The newer of both. *is_there false: none is intact; fd is -1. ERR_IO. */
int committed_read(int fd, struct commit_note *committed, bool *is_there, struct error *err);

/* Writes the note into the slot of its number, and onto the disk. ERR_IO. */
int committed_write(int fd, const struct commit_note *committed, struct error *err);

/* Forgets both, before a record that is older than they are. ERR_IO. */
int committed_clear(int fd, struct error *err);

#endif
