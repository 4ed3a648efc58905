/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose rows go to whom, and how many they are.
 */
#ifndef TF_COLLECTIVE_ROWS_H
#define TF_COLLECTIVE_ROWS_H

#include "base/error.h"
#include "collective/sum.h"
#include "tensor/tensor.h"

/* The routing of one value among the n members that took part, by rank. */
struct row_routes {
    enum collective_kind kind;
    int n;
    int root;               /* which of the n; -1: there is none */
    const int64_t *brought; /* rows, by member; what is not cut by rows is one */
    const int64_t *wanted;  /* as collective_call's `rows`, by member; NULL: parts are even */
};

struct row_range {
    int64_t first, count;
};

/* Part k of n of so many rows: even parts, the first ones with a row more if need be. */
struct row_range collective_part(int64_t rows, int64_t n, int64_t k);

/* The rows of a value, and the elements of one, as a routing counts them. */
int64_t collective_rows(enum collective_kind kind, const struct shape *shape);
int64_t collective_row_elements(enum collective_kind kind, const struct shape *shape);

/* Rows of member `from` that `to` gets; of a kind that adds, of the sum. */
struct row_range collective_rows_of(const struct row_routes *routing, int from, int to);
/* Returns the shape of what `to` gets of a value of that shape. */
struct shape collective_result_shape(const struct row_routes *routing, const struct shape *own,
                                     int to);
/* Returns whether its result is zeros. */
static inline bool collective_gets_zeros(const struct row_routes *routing, int to)
{
    return routing->root >= 0 && routing->root != to && !collective_parts(routing->kind) &&
           routing->kind != COLLECTIVE_FIRST;
}
/* ERR_DATA: parts do not come out even, or there are other rows than members want. */
int collective_check_rows(const struct row_routes *routing, struct error *err);

/* ERR_DATA: the kind has nothing for values of that type and shape. */
int collective_check_value(enum collective_kind kind, const struct tensor *value,
                           struct error *err);

#endif
