/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables: state that outlives steps, by container and name, updated in place.
 *
 * The rule that overlapping steps and background checkpoints rest on: within a step, a read sees
 * the writes from which a path of the graph leads to it (graph/access.h; the planner adds the
 * order); between steps a writer has the variable for itself, readers share it. A kernel never
 * waits for that: the executor takes the lock before it runs the kernel, and puts a node aside
 * until its lock is free.
 *
 * A lock is short. A reader that wants a value for longer (to send it, to save it, for a later
 * item) shares its reference-counted memory, which costs nothing however large it is. A writer that
 * finds such holders leaves them the memory and moves the variable to other memory, so that nobody
 * waits for a reader and a value that somebody has never changes. So the address of a value is that
 * of one step. It is of the variable's whole life on devices with memory of their own, where
 * readers copy. In a process that others read variables of, what is sent lies in memory that these
 * map: a read copies nothing, and one in another process is a holder as any other.
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
struct variable_snapshot;
struct variable_waiter;

struct variable {
    const char *container, *name;
    int id; /* 0, 1, ... in the order of creation; locks that are kept together are taken so */
    enum dtype type;
    struct shape shape;  /* static; dimensions unknown here are fixed by the first assignment */
    bool is_local;       /* its process sets it whenever it begins: checkpoints leave it out */
    struct tensor value; /* data NULL before the first assignment */
    bool initialized;
    uint64_t updates; /* writes so far */
    struct device *device;
    struct variable_store *store; /* that has it; NULL: none */
    struct variable *next;        /* in the store, which guards it, */
    struct variable *same_name;   /* and the next of this name, of another container */
    bool is_replaced;             /* by one that was declared otherwise; who had it has it still */
    atomic_bool is_withdrawn;     /* its declaration holds for those who know it alone */
    atomic_bool is_sent;          /* to other processes: set by who plans with it */

    /* The writer's: */
    struct tensor left; /* the memory that it has moved from, until it gives its lock back */
    struct pool *pool;  /* what it moves to, used in turns; NULL: it never had to */

    pthread_mutex_t mutex;                              /* guards what follows */
    int readers;                                        /* that have the lock; -1: a writer */
    struct variable_waiter *first_waiter, *last_waiter; /* first come, first served */
    struct variable_snapshot
        *snapshot; /* the value is wanted as it is (variable_snapshot); NULL: it is not */
    struct variable_slice slice; /* of what is there already: variable_get_slice */
};

typedef VEC(struct variable *) variable_vec;

/* Someone who waits for a lock; lives with its owner. `resume` is called without the mutex held, by
 * the thread that released, once the lock has been taken for the waiter. */
struct variable_waiter {
    bool write;
    void (*resume)(struct variable_waiter *waiter);
    struct variable_waiter *next;
};

/* Takes the lock if it is free now and nobody waits; else queues the waiter and returns false. */
bool variable_lock(struct variable *variable, bool write, struct variable_waiter *waiter);
void variable_unlock(struct variable *variable, bool write);
/* The same for threads that may block: tools that save and restore. The second gives up after
 * `seconds` and returns false. */
void variable_lock_wait(struct variable *variable, bool write);
bool variable_lock_until(struct variable *variable, bool write, double seconds);

enum variable_write {
    VARIABLE_UPDATE,    /* of what is there, which a value that has moved is a copy of */
    VARIABLE_OVERWRITE, /* all of it: what was there is not needed */
    VARIABLE_RESHAPE,   /* the same, and the shape may be another one */
};

/* For kernels that write, with the lock: memory for a value of this shape that nobody else has. The
 * first assignment allocates; later shapes must be equal but for VARIABLE_RESHAPE. ERR_DATA on a
 * mismatch, ERR_OS without memory; the value is as it was then. The caller fills value.data and
 * calls variable_written. A value that was at another address before stays there until the lock is
 * given back: an input of the same kernel may be that memory. */
int variable_prepare_write(struct variable *variable, const struct shape *shape,
                           enum variable_write how, struct error *err);
void variable_written(struct variable *variable);

/* Returns whether a value of that memory may be taken as it is. */
bool variable_may_take_memory(const struct variable *variable, const struct tensor *value);
/* The same as variable_prepare_write, to overwrite or to reshape, and the caller's copy of all of
 * `value`, whose memory becomes the variable's; after an error it is the caller's still. */
int variable_take_memory(struct variable *variable, const struct tensor *value,
                         enum variable_write how, struct error *err);

/* Returns whether values are shared with readers, or copied for them as the device has its own
 * memory. */
bool variable_is_shared(const struct variable *variable);

/* With the lock: the value in host memory, not to be changed, which the caller releases: shared, or
 * a copy. ERR_NOINPUT when there is none. */
int variable_get_value(const struct variable *variable, struct tensor *value, struct error *err);
/* With the lock of a writer: a value from host memory of the variable's type, whose memory is
 * shared until one of its holders writes, or is copied. ERR_DATA when the shape does not fit. */
int variable_put_in(struct variable *variable, const struct tensor *value, struct error *err);

/* Without the lock: new memory that the variable will move to, once it is released, should somebody
 * have its value when it is written next. False when it would not move, has such memory, or may
 * have to do without, as memory is limited. */
bool variable_other_memory(struct variable *variable, struct tensor *other);

/* With the lock of a writer: as before the first assignment, but for the count of updates. Gives
 * the memory back. */
void variable_clear(struct variable *variable);
/* The same, and whoever asks the store for one of this name next may declare it otherwise, unless a
 * value is written before. */
void variable_withdraw(struct variable *variable);

/* A slice that was not known when the variable was made comes with a later variable_store_get. Once
 * there it stays; the name is the variable's. */
struct variable_slice variable_get_slice(struct variable *variable);

/* ---- snapshots ---- */

/* Variables as they were at one moment, while steps go on. Where values are shared
 * (exec/state/variable.h) that is sharing them. On a device with memory of its own each variable is
 * marked, which takes no time, and the first writer after that copies the value out before it
 * changes it; whoever wants the values collects them meanwhile from those that nobody has written
 * yet.
 *
 * The moment is consistent when no step runs that writes: between two steps of a driver. */

struct variable_snapshot {
    struct variable *variable;
    struct tensor value; /* shared, or once it was copied; in host memory */
    uint64_t updates;    /* at the moment of the snapshot */
    struct variable_slice slice;
    struct error err; /* of the writer who could not copy it */
};

struct variable_snapshots {
    struct variable_snapshot *items; /* do not move while they are placed */
    size_t n;
};

/* Marks those of the variables that have a value. Nobody writes them meanwhile: they are locked,
 * or no step runs that writes. A variable whose value is not shared has one snapshot at a time. */
void variable_snapshots_place(const variable_vec *variables, struct variable_snapshots *snapshots);

/* Copies what no writer has copied yet, from any one thread; a writer waits for the copy of one
 * variable at most. On return all values are there. ERR_OS without memory. */
int variable_snapshots_collect(struct variable_snapshots *snapshots, struct error *err);

/* Takes away what is still marked and frees the values. */
void variable_snapshots_release(struct variable_snapshots *snapshots);

/* ---- the store: all variables of a process ---- */

struct variable_store;

struct variable_store *variable_store_new(void);
void variable_store_free(struct variable_store *store);

/* The memory from which values of its variables are sent; NULL, as at first: they are copied there.
 * A variable whose value is sent is there, or moves there when it is written next. To be set back
 * before the memory goes. */
void variable_store_send_from(struct variable_store *store, struct outgoing_memory *outgoing);
struct outgoing_memory *variable_store_outgoing(const struct variable_store *store);

/* Finds or makes. ERR_DATA when one of that name has another type or an incompatible shape, and is
 * not withdrawn; one that is is replaced.
 * Thread-safe. The pointer is valid as long as the store. */
int variable_store_get(struct variable_store *store, const struct variable *like,
                       struct variable **variable, struct error *err);
struct variable *variable_store_find(struct variable_store *store, const char *container,
                                     const char *name); /* NULL: none */
/* Told of each variable that is made from now on, before anybody can find it. After an error, which
 * is that of variable_store_get, there is no such variable. One for a store; lives longer than the
 * store is used. Not from within `made`. */
struct variable_watcher {
    int (*made)(struct variable_watcher *watcher, struct variable *variable, struct error *err);
};
void variable_watch(struct variable_store *store, struct variable_watcher *watcher);

/* The next one of the store that was not replaced, in the order of creation; NULL: the first, and
 * after the last. */
struct variable *variable_store_next(struct variable_store *store, const struct variable *variable);

#endif
