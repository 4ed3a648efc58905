/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of some time was filled by what ran in it, be it one thing or many at once.
 */
#ifndef TF_SHOW_BUSY_H
#define TF_SHOW_BUSY_H

#include <stdint.h>

#include "base/vec.h"

struct busy_span { /* ns */
    int64_t start, end;
};

typedef VEC(struct busy_span) busy_span_vec;

/* The part of `all` that `busy` covers, 0 to 1; -1: there is no time in `all`. In any order. */
double busy_share(const busy_span_vec *all, const busy_span_vec *busy);

#endif
