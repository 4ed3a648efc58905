/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums among devices of several processes by a library of their vendor's, over wires that it finds
 * by itself. A device that has such a library brings these functions; who has the processes meet
 * (transport/collective) sees to it that all members call alike.
 */
#ifndef TF_EXEC_COMMUNICATOR_H
#define TF_EXEC_COMMUNICATOR_H

#include "base/atomic.h"
#include "base/error.h"
#include "tensor/dtype.h"

struct device;
struct communicator; /* the device's own: one member of a group */

#define COMMUNICATOR_ID_BYTES 128

struct communicator_place {
    char id[COMMUNICATOR_ID_BYTES]; /* the group's, which one member has made */
    int n, rank;
};

/* The sum of all members' arrays, which all get. Both are in the device's memory, and may be the
 * same. The order in which terms are added is the library's own. */
struct communicator_sum {
    const void *from;
    void *to;
    int64_t count;
    enum dtype type; /* communicator_adds */
    bool mean;       /* divided by n; of floats */
};

/* From any thread, one at a time of one communicator. Calls that wait for other members end early,
 * with ERR_CANCELLED, when *gives_up is set. */
struct communicator_functions {
    /* Describes what all members must have alike: "sm=90 cuda=13.0 nccl=22809". ERR_UNAVAILABLE
     * says what is missing: there is no library. */
    int (*describe)(struct device *device, char *text, size_t bytes, struct error *err);
    int (*make_id)(struct device *device, char *id, struct error *err);
    /* Waits for all others. */
    struct communicator *(*join)(struct device *device, const struct communicator_place *place,
                                 const atomic_bool *gives_up, struct error *err);
    /* Enqueued in QUEUE_COMPUTE; all members in the same order. */
    int (*add)(struct communicator *communicator, const struct communicator_sum *sum,
               const atomic_bool *gives_up, struct error *err);
    /* Returns whether the library has found that the group is broken: an error code. */
    int (*check)(struct communicator *communicator, struct error *err);
    /* Work that is enqueued ends, with garbage, whatever the others do. No more is to be added. */
    void (*abort)(struct communicator *communicator);
    /* After all that was enqueued, or an abort. */
    void (*free)(struct communicator *communicator);
};

/* Types that are added as they are elsewhere: 16-bit floats are to be rounded once, and small
 * integers are not worth it. */
static inline bool communicator_adds(enum dtype type)
{
    return type == FLOAT32 || type == FLOAT64 || type == INT32 || type == INT64;
}

#endif
