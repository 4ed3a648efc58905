/* SPDX-License-Identifier: Apache-2.0
 *
 * Which share of some time was busy, whether one thing ran or many at once.
 */
#ifndef TF_SHOW_BUSY_H
#define TF_SHOW_BUSY_H

#include <stdint.h>

#include "base/vec.h"

struct busy_span { /* ns */
    int64_t start, end;
};

typedef VEC(struct busy_span) busy_span_vec;

/* Returns the share of `all` that `busy` covers, 0 to 1; -1: `all` is empty. In any order. */
double busy_share(const busy_span_vec *all, const busy_span_vec *busy);

#endif
