/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a file of fetch records that another process is writing: how far it is, the values of its
 * last step, and the scalars that were computed of one version of the variables.
 */
#ifndef TF_PS_TAIL_H
#define TF_PS_TAIL_H

#include "base/str.h"
#include "base/vec.h"
#include "checkpoint/store/manifest.h"
#include "wire/decoder.h"

typedef VEC(struct manifest_scalar) scalar_vec;

struct tail {
    char *path;
    int fd; /* -1: the file is not there yet */
    uint64_t inode;
    struct decoder decoder;
    struct record record;
    bool begun;           /* a record is being read */
    bool damaged;         /* what follows in this file cannot be read */
    int64_t step;         /* of the last whole record; -1: none */
    bool is_of_each_step; /* so far: the last two records are of one step and the next */
    int64_t total;        /* that the stream promised; -1: unknown */
    struct str values;    /* "loss=0.0187 accuracy=1" */

    /* The wish of tail_want. */
    int64_t version; /* -1: none is wanted */
    bool exact;      /* else a later version is as good, where it comes first */
    bool
        has_all; /* a record has come that is of no earlier version: there is no more of this one */
    scalar_vec wanted;
};

void tail_init(struct tail *tail, const char *path);
void tail_release(struct tail *tail);

/* Takes in what has been written since; of a version that is wanted, until it has all. Never waits;
 * a file that was begun again is begun again. */
void tail_read(struct tail *tail);

/* From now on the scalars are kept that were computed of that version of the variables, of what is
 * not read yet, in place of those of another. Where variables change while a worker reads them no
 * scalar is of one version; then not `exact`: the first that saw at least this one. */
void tail_want(struct tail *tail, int64_t version, bool exact);

#endif
