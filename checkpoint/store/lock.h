/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a store's writer: two kernel locks, which the kernel releases however their owner
 * ends. One is on a lock file whose text names the owner, the other on the store's data. So
 * removing the lock file, because it looks like a stale one, lets nobody else in.
 */
#ifndef TF_CHECKPOINT_LOCK_H
#define TF_CHECKPOINT_LOCK_H

#include <stdatomic.h>

#include "base/error.h"

struct lock_request {
    const char *path;             /* of the lock file, which is created if missing */
    int data_fd;                  /* is locked, too, until it is closed */
    const char *name;             /* of the locked store, for messages */
    const char *owner;            /* "tf-ckpt prune": in the file while the lock is held */
    double seconds;               /* to wait; 0: not at all; negative: without end */
    const atomic_bool *cancelled; /* as in patience_begin */
};

/* *fd holds the lock until lock_release. ERR_RETRY naming the holder; ERR_CANCELLED: the process
 * was asked to end meanwhile; ERR_DENIED, ERR_IO. */
int lock_take(const struct lock_request *request, int *fd, struct error *err);
void lock_release(int fd); /* -1 is harmless */

#endif
