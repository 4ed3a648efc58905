/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a progression is, for its declaration and its kernel.
 */
#ifndef TF_OPS_ARRAY_RANGE_H
#define TF_OPS_ARRAY_RANGE_H

#include "tensor/tensor.h"

/* Elements of start, start + delta, ... before limit; the three are scalars of one type. ERR_DATA
 * if delta is 0 or leads away from the limit. */
int range_count(const struct tensor *start, const struct tensor *limit, const struct tensor *delta,
                int64_t *n, struct error *err);

#endif
