/* SPDX-License-Identifier: Apache-2.0
 *
 * What the members of a collective compute together of a value each.
 */
#ifndef TF_COLLECTIVE_KIND_H
#define TF_COLLECTIVE_KIND_H

#include <stdbool.h>

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

#endif
