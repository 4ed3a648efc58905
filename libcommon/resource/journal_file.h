/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a journal (resource/journal.h): a page with the heads of the two copies, and behind
 * it an extent for each value, of a page that says what it is and the value twice, in whole pages.
 * All of it is mapped; room is allocated before, so that a full disk is an error and no signal.
 *
 * Not locked: its owner sees to that. Integers have the machine's byte order, as the file is for
 * processes of one host.
 */
#ifndef TF_RESOURCE_JOURNAL_FILE_H
#define TF_RESOURCE_JOURNAL_FILE_H

#include <stdatomic.h>

#include "base/vec.h"
#include "resource/journal.h"

#define JOURNAL_PAGE 65536 /* a multiple of what any machine's is */
#define JOURNAL_MAGIC "tf-journal 2"

/* The file's first page. A step of 0: the copy is not there. Its sum is of the head, and of what
 * each value that it has says of itself and of its bytes. */
struct journal_page {
    char magic[16];
    uint64_t owner; /* whose it is */
    struct {
        int64_t incarnation;
        _Atomic int64_t step;
        uint64_t sum;
    } heads[JOURNAL_COPIES];
};

/* The first page of an extent. */
struct journal_value {
    uint64_t bytes; /* of a copy, in whole pages */
    uint32_t type, rank;
    int64_t dims[SHAPE_RANK_MAX];
    struct {
        _Atomic int64_t step; /* that it is of; whether it is whole, the head of its copy says */
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

/* Opens, or makes. A file that is no journal, another owner's, or damaged, is begun anew, and a
 * copy that is not what was committed is not there: `damage` then says so, once. */
int journal_file_open(struct journal_file *file, const char *path, uint64_t owner,
                      struct error *damage, struct error *err);
void journal_file_close(struct journal_file *file);
/* Leaves the file without any values, and without heads. */
int journal_file_clear(struct journal_file *file, struct error *err);

/* The sum of a copy of that step as it stands: of its head and values. */
uint64_t journal_file_sum(const struct journal_file *file, int copy, int64_t step);
/* Seals a value's copy when its bytes are written. */
void journal_value_seal(struct journal_value *value, int copy);

/* The extent of that name, type and shape; NULL: there is none. */
struct journal_value *journal_file_find(const struct journal_file *file, const char *name,
                                        const struct tensor *like);
/* Makes one. */
struct journal_value *journal_file_add(struct journal_file *file, const char *name,
                                       const struct tensor *like, struct error *err);

/* The place of one of its copies. */
static inline void *journal_data(struct journal_value *value, int copy)
{
    return (char *)value + JOURNAL_PAGE + (size_t)copy * value->bytes;
}

#endif
