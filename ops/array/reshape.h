/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape arithmetic shared by declarations and kernels. Each function returns 0, or an error that
 * says what does not fit.
 */
#ifndef TF_OPS_ARRAY_RESHAPE_H
#define TF_OPS_ARRAY_RESHAPE_H

#include "graph/attr.h"

/* Inserts a dimension before `axis` or, if it is negative (from the end), after it; `name` is the
 * axis'. */
int reshape_insert(const struct shape *in, int64_t axis, int64_t dim, const char *name,
                   struct shape *out, struct error *err);

/* Joins the dimensions of `head` with those of `tail` from `from` on: rows of a tensor, by number.
 * An unknown rank gives an unknown rank. */
int reshape_join(const struct shape *head, const struct shape *tail, int from, struct shape *out,
                 struct error *err);

/* Returns whether `shape` begins with `head`, as far as known. */
bool reshape_begins(const struct shape *shape, const struct shape *head);

/* Reads an int32 or int64 vector as a shape, which may contain -1. ERR_DATA: it has more than 8
 * elements, or one below -1. */
int reshape_read(const struct tensor *dims, struct shape *shape, struct error *err);

#endif
