/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of tensors (their first dimension), and the order in which an epoch visits them.
 */
#ifndef TF_DATA_ROWS_H
#define TF_DATA_ROWS_H

#include "base/error.h"
#include "tensor/tensor.h"

/* Rows [first, first + n), of the same memory where the type allows it. `from` must not borrow. */
int rows_slice(const struct tensor *from, int64_t first, int64_t n, struct tensor *to,
               struct error *err);

/* Copies the rows whose indices are given. */
int rows_gather(const struct tensor *from, const int64_t *indices, int64_t n, struct tensor *to,
                struct error *err);

/* A permutation of [0, n) that follows from seed and epoch alone: who resumes in an epoch, or
 * reads a shard of it, needs to know nothing else. NULL without memory; mem_free. */
int64_t *rows_permutation(int64_t n, uint64_t seed, int64_t epoch);

#endif
