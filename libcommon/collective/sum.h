/* SPDX-License-Identifier: Apache-2.0
 *
 * What members of a collective compute, and sums of arrays, by their order.
 */
#ifndef TF_COLLECTIVE_SUM_H
#define TF_COLLECTIVE_SUM_H

#include "tensor/tensor.h"

/* The result that the members of a collective compute together from a value each. */
enum collective_kind {
    COLLECTIVE_SUM,       /* of all members, element by element */
    COLLECTIVE_FIRST,     /* the value of the least rank: a broadcast */
    COLLECTIVE_ROWS,      /* all members' rows, one after the other; their number may differ */
    COLLECTIVE_MEAN,      /* the sum, divided by the number of members that took part; of floats */
    COLLECTIVE_MEAN_ROWS, /* all rows, divided by that number; of floats */
    COLLECTIVE_PART,      /* of every member's rows this member's part, one after the other */
    COLLECTIVE_SUM_PART,  /* this member's part of the rows of the sum */
    COLLECTIVE_MEAN_PART, /* and of the mean */
};

/* Values of all members become one, element by element. */
static inline bool collective_adds(enum collective_kind kind)
{
    return kind == COLLECTIVE_SUM || kind == COLLECTIVE_MEAN || kind == COLLECTIVE_SUM_PART ||
           kind == COLLECTIVE_MEAN_PART;
}

/* Rows of members come one after the other. */
static inline bool collective_gathers(enum collective_kind kind)
{
    return kind == COLLECTIVE_ROWS || kind == COLLECTIVE_MEAN_ROWS || kind == COLLECTIVE_PART;
}

static inline bool collective_divides(enum collective_kind kind)
{
    return kind == COLLECTIVE_MEAN || kind == COLLECTIVE_MEAN_ROWS || kind == COLLECTIVE_MEAN_PART;
}

/* Each member gets rows of its own. */
static inline bool collective_parts(enum collective_kind kind)
{
    return kind == COLLECTIVE_PART || kind == COLLECTIVE_SUM_PART || kind == COLLECTIVE_MEAN_PART;
}

/* Members get different results, or send what they have by rows. */
static inline bool collective_routes(enum collective_kind kind, bool has_root)
{
    return collective_gathers(kind) || collective_parts(kind) ||
           (has_root && kind != COLLECTIVE_FIRST);
}

/* Returns whether a kind that adds takes the type: a sum every number but complex ones, a mean only
 * floats. */
bool collective_can_add(enum collective_kind kind, enum dtype type);

/* The terms of a sum: n arrays of a type that has a sum, in their order. 16-bit floats are added in
 * float32 and rounded once. */
struct collective_terms {
    enum dtype type;
    const void *const *values;
    int n;
    int divisor; /* of floats: by which the sum is divided; 0: by none */
};

/* Adds `count` elements. `sum` may be one of the arrays; `copy` gets the same, or is NULL. */
void collective_sum(const struct collective_terms *terms, void *sum, void *copy, int64_t count);

/* The same of n tensors of one type and shape. */
void collective_sum_tensors(const struct tensor *values, int n, int divisor, struct tensor *sum);

#endif
