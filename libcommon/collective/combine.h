/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes of the values of all members where one process has them: the reference of whatever
 * sends them, which gives the same bits.
 */
#ifndef TF_COLLECTIVE_COMBINE_H
#define TF_COLLECTIVE_COMBINE_H

#include "collective/group.h"
#include "collective/rows.h"
#include "collective/schedule.h"
#include "collective/sum.h"
#include "tensor/tensor.h"

/* ERR_DATA: the kind has nothing for values of that type and shape. */
int collective_check_value(enum collective_kind kind, const struct tensor *value,
                           struct error *err);

/* Combines what members brought, by rank; of one kind, values[k] of member k, on the host: what
 * member 0 gets. The result is new memory. ERR_DATA when types or shapes do not fit. */
int collective_combine(enum collective_kind kind, const struct tensor *const *values, int n,
                       struct tensor *result, struct error *err);

/* Memory that is not the host's, in which values are and results will be. */
struct collective_memory {
    void *context;
    int (*alloc)(void *context, enum dtype type, const struct shape *shape, struct tensor *result,
                 struct error *err);
    int (*copy)(void *context, void *to, const void *from, size_t bytes, struct error *err);
    /* As collective_sum, with the same bits. */
    int (*sum)(void *context, const struct collective_terms *terms, void *sum, int64_t count,
               struct error *err);
};

/* The same for a member, by a routing, of which what is brought need not be said. NULL: on the
 * host. Other memory is for kinds without a root alone, and the result may be that of a value. */
int collective_combine_for(const struct collective_memory *memory,
                           const struct collective_routing *routing,
                           const struct tensor *const *values, int member, struct tensor *result,
                           struct error *err);

/* ---- by a schedule ---- */

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

/* What comes of the values of those members, by rank, in host memory: the bits that a schedule of
 * so many parts gives. */
int collective_combine_by(const struct sum_schedule *schedule, int n_parts,
                          enum collective_kind kind, const struct tensor *const *values,
                          struct tensor *result, struct error *err);

#endif
