/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables: state that outlives steps, by container and name, updated in place.
 *
 * Overlapping steps and background checkpoints rest on this rule: within a step, a read sees the
 * writes from which a path of the graph leads to it (graph/access.h; the planner adds the order);
 * between steps a writer has the variable for itself, and readers share it. A kernel never waits
 * for that: the executor takes the lock before it runs the kernel, and puts the node aside until
 * its lock is free.
 *
 * A lock is held briefly. A reader that needs a value for longer (to send it, to save it, for a
 * later item) shares its reference-counted memory, which costs nothing, however large it is. A
 * writer that finds such holders leaves them the memory and moves the variable to other memory, so
 * that nobody waits for a reader, and a value that others hold never changes. So the address of a
 * value is valid for one step. On devices with memory of their own, where readers copy, it never
 * changes. In a process whose variables other processes read, sent values lie in memory that these
 * map: a read copies nothing, and a reader in another process is a holder as any other.
 */
#ifndef TF_EXEC_VARIABLE_H
#define TF_EXEC_VARIABLE_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/vec.h"
#include "tensor/slice.h"
#include "tensor/tensor.h"

struct device;
struct outgoing_memory;
struct pool;
struct resource;
struct variable_snapshot;
struct variable_waiter;

struct variable {
    const char *container, *name;
    int id; /* 0, 1, ... in the order of creation; several locks are taken in this order */
    enum dtype type;
    struct shape shape;  /* static; dimensions unknown here are fixed by the first assignment */
    bool is_local;       /* its process sets it at each start: checkpoints leave it out */
    struct tensor value; /* data NULL before the first assignment */
    bool initialized;
    uint64_t updates; /* writes so far */
    struct device *device;
    struct variable_store *store; /* that contains it; NULL: none */
    struct variable *same_name;   /* the next in the store of this name, of another container */
    bool is_replaced;             /* by one that was declared otherwise; its users keep it */
    atomic_bool is_withdrawn;     /* its declaration binds only those who have it */
    atomic_bool is_sent;          /* to other processes; set by planners */

    /* For the writer: */
    struct tensor left; /* the memory that it has moved from, until the writer's lock is released */
    struct pool *pool;  /* that it moves to, used in turns; NULL: it has never moved */

    pthread_mutex_t mutex;                              /* guards the members below */
    int readers;                                        /* that have the lock; -1: a writer has
                                                         * it */
    struct variable_waiter *first_waiter, *last_waiter; /* first come, first served */
    struct variable_snapshot
        *snapshot; /* the next writer must copy the value (variable_snapshot); NULL: none */
    struct variable_slice slice; /* set when it becomes known: variable_get_slice */
};

typedef VEC(struct variable *) variable_vec;

/* A waiter for a lock, kept by its owner. `resume` is called without the mutex held, by the thread
 * that released, once the lock has been taken for the waiter. */
struct variable_waiter {
    bool write;
    void (*resume)(struct variable_waiter *waiter);
    struct variable_waiter *next;
};

/* Takes the lock if it is free and nobody waits; else queues the waiter and returns false. */
bool variable_lock(struct variable *variable, bool write, struct variable_waiter *waiter);
void variable_unlock(struct variable *variable, bool write);
/* The same for threads that may block, such as tools that save and restore. variable_lock_until
 * gives up after `seconds` and returns false. */
void variable_lock_wait(struct variable *variable, bool write);
bool variable_lock_until(struct variable *variable, bool write, double seconds);

enum variable_write {
    VARIABLE_UPDATE,    /* changes the value, which is copied if it has to move */
    VARIABLE_OVERWRITE, /* replaces the value: the old one is not needed */
    VARIABLE_RESHAPE,   /* likewise, and the shape may change */
};

/* For kernels that write, with the lock held: makes memory for a value of this shape that nobody
 * else has. The first assignment allocates; later shapes must be equal, except for
 * VARIABLE_RESHAPE. ERR_DATA on a mismatch, ERR_OS without memory; then the value is unchanged. The
 * caller fills value.data and calls variable_written. The old value stays at its address until the
 * lock is released: an input of the same kernel may be that memory. */
int variable_prepare_write(struct variable *variable, const struct shape *shape,
                           enum variable_write how, struct error *err);
void variable_written(struct variable *variable);

/* Returns whether the value's memory may become the variable's. */
bool variable_may_take_memory(const struct variable *variable, const struct tensor *value);
/* Replaces variable_prepare_write, to overwrite or to reshape, and the copy of `value`, whose
 * memory becomes the variable's; after an error the memory is still the caller's. */
int variable_take_memory(struct variable *variable, const struct tensor *value,
                         enum variable_write how, struct error *err);

/* Returns whether readers share values; else the device has memory of its own, and values are
 * copied. */
bool variable_is_shared(const struct variable *variable);

/* With the lock held: gets the value in host memory, not to be changed, which the caller releases:
 * shared, or a copy. ERR_NOINPUT: there is none. */
int variable_get_value(const struct variable *variable, struct tensor *value, struct error *err);
/* With a writer's lock: sets a value from host memory, of the variable's type. Its memory is shared
 * until one of its holders writes, or it is copied. ERR_DATA: the shape does not fit. */
int variable_put_in(struct variable *variable, const struct tensor *value, struct error *err);

/* Without the lock: gets new memory that the variable will move to, once that is released, if
 * others hold its value at the next write. False: it would not move, has such memory already, or
 * must do without, as memory is limited. */
bool variable_other_memory(struct variable *variable, struct tensor *other);

/* With a writer's lock: restores the state before the first assignment, except for the number of
 * updates. Frees the memory. */
void variable_clear(struct variable *variable);
/* As variable_clear, and the next request to the store for this name may declare the variable
 * otherwise, unless a value is written before. */
void variable_withdraw(struct variable *variable);

/* A slice that was unknown when the variable was made is set by a later variable_store_get, and
 * then never changes; its name is the variable's. */
struct variable_slice variable_get_slice(struct variable *variable);

/* ---- snapshots ---- */

/* Variables as they were at one moment, while steps go on. Where readers share values
 * (exec/state/variable.h) a snapshot shares them. On a device with memory of its own each variable
 * is marked, which takes no time, and the next writer copies the value out before it changes it;
 * meanwhile variable_snapshots_collect copies the values that nobody has written yet.
 *
 * The moment is consistent if no step that writes runs: between two steps of a driver. */

struct variable_snapshot {
    struct variable *variable;
    struct tensor value; /* shared, or set when it was copied; in host memory */
    uint64_t updates;    /* at the moment of the snapshot */
    struct variable_slice slice;
    struct error err; /* of a writer that could not copy it */
};

struct variable_snapshots {
    struct variable_snapshot *items; /* must not move while they are placed */
    size_t n;
};

/* Marks those of the variables that have a value. Nobody may write them meanwhile: they are locked,
 * or no step that writes runs. A variable whose value is not shared has one snapshot at a time. */
void variable_snapshots_place(const variable_vec *variables, struct variable_snapshots *snapshots);

/* Copies values that no writer has copied yet, from one thread at a time; a writer waits for the
 * copy of at most one variable. On return all values are there. ERR_OS without memory. */
int variable_snapshots_collect(struct variable_snapshots *snapshots, struct error *err);

/* Removes the remaining marks and frees the values. */
void variable_snapshots_release(struct variable_snapshots *snapshots);

/* ---- the store: all variables of a process ---- */

struct variable_store;

struct variable_store *variable_store_new(void);
void variable_store_free(struct variable_store *store);

/* Sets the memory from which values of the store's variables are sent; NULL, the default: they are
 * copied to be sent. A variable whose value is sent is there, or moves there at its next write.
 * Must be reset before the memory goes. */
void variable_store_send_from(struct variable_store *store, struct outgoing_memory *outgoing);
struct outgoing_memory *variable_store_outgoing(const struct variable_store *store);

/* Finds or makes a variable. ERR_DATA if the name exists with another type or an incompatible
 * shape; but if that variable was withdrawn, it is replaced. Thread-safe. The pointer is valid as
 * long as the store. */
int variable_store_get(struct variable_store *store, const struct variable *like,
                       struct variable **variable, struct error *err);
struct variable *variable_store_find(struct variable_store *store, const char *container,
                                     const char *name); /* NULL: none */
/* Told of each variable, and each resource, that is made from now on, before anybody can find it.
 * If `made` returns an error, variable_store_get fails with it, and there is no such variable. One
 * for a store; it must live as long as the store is used. Not to be called from within these. */
struct variable_watcher {
    int (*made)(struct variable_watcher *watcher, struct variable *variable, struct error *err);
    void (*made_resource)(struct variable_watcher *watcher, const struct resource *resource);
};
void variable_watch(struct variable_store *store, struct variable_watcher *watcher);

/* The next variable of the store that was not replaced, in the order of creation; NULL: the first,
 * and after the last. */
struct variable *variable_store_next(struct variable_store *store, const struct variable *variable);

#endif
