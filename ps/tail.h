/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a file of fetch records while another process writes it: its progress, the values of its
 * last step, and the scalars computed from one version of the variables.
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
    bool damaged;         /* the rest of this file cannot be read */
    int64_t step;         /* of the last complete record; -1: none */
    bool is_of_each_step; /* the last two records are of consecutive steps */
    int64_t total;        /* announced by the stream; -1: unknown */
    struct str values;    /* "loss=0.0187 accuracy=1" */

    /* Set by tail_want: */
    int64_t version; /* wanted; -1: none */
    bool exact;      /* else a later version will do, if it comes first */
    bool has_all;    /* a record of no earlier version was read: no more scalars of this one come */
    scalar_vec wanted;
};

void tail_init(struct tail *tail, const char *path);
void tail_release(struct tail *tail);

/* Reads what was written since the last call, or until the wanted version is complete. Never waits.
 * If the file was started again, reading starts again, too. */
void tail_read(struct tail *tail);

/* From now on keeps scalars of that version of the variables from unread records, and drops those
 * of another version. If variables change while a worker reads them, no scalar is of exactly one
 * version; then, without `exact`, keeps the first that saw at least this version. */
void tail_want(struct tail *tail, int64_t version, bool exact);

#endif
