/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of a collective within a process: what members have brought to one call. Private to
 * collective_local*.c.
 */
#ifndef TF_EXEC_COLLECTIVE_LOCAL_PRIVATE_H
#define TF_EXEC_COLLECTIVE_LOCAL_PRIVATE_H

#include "exec/step/collective.h"

#define MEMBERS_MAX 64

struct part_copy;

struct local_part { /* of a member in a round; no waiter: it is not here */
    struct collective_waiter *waiter;
    bool declined;
    struct tensor *values;
    int64_t *rows; /* of the call; NULL: it has none */
    int n;
    struct device_point at; /* of the values */
    struct pool *pool, *host_pool;
    struct part_copy *copy; /* of them, for a round in host memory */
};

struct local_round {
    char *name;
    struct collective_key key;
    struct collective_group group;
    int size; /* of all members */
    struct collective_schedule schedule;
    int member;                  /* one of the group */
    enum collective_kind *kinds; /* n */
    int n;
    bool has_root;
    int root;
    struct local_part parts[MEMBERS_MAX];
    atomic_int n_copying; /* parts, and who begins with them */
};

void local_part_release(struct local_part *part);
void local_round_free(struct local_round *round);

/* All members are here or have left, and nobody else has the round: answers them, now or when their
 * values have been copied, and frees it. */
void local_round_conclude(struct local_round *round);

#endif
