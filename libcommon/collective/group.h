/* SPDX-License-Identifier: Apache-2.0
 *
 * Which members are of one group: a function of their ranks, so that one graph serves them all.
 */
#ifndef TF_COLLECTIVE_GROUP_H
#define TF_COLLECTIVE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Whose call it is, in every group at once: members are of one group whose ranks agree in
 * rank / (size * stride) and in rank % stride, and have places in it by rank. With 6 members and
 * {2, 1}: 0 1, 2 3 and 4 5; with {3, 2}: 0 2 4 and 1 3 5. Zeroed: all members are one group. */
struct collective_group {
    int size, stride;
};

/* ERR_DATA when `n` members do not come out even in such groups. */
int collective_check_group(const struct collective_group *group, int n, struct error *err);
/* The rank of who has that place in the group of member `rank`, and the place of that member. */
int64_t collective_group_rank(const struct collective_group *group, int rank, int64_t place);
int collective_group_place(const struct collective_group *group, int rank);
/* Returns the size of a group among n members, and whether another is in the group of member
 * `rank`. */
int collective_group_size(const struct collective_group *group, int n);
bool collective_group_has(const struct collective_group *group, int rank, int other);

#endif
