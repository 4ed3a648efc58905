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

#include "exec/step/device_point.h"
#include "exec/step/schedule.h"

struct pool;

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

/* What meets what: the same in all members, once. */
struct collective_key {
    const char *name; /* of the node; kept by whoever calls until it is answered */
    int64_t step;
    uint64_t iteration;
};

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
/* Of how many, of n in all, and whether another is of the group of member `rank`. */
int collective_group_size(const struct collective_group *group, int n);
bool collective_group_has(const struct collective_group *group, int rank, int other);

/* How large sums and means go from member to member (exec/step/schedule.h). Zeroed: directly. */
struct collective_schedule {
    enum schedule_kind kind;
    const int64_t *hosts; /* of two-level: by rank, of all members; as long as the call's key */
};

struct collective_call {
    struct collective_key key;
    const struct tensor *values; /* n, counted memory, which is shared */
    const enum collective_kind *kinds;
    int n;
    /* A place in the group. FIRST is its value; of PART only its rows are parted; sums and rows are
     * for it alone, and the others get zeros like their values, or of ROWS none. */
    bool has_root;
    int root;
    /* By value, or NULL: how many rows this member is to get, of kinds that go back. PART brings
     * back what an even PART of so many rows has brought; with a root, and SUM_PART, parts are of
     * so many rows. Of ROWS to another root: so many zeros. */
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

/* Who waits; lives with its owner. `done` is called exactly once, from any thread and perhaps
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
    bool takes_devices;     /* values where they are; else those in host memory alone, */
    struct device *adds_on; /* and, for calls by_device, those of this device; NULL: of none */
};

/* For members in one process: n of them, at most 64. All are freed, in any order.
 *
 * Values of devices are taken. If all are in the memory of one device that can add, so are the
 * results, and nothing of the host waits; a fault that a member's kernels have left is left in the
 * step blocks of all. Else they meet in host memory, and a fault fails the call of all members, in
 * the name of its node. So the plans of members on devices stay until the steps of all are over. */
void collective_local_new(int n, struct collective **members);

/* ---- whose rows go to whom ---- */

/* Of one value, among the n members that took part, by rank. */
struct collective_routing {
    enum collective_kind kind;
    int n;
    int root;               /* which of the n; -1: there is none */
    const int64_t *brought; /* rows, by member; what is not cut by rows is one */
    const int64_t *wanted;  /* as collective_call's `rows`, by member; NULL: parts are even */
};

struct row_range {
    int64_t first, count;
};

/* Members get different results, or send what they have by rows. */
static inline bool collective_routes(enum collective_kind kind, bool has_root)
{
    return collective_gathers(kind) || collective_parts(kind) ||
           (has_root && kind != COLLECTIVE_FIRST);
}

/* Part k of n of so many rows: even parts, the first ones with a row more if need be. */
struct row_range collective_part(int64_t rows, int64_t n, int64_t k);

/* The rows of a value, and the elements of one, as a routing counts them. */
int64_t collective_rows(enum collective_kind kind, const struct shape *shape);
int64_t collective_row_elements(enum collective_kind kind, const struct shape *shape);

/* Rows of member `from` that `to` gets; of a kind that adds, of the sum. */
struct row_range collective_rows_of(const struct collective_routing *routing, int from, int to);
/* What `to` gets of a value of that shape. */
struct shape collective_result_shape(const struct collective_routing *routing,
                                     const struct shape *own, int to);
/* Whether its result is zeros. */
static inline bool collective_gets_zeros(const struct collective_routing *routing, int to)
{
    return routing->root >= 0 && routing->root != to && !collective_parts(routing->kind) &&
           routing->kind != COLLECTIVE_FIRST;
}
/* ERR_DATA: parts do not come out even, or there are other rows than members want. */
int collective_check_rows(const struct collective_routing *routing, struct error *err);

/* ERR_DATA: the kind has nothing for values of that type and shape. */
int collective_check_value(enum collective_kind kind, const struct tensor *value,
                           struct error *err);

/* ---- combining ---- */

/* Combines what members brought, by rank; of one kind, values[k] of member k, on the host: what
 * member 0 gets. The result is new memory. ERR_DATA when types or shapes do not fit. */
int collective_combine(enum collective_kind kind, const struct tensor *const *values, int n,
                       struct tensor *result, struct error *err);

/* The same for a member, by a routing, of which what is brought need not be said. With memory on a
 * device that has `sum` and without a root, enqueued in its compute queue: the result may be the
 * memory of a value, else it comes from the pool. NULL: on the host. */
struct collective_memory {
    struct device *device;
    struct pool *pool;
};
int collective_combine_for(const struct collective_memory *memory,
                           const struct collective_routing *routing,
                           const struct tensor *const *values, int member, struct tensor *result,
                           struct error *err);

/* ---- by a schedule ---- */

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

/* Of a kind that adds: a sum has every number but complex ones, a mean only floats. */
bool collective_can_add(enum collective_kind kind, enum dtype type);

/* What is added: n arrays of a type that has a sum, in their order. 16-bit floats are added in
 * float32 and rounded once. */
struct collective_terms {
    enum dtype type;
    const void *const *values;
    int n;
    int divisor; /* of floats: by which the sum is divided; 0: by none */
};

/* Adds `count` elements. `sum` may be one of the arrays; `copy` gets the same, or is NULL. */
void collective_sum(const struct collective_terms *terms, void *sum, void *copy, int64_t count);

#endif
