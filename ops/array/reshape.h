/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of shapes that declarations and kernels share. Each returns 0 or an error that says
 * what does not fit.
 */
#ifndef TF_OPS_ARRAY_RESHAPE_H
#define TF_OPS_ARRAY_RESHAPE_H

#include "graph/attr.h"

/* `wanted` may have one dimension of -1, which becomes what is left of the input's elements or,
 * beside a 0, of the product of the input's dimensions but those of 0: [0,4,3] as [0,-1] is [0,12].
 * The input's shape is known. */
int reshape_resolve(const struct shape *in, const struct shape *wanted, struct shape *out,
                    struct error *err);

/* Puts a dimension of 1 in front of `axis`, which counts from the end, after it, if negative. */
int reshape_expand(const struct shape *in, int64_t axis, struct shape *out, struct error *err);

/* Removes the dimensions of 1 that are listed, or all if none is; unknown ones count as 1 if they
 * are listed. Rank unknown: if some dimension is unknown and none is listed. */
int reshape_squeeze(const struct shape *in, const int64_t *axes, int n_axes, struct shape *out,
                    struct error *err);

/* The elements of an int32 or int64 vector as a shape, -1 included. ERR_DATA when it has more than
 * 8, or one below -1. */
int reshape_read(const struct tensor *dims, struct shape *shape, struct error *err);

#endif
