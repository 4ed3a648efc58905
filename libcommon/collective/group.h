/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of members. They follow from the ranks alone, so that one graph serves all members.
 */
#ifndef TF_COLLECTIVE_GROUP_H
#define TF_COLLECTIVE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The groups of a call: members are in one group if their ranks agree in rank / (size * stride) and
 * in rank % stride; their places in it follow their ranks. With 6 members and {2, 1}: 0 1, 2 3 and
 * 4 5; with {3, 2}: 0 2 4 and 1 3 5. Zeroed: all members are one group. */
struct collective_group {
    int size, stride;
};

/* ERR_DATA when `n` members cannot be divided evenly into such groups. */
int collective_check_group(const struct collective_group *group, int n, struct error *err);
/* Return the rank at `place` in the group of member `rank`, and the place of member `rank`. */
int64_t collective_group_rank(const struct collective_group *group, int rank, int64_t place);
int collective_group_place(const struct collective_group *group, int rank);
/* Returns the size of a group among n members; returns whether member `other` is in the group of
 * member `rank`. */
int collective_group_size(const struct collective_group *group, int n);
bool collective_group_has(const struct collective_group *group, int rank, int other);

#endif
