/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of arrays, by their order.
 */
#ifndef TF_COLLECTIVE_SUM_H
#define TF_COLLECTIVE_SUM_H

#include "collective/kind.h"
#include "tensor/dtype.h"

/* Of a kind that adds: a sum has every number but complex ones, a mean only floats. */
bool collective_can_add(enum collective_kind kind, enum dtype type);

/* What is added: n arrays of a type that has a sum, in their order. 16-bit floats are added in
 * float32 and rounded once. */
struct collective_terms {
    enum dtype type;
    const void *const *values;
    int n;
    int divisor; /* of floats: by which the sum is divided; 0: by none */
};

/* Adds `count` elements. `sum` may be one of the arrays; `copy` gets the same, or is NULL. */
void collective_sum(const struct collective_terms *terms, void *sum, void *copy, int64_t count);

#endif
