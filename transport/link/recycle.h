/* SPDX-License-Identifier: Apache-2.0
 *
 * A buffer pool for received tensors: fresh pages would double the time of a large transfer.
 * Thread-safe, as tensors are released anywhere.
 */
#ifndef TF_TRANSPORT_RECYCLE_H
#define TF_TRANSPORT_RECYCLE_H

#include "tensor/tensor.h"

struct recycle;

/* Keeps at most `limit` unused bytes. */
struct recycle *recycle_new(size_t limit);

/* Tensors that are still held stay valid; the last one frees the pool. */
void recycle_free(struct recycle *recycle);

/* Allocates a tensor of like's type and shape, with `bytes` bytes, not zeroed. ERR_OS. */
int recycle_alloc(struct recycle *recycle, struct tensor *t, const struct tensor *like,
                  size_t bytes, struct error *err);

/* Frees blocks that were not used for `seconds`. */
void recycle_trim(struct recycle *recycle, double seconds);

#endif
