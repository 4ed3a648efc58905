/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums among devices of several processes by a library of their vendor, over links that the library
 * finds. A device with such a library provides these functions; transport/collective makes all
 * members call them alike.
 */
#ifndef TF_EXEC_COMMUNICATOR_H
#define TF_EXEC_COMMUNICATOR_H

#include "base/atomic.h"
#include "base/error.h"
#include "tensor/dtype.h"

struct device;
struct communicator; /* for the device: one member of a group */

#define COMMUNICATOR_ID_BYTES 128

struct communicator_place {
    char id[COMMUNICATOR_ID_BYTES]; /* of the group; one member has made it */
    int n, rank;
};

/* The sum of all members' arrays, which all members get. Both arrays are in the device's memory,
 * and may be the same. The library chooses the order of addition. */
struct communicator_sum {
    const void *from;
    void *to;
    int64_t count;
    enum dtype type; /* one that communicator_adds */
    bool mean;       /* divides by n; floats only */
};

/* From any thread, one at a time for each communicator. Calls that wait for other members end
 * early, with ERR_CANCELLED, when *gives_up is set. */
struct communicator_functions {
    /* Describes what must be equal in all members: "sm=90 cuda=13.0 nccl=22809". ERR_UNAVAILABLE
     * says what is missing, such as the library. */
    int (*describe)(struct device *device, char *text, size_t bytes, struct error *err);
    int (*make_id)(struct device *device, char *id, struct error *err);
    /* Waits for all other members. */
    struct communicator *(*join)(struct device *device, const struct communicator_place *place,
                                 const atomic_bool *gives_up, struct error *err);
    /* Enqueues a sum in QUEUE_COMPUTE; all members in the same order. */
    int (*add)(struct communicator *communicator, const struct communicator_sum *sum,
               const atomic_bool *gives_up, struct error *err);
    /* Returns an error code if the library has found that the group is broken. */
    int (*check)(struct communicator *communicator, struct error *err);
    /* Makes enqueued work end, with garbage, whatever the others do. No more may be added. */
    void (*abort)(struct communicator *communicator);
    /* Called when all enqueued work is over, or after an abort. */
    void (*free)(struct communicator *communicator);
};

/* Types whose sums are the same as elsewhere: 16-bit floats would be rounded more than once, and
 * small integers are not worth it. */
static inline bool communicator_adds(enum dtype type)
{
    return type == FLOAT32 || type == FLOAT64 || type == INT32 || type == INT64;
}

#endif
