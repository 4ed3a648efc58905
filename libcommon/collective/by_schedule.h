/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a call goes by its schedule, and by which one.
 */
#ifndef TF_COLLECTIVE_BY_SCHEDULE_H
#define TF_COLLECTIVE_BY_SCHEDULE_H

#include "collective/group.h"
#include "collective/kind.h"
#include "collective/schedule.h"
#include "tensor/tensor.h"

/* How large sums and means go from member to member (schedule.h). Zeroed: directly. */
struct collective_schedule {
    enum schedule_kind kind;
    const int64_t *hosts; /* of two-level: by rank, of all members; as long as the call's key */
};

/* What is smaller goes to all members, and is added by rank. */
#define COLLECTIVE_SMALL_BYTES ((int64_t)64 << 10)

/* Whether a value goes by the call's schedule: sums and means of all, of what is not small, and not
 * of 16-bit floats, which are rounded once. */
bool collective_goes_by_schedule(const struct collective_schedule *schedule,
                                 enum collective_kind kind, bool has_root,
                                 const struct tensor *value);

/* Into how many even parts (collective_part) such a value is cut, of the group of member `rank`
 * among `size`: part k goes as piece k mod n_pieces of the schedule of those that take part. */
int collective_schedule_parts(const struct collective_schedule *schedule,
                              const struct collective_group *group, int size, int rank);

/* That schedule, for members of these ranks. There are at most SCHEDULE_MEMBERS_MAX. */
void collective_schedule_make(const struct collective_schedule *schedule, const int *ranks, int n,
                              struct sum_schedule *made);

#endif
