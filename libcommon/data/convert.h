/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements from one type to another through float64, a block at a time.
 */
#ifndef TF_DATA_CONVERT_H
#define TF_DATA_CONVERT_H

#include "base/error.h"
#include "tensor/tensor.h"

/* Loads elements [first, first + n) as float64. STRING is not allowed. */
void convert_load(const struct tensor *from, int64_t first, int64_t n, double *values);

/* The reverse. ERR_DATA if an integer type cannot represent a value (a fraction, NaN, too large);
 * *bad is its index. */
int convert_store(struct tensor *to, int64_t first, int64_t n, const double *values, int64_t *bad,
                  struct error *err);

#endif
