/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a store's writer: a kernel lock on a file, which ends with its owner, however that
 * one ends. The file's text says who has it.
 */
#ifndef TF_CHECKPOINT_LOCK_H
#define TF_CHECKPOINT_LOCK_H

#include "base/error.h"

/* Waits up to `seconds` (0: not at all; negative: as long as it takes). `path` is made if it is
 * missing; `owner` ("tf-ckpt prune") goes into it. *fd holds the lock until lock_release. ERR_RETRY
 * naming who has it; ERR_DENIED, ERR_IO. */
int lock_take(const char *path, const char *owner, double seconds, int *fd, struct error *err);
void lock_release(int fd); /* -1 is harmless */

#endif
