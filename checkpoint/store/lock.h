/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a store's writer: kernel locks, which end with their owner, however that one ends.
 * One is on a file of its own, whose text says who has it, the other on the store's data: whoever
 * removes the first, because it looks like one that was left, lets nobody in.
 */
#ifndef TF_CHECKPOINT_LOCK_H
#define TF_CHECKPOINT_LOCK_H

#include <stdatomic.h>

#include "base/error.h"

struct lock_request {
    const char *path;  /* of the lock's file, which is made if it is missing */
    int data_fd;       /* of what is locked, too; its lock ends when it is closed */
    const char *name;  /* of what is locked, for the user */
    const char *owner; /* "tf-ckpt prune": goes into the file, as long as the lock is held */
    double seconds;    /* to wait; 0: not at all; negative: as long as it takes */
    const atomic_bool *cancelled; /* as of patience_begin */
};

/* *fd holds the lock until lock_release. ERR_RETRY naming who has it, or ERR_CANCELLED: the process
 * was asked to end meanwhile; ERR_DENIED, ERR_IO. */
int lock_take(const struct lock_request *request, int *fd, struct error *err);
void lock_release(int fd); /* -1 is harmless */

#endif
