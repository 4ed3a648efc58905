/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape arithmetic shared by declarations and kernels. Each function returns 0, or an error that
 * says what does not fit.
 */
#ifndef TF_OPS_ARRAY_RESHAPE_H
#define TF_OPS_ARRAY_RESHAPE_H

#include "graph/attr.h"

/* `wanted` may have one dimension of -1, which is computed from the input's number of elements or,
 * if there is a 0, from the product of the nonzero dimensions: [0,4,3] as [0,-1] is [0,12]. The
 * input's shape is known. */
int reshape_resolve(const struct shape *in, const struct shape *wanted, struct shape *out,
                    struct error *err);

/* Inserts a dimension of 1 before `axis` or, if it is negative (from the end), after it. */
int reshape_expand(const struct shape *in, int64_t axis, struct shape *out, struct error *err);

/* Removes the listed dimensions of 1, or all if none is listed; listed unknown dimensions count as
 * 1. If none is listed and some are unknown, the result's rank is unknown. */
int reshape_squeeze(const struct shape *in, const int64_t *axes, int n_axes, struct shape *out,
                    struct error *err);

/* Reads an int32 or int64 vector as a shape, which may contain -1. ERR_DATA: it has more than 8
 * elements, or one below -1. */
int reshape_read(const struct tensor *dims, struct shape *shape, struct error *err);

#endif
