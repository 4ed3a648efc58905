/* SPDX-License-Identifier: Apache-2.0
 *
 * What the gradients of array ops often build: shapes as values, constant if known.
 */
#ifndef TF_OPS_ARRAY_BUILD_H
#define TF_OPS_ARRAY_BUILD_H

#include "graph/infer.h"
#include "pass/gradient/grad.h"

/* A constant vector of type int32 or int64. */
struct edge array_ints(struct build *b, enum dtype type, const int64_t *values, int n);

/* The shape of x as a vector of that type. */
struct edge array_shape(struct build *b, struct edge x, enum dtype type);

/* x with the shape of `like`; x itself if its static shape is already that. */
struct edge array_reshape_like(struct build *b, struct edge x, struct edge like);

/* x as a vector. */
struct edge array_flatten(struct build *b, struct edge x);

/* Reads a constant int32 or int64 vector or scalar of at most `max` elements; returns their number,
 * or -1 if it is not constant. */
int array_constant(const struct build *b, struct edge x, int64_t *values, int max);

#endif
