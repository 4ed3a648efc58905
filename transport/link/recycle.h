/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of received tensors, which is kept for the next ones: fresh pages double the time of a
 * large transfer. Thread-safe, as tensors are released anywhere.
 */
#ifndef TF_TRANSPORT_RECYCLE_H
#define TF_TRANSPORT_RECYCLE_H

#include "tensor/tensor.h"

struct recycle;

/* Keeps at most `limit` bytes that nobody uses. */
struct recycle *recycle_new(size_t limit);

/* Tensors that are still held stay valid; the last one frees it. */
void recycle_free(struct recycle *recycle);

/* Memory for a tensor of like's type and shape, which has `bytes`, not zeroed. ERR_OS. */
int recycle_alloc(struct recycle *recycle, struct tensor *t, const struct tensor *like,
                  size_t bytes, struct error *err);

/* Frees what was not used for `seconds`. */
void recycle_trim(struct recycle *recycle, double seconds);

#endif
