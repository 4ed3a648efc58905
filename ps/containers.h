/* SPDX-License-Identifier: Apache-2.0
 *
 * Containers as a user sees them: what a shard keeps between steps, by container and name. Each
 * function takes locks as a kernel would, so that what it shows or changes is never half of an
 * update, and waits for them no longer than its deadline: ERR_RETRY naming the variable.
 *
 * Thread-safe. Blocks: not for a thread that runs an event loop.
 */
#ifndef TF_PS_CONTAINERS_H
#define TF_PS_CONTAINERS_H

#include "base/vec.h"
#include "exec/state/variable.h"
#include "resource/clock.h"

struct container_row {
    const char *container, *name;
    enum dtype type;
    struct shape shape;
    bool initialized;
    uint64_t updates; /* writes so far */
    int64_t bytes;    /* of its value; 0: it has none */
};

struct container_list {
    VEC(struct container_row) rows; /* in the order of creation */
};

/* container, name: NULL for all. The rows' texts are the store's. */
int containers_list(struct variable_store *store, const char *container, const char *name,
                    double seconds, struct container_list *list, struct error *err);
void container_list_release(struct container_list *list);

/* A copy on the host. ERR_NOINPUT when there is none of the name, or it has no value. */
int containers_get(struct variable_store *store, const char *container, const char *name,
                   double seconds, struct tensor *value, struct error *err);

/* Gives an existing variable a value. ERR_NOINPUT when there is none of the name, ERR_DATA when
 * type or shape do not fit; nothing is changed then. */
int containers_put(struct variable_store *store, const char *container, const char *name,
                   double seconds, const struct tensor *value, struct error *err);

/* Makes each variable of a container as it was before its first assignment, all of them or none,
 * and gives their memory back. ERR_NOINPUT when there is no such container. *n: how many. */
int containers_reset(struct variable_store *store, const char *container, double seconds, int *n,
                     struct error *err);

/* ---- for what works on several variables at once ---- */

/* Locks every variable of a container (NULL: of all), in the order of all locks. Variables that
 * were locked before a failure are in the vector, too: give them back in any case. */
int containers_lock(struct variable_store *store, const char *container, bool write, double seconds,
                    variable_vec *locked, struct error *err);
void containers_unlock(variable_vec *locked, bool write);

/* The clock of the graph's rounds. NULL: the graph has none, or is not there yet. */
struct clock *containers_clock(struct variable_store *store);

#endif
