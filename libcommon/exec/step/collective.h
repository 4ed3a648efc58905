/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: what the members of a group compute together, each contributing its own values. An
 * executor knows only this interface, so the other members may be threads or other machines. A step
 * that is given a collective can run the op AllReduce.
 *
 * Members are ranks 0 .. size-1, and results are the same bits on all: sums are added by rank,
 * unless a call names a schedule that associates otherwise. Thread-safe. Nothing here blocks a
 * thread: whatever has to wait calls back.
 */
#ifndef TF_EXEC_COLLECTIVE_H
#define TF_EXEC_COLLECTIVE_H

#include "collective/rows.h"
#include "collective/schedule.h"
#include "collective/sum.h"
#include "exec/step/device_point.h"

struct pool;

/* The key by which contributions meet: equal in all members, and used once. */
struct collective_key {
    const char *name; /* of the node; the caller keeps it until `done` */
    int64_t step;
    uint64_t iteration;
};

struct collective_call {
    struct collective_key key;
    const struct tensor *values; /* n, reference-counted memory, which is shared */
    const enum collective_kind *kinds;
    int n;
    /* A root, if any, by rank in the group. FIRST takes its value, PART splits only its rows; only
     * the root gets sums and rows: the others get zeros like their values, or no rows for ROWS. */
    bool has_root;
    int root;
    /* By value, or NULL: how many rows this member gets back. PART returns what an even PART of so
     * many rows has split; with a root, and for SUM_PART, parts have so many rows. For ROWS to
     * another root: so many zeros. */
    const int64_t *rows;
    struct collective_group group; /* named alike by all; it must divide the members evenly */
    struct collective_schedule schedule;
    bool by_servers;   /* large sums and rows of all go by servers, if the collective has any */
    bool with_leaving; /* members that have said that they leave take part, too */
    bool by_device;    /* sums and means of all members may be added in the order of a library, if
                        * communicators add their types (exec/device/communicator.h) */
    int32_t priority;  /* calls with smaller ones go first when calls queue */
    bool yields;       /* the caller does not read the values again: results may reuse the memory of
                        * values that nobody else holds, also in a call that fails */
    /* The place of all the values; it is taken. On a device: pools of its memory and of the host's,
     * which results and copies may come from. The pools stay until `done`. */
    struct device_point at;
    struct pool *pool, *host_pool;
};

/* n values, which may be taken (leaving empty tensors), and the number of the group's members that
 * took part. Values may still be on their way to other members: only a sole holder may write to
 * one. */
struct collective_results {
    struct tensor *values;
    struct device_point at; /* results of a call with device values may be on the device */
    int members;
};

/* A waiter, kept by its owner. `done` is called exactly once, from any thread and perhaps before
 * the call has returned, with no lock held: with results that are valid during the call, or with
 * the reason why there are none. */
struct collective_waiter {
    void (*done)(struct collective_waiter *waiter, const struct collective_results *results,
                 const struct error *failure);
};

struct collective {
    int rank, size;
    /* Members must agree on types, kinds and shapes, except for the number of rows: ERR_DATA. */
    void (*reduce)(struct collective *collective, const struct collective_call *call,
                   struct collective_waiter *waiter);
    /* Replaces a call of that key and group: this member contributes nothing, since its
     * contribution is dead. Members that call get ERR_DATA, which names it; if all members of a
     * group decline, nobody waits. ERR_UNAVAILABLE: a member is lost. */
    int (*decline)(struct collective *collective, const struct collective_key *key,
                   const struct collective_group *group, struct error *err);
    /* Stops waiting. False: `done` has been called, or is being called. */
    bool (*cancel)(struct collective *collective, struct collective_waiter *waiter);
    /* The member takes no further part; the others continue without it. */
    void (*leave)(struct collective *collective);
    /* Calls whose `done` was called may not have returned yet. */
    void (*free)(struct collective *collective);
    /* The device whose values it takes in place, for calls by_device; NULL: it takes only values in
     * host memory. */
    struct device *adds_on;
};

#endif
