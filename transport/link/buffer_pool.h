/* SPDX-License-Identifier: Apache-2.0
 *
 * A buffer pool for received tensors: fresh pages would double the time of a large transfer.
 * Thread-safe, as tensors are released anywhere.
 */
#ifndef TF_TRANSPORT_BUFFER_POOL_H
#define TF_TRANSPORT_BUFFER_POOL_H

#include "tensor/tensor.h"

struct buffer_pool;

/* Keeps at most `limit` unused bytes. */
struct buffer_pool *buffer_pool_new(size_t limit);

/* Tensors that are still held stay valid; the last one frees the pool. */
void buffer_pool_free(struct buffer_pool *buffer_pool);

/* Allocates a tensor of like's type and shape, with `bytes` bytes, not zeroed. ERR_OS. */
int buffer_pool_alloc(struct buffer_pool *buffer_pool, struct tensor *t, const struct tensor *like,
                      size_t bytes, struct error *err);

/* Frees blocks that were not used for `seconds`. */
void buffer_pool_trim(struct buffer_pool *buffer_pool, double seconds);

#endif
