/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a file of fetch records that another process is writing: how far it is, and the scalars
 * of its last step.
 */
#ifndef TF_PS_TAIL_H
#define TF_PS_TAIL_H

#include "base/str.h"
#include "base/vec.h"
#include "checkpoint/store/manifest.h"
#include "wire/decoder.h"

struct tail {
    char *path;
    int fd; /* -1: the file is not there yet */
    uint64_t inode;
    struct decoder decoder;
    struct record record;
    bool begun;        /* a record is being read */
    bool damaged;      /* what follows in this file cannot be read */
    int64_t step;      /* of the last whole record; -1: none */
    int64_t total;     /* that the stream promised; -1: unknown */
    struct str values; /* "loss=0.0187 accuracy=1" */
};

void tail_init(struct tail *tail, const char *path);
void tail_release(struct tail *tail);

typedef VEC(struct manifest_scalar) scalar_vec;

/* Takes in what has been written since. Never waits; a file that was begun again is begun again. */
void tail_read(struct tail *tail);

/* The values of the last record; names in the arena. */
void tail_scalars(const struct tail *tail, struct arena *arena, scalar_vec *scalars);

#endif
