/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of tensors (their first dimension), and the order in which an epoch visits them.
 */
#ifndef TF_DATA_ROWS_H
#define TF_DATA_ROWS_H

#include "base/error.h"
#include "tensor/tensor.h"

/* Takes rows [first, first + n), sharing memory if the type allows it. `from` must not borrow. */
int rows_slice(const struct tensor *from, int64_t first, int64_t n, struct tensor *to,
               struct error *err);

/* Copies the rows with these indices. */
int rows_gather(const struct tensor *from, const int64_t *indices, int64_t n, struct tensor *to,
                struct error *err);

/* Returns a permutation of [0, n) that depends only on seed and epoch, so that a resumed epoch or a
 * shard of it needs nothing else. NULL without memory; mem_free. */
int64_t *rows_permutation(int64_t n, uint64_t seed, int64_t epoch);

#endif
