/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a journal (resource/journal.h): a page with the heads of the two copies, followed by
 * an extent per value: a page that describes it, then the value twice, each in whole pages. All of
 * it is mapped; room is allocated before, so that a full disk gives an error instead of a signal.
 *
 * Not locked: the caller's lock guards it. Integers have the machine's byte order, as only
 * processes of one host use the file.
 */
#ifndef TF_RESOURCE_JOURNAL_FILE_H
#define TF_RESOURCE_JOURNAL_FILE_H

#include <stdatomic.h>

#include "base/vec.h"
#include "resource/journal.h"

#define JOURNAL_PAGE 65536 /* a multiple of every machine's page size */
#define JOURNAL_MAGIC "tf-journal 2"

/* The file's first page. Step 0: the copy does not exist. The sum is over the head, and over the
 * description and bytes of each value of the copy. */
struct journal_page {
    char magic[16];
    uint64_t owner; /* identifies the worker it belongs to */
    struct {
        int64_t incarnation;
        _Atomic int64_t step;
        uint64_t sum;
    } heads[JOURNAL_COPIES];
};

/* The first page of an extent. */
struct journal_value {
    uint64_t bytes; /* of one copy, in whole pages */
    uint32_t type, rank;
    int64_t dims[SHAPE_RANK_MAX];
    struct {
        _Atomic int64_t step; /* step of the copy; it is complete only if the copy's head says so */
        uint64_t is_open;
        uint64_t sum; /* of the bytes */
    } copies[JOURNAL_COPIES];
    char name[2048];
};

struct journal_file {
    int fd;
    char *path;
    uint64_t owner;
    uint64_t bytes;            /* of the file */
    struct journal_page *page; /* mapped; NULL: it is not open */
    VEC(struct journal_extent {
        struct journal_value *value;
        uint64_t mapped; /* bytes */
    })
    extents;
};

/* Opens or creates the file. A file that is no journal, another owner's, or damaged, is reset; a
 * copy that differs from what was committed is dropped. `damage` then says so, once. */
int journal_file_open(struct journal_file *file, const char *path, uint64_t owner,
                      struct error *damage, struct error *err);
void journal_file_close(struct journal_file *file);
/* Removes all values and heads from the file. */
int journal_file_clear(struct journal_file *file, struct error *err);

/* Returns the sum of a copy for that step: of its head and values. */
uint64_t journal_file_sum(const struct journal_file *file, int copy, int64_t step);
/* Seals a value's copy after its bytes are written. */
void journal_value_seal(struct journal_value *value, int copy);

/* Finds the extent with that name, type and shape; NULL: none. */
struct journal_value *journal_file_find(const struct journal_file *file, const char *name,
                                        const struct tensor *like);
/* Adds such an extent. */
struct journal_value *journal_file_add(struct journal_file *file, const char *name,
                                       const struct tensor *like, struct error *err);

/* Returns the address of one of the copies. */
static inline void *journal_data(struct journal_value *value, int copy)
{
    return (char *)value + JOURNAL_PAGE + (size_t)copy * value->bytes;
}

#endif
