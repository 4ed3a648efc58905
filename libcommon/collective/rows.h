/* SPDX-License-Identifier: Apache-2.0
 *
 * The routing of rows: how many rows each member sends to each other member.
 */
#ifndef TF_COLLECTIVE_ROWS_H
#define TF_COLLECTIVE_ROWS_H

#include "base/error.h"
#include "collective/sum.h"
#include "tensor/tensor.h"

/* The routing of one value among the n members that take part, by rank. */
struct row_routes {
    enum collective_kind kind;
    int n;
    int root;               /* a place among the n; -1: there is none */
    const int64_t *brought; /* rows, by member; 1 if the value is not cut by rows */
    const int64_t *wanted;  /* by member, as collective_call's `rows`; NULL: parts are even */
};

struct row_range {
    int64_t first, count;
};

/* Returns part k of n of the rows. Parts are even, but the first ones may have one row more. */
struct row_range collective_part(int64_t rows, int64_t n, int64_t k);

/* Return the number of rows of a value, and the elements of a row, as a routing counts them. */
int64_t collective_rows(enum collective_kind kind, const struct shape *shape);
int64_t collective_row_elements(enum collective_kind kind, const struct shape *shape);

/* Returns the rows of member `from` that `to` gets; for a kind that adds, rows of the sum. */
struct row_range collective_rows_of(const struct row_routes *routing, int from, int to);
/* Returns the shape of the result at `to`; `own` is the shape of its own value. */
struct shape collective_result_shape(const struct row_routes *routing, const struct shape *own,
                                     int to);
/* Returns whether the result at `to` is all zeros. */
static inline bool collective_gets_zeros(const struct row_routes *routing, int to)
{
    return routing->root >= 0 && routing->root != to && !collective_parts(routing->kind) &&
           routing->kind != COLLECTIVE_FIRST;
}
/* ERR_DATA: parts are not even, or members want another number of rows than there are. */
int collective_check_rows(const struct row_routes *routing, struct error *err);

/* ERR_DATA: the kind does not support values of that type and shape. */
int collective_check_value(enum collective_kind kind, const struct tensor *value,
                           struct error *err);

#endif
