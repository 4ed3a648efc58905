/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of collectives, and sums of arrays in a fixed order.
 */
#ifndef TF_COLLECTIVE_SUM_H
#define TF_COLLECTIVE_SUM_H

#include "tensor/tensor.h"

/* The result that the members of a collective compute together from one value of each. */
enum collective_kind {
    COLLECTIVE_SUM,       /* of all members, element by element */
    COLLECTIVE_FIRST,     /* the value of the least rank: a broadcast */
    COLLECTIVE_ROWS,      /* the rows of all members, concatenated; their number may differ */
    COLLECTIVE_MEAN,      /* the sum divided by the number of members that took part; floats only */
    COLLECTIVE_MEAN_ROWS, /* all rows, divided by that number; floats only */
    COLLECTIVE_PART,      /* this member's part of the rows of each member, concatenated */
    COLLECTIVE_SUM_PART,  /* this member's part of the rows of the sum */
    COLLECTIVE_MEAN_PART, /* this member's part of the rows of the mean */
};

/* The values of all members are added element by element. */
static inline bool collective_adds(enum collective_kind kind)
{
    return kind == COLLECTIVE_SUM || kind == COLLECTIVE_MEAN || kind == COLLECTIVE_SUM_PART ||
           kind == COLLECTIVE_MEAN_PART;
}

/* The rows of members are concatenated. */
static inline bool collective_gathers(enum collective_kind kind)
{
    return kind == COLLECTIVE_ROWS || kind == COLLECTIVE_MEAN_ROWS || kind == COLLECTIVE_PART;
}

static inline bool collective_divides(enum collective_kind kind)
{
    return kind == COLLECTIVE_MEAN || kind == COLLECTIVE_MEAN_ROWS || kind == COLLECTIVE_MEAN_PART;
}

/* Each member gets a different part of the rows. */
static inline bool collective_parts(enum collective_kind kind)
{
    return kind == COLLECTIVE_PART || kind == COLLECTIVE_SUM_PART || kind == COLLECTIVE_MEAN_PART;
}

/* Members get different results, or send their values by rows. */
static inline bool collective_routes(enum collective_kind kind, bool has_root)
{
    return collective_gathers(kind) || collective_parts(kind) ||
           (has_root && kind != COLLECTIVE_FIRST);
}

/* Returns whether a kind that adds supports the type: sums support all numeric types but complex
 * ones, means only floats. */
bool collective_can_add(enum collective_kind kind, enum dtype type);

/* The terms of a sum: n arrays of a type that can be added, in their order. 16-bit floats are added
 * in float32 and rounded once. */
struct collective_terms {
    enum dtype type;
    const void *const *values;
    int n;
    int divisor; /* the sum is divided by it, floats only; 0: no division */
};

/* Adds `count` elements. `sum` may be one of the arrays; `copy` gets the same, or is NULL. */
void collective_sum(const struct collective_terms *terms, void *sum, void *copy, int64_t count);

/* As collective_sum, for n tensors of one type and shape. */
void collective_sum_tensors(const struct tensor *values, int n, int divisor, struct tensor *sum);

#endif
