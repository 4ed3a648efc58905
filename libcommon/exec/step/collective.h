/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: what the members of a group compute together, each of its own values. An executor
 * knows no more of it than this interface, so that the others may be threads or other machines. A
 * step that is given a collective can run the op AllReduce.
 *
 * Members are ranks 0 .. size-1, and results are the same bits on all: sums are added by rank,
 * unless a call names a schedule that associates otherwise. Thread-safe. Nothing here blocks a
 * thread: what has to wait calls back.
 */
#ifndef TF_EXEC_COLLECTIVE_H
#define TF_EXEC_COLLECTIVE_H

#include "collective/rows.h"
#include "collective/schedule.h"
#include "collective/sum.h"
#include "exec/step/device_point.h"

struct pool;

/* The key by which contributions meet: the same in all members, once. */
struct collective_key {
    const char *name; /* of the node; kept by whoever calls until it is answered */
    int64_t step;
    uint64_t iteration;
};

struct collective_call {
    struct collective_key key;
    const struct tensor *values; /* n, reference-counted memory, which is shared */
    const enum collective_kind *kinds;
    int n;
    /* A place in the group. FIRST is its value; of PART only its rows are parted; sums and rows are
     * for it alone, and the others get zeros like their values, or of ROWS none. */
    bool has_root;
    int root;
    /* By value, or NULL: how many rows this member is to get, of kinds that go back. PART brings
     * back what an even PART of so many rows has brought; with a root, and SUM_PART, parts are of
     * so many rows. For ROWS to another root, so many zeros. */
    const int64_t *rows;
    struct collective_group group; /* that all name alike, and that comes out even */
    struct collective_schedule schedule;
    bool by_servers;   /* large sums and rows of all go by servers, where the collective has some */
    bool with_leaving; /* members take part, too, that have said that they leave */
    bool by_device; /* sums and means of all members, of types that communicators add (exec/device/
                     * communicator.h), which may be added so, in an order of the library's */
    int32_t priority; /* smaller ones go first, where they have to wait for each other */
    bool yields; /* the caller reads the values no more: results may take the memory of those that
                  * nobody else holds, also of a call that fails */
    /* Where the values are, all of them; it is taken. On a device: pools of its memory and of the
     * host's, from which results and copies may come. They stay until the call is answered. */
    struct device_point at;
    struct pool *pool, *host_pool;
};

/* n values, which may be taken, and empty tensors left, and the number of members that took part,
 * of the group. Values may be on their way to other members still: only who is a value's one holder
 * may write to it. */
struct collective_results {
    struct tensor *values;
    struct device_point at; /* which values of a device may be for a call whose values were there */
    int members;
};

/* A waiter, which lives with its owner. `done` is called exactly once, from any thread and perhaps
 * before the call has returned, with no lock held: with results that are valid during the call, or
 * with why they will not come. */
struct collective_waiter {
    void (*done)(struct collective_waiter *waiter, const struct collective_results *results,
                 const struct error *failure);
    struct collective_waiter *next; /* the collective's own */
};

struct collective {
    int rank, size;
    /* Members must agree on types, kinds, and shapes but for the number of rows: ERR_DATA. */
    void (*reduce)(struct collective *collective, const struct collective_call *call,
                   struct collective_waiter *waiter);
    /* Instead of a call of that key and group: this member brings nothing, since what it would
     * bring is dead. Those that call get ERR_DATA, which names it; if all of a group do this,
     * nobody waits for anything. ERR_UNAVAILABLE: a member is lost. */
    int (*decline)(struct collective *collective, const struct collective_key *key,
                   const struct collective_group *group, struct error *err);
    /* Stops waiting. False: `done` has been called, or is being called. */
    bool (*cancel)(struct collective *collective, struct collective_waiter *waiter);
    /* The member takes no part any more; the others go on without it. */
    void (*leave)(struct collective *collective);
    /* Calls that have been answered may not have returned yet. */
    void (*free)(struct collective *collective);
    /* The device of which it takes values where they are, for calls by_device; NULL: it takes those
     * in host memory alone. */
    struct device *adds_on;
};

#endif
