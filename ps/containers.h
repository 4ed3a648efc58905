/* SPDX-License-Identifier: Apache-2.0
 *
 * Containers as a user sees them: what a shard keeps between steps, by container and name. Each
 * function takes locks as a kernel would, so that it never shows or overwrites half an update. It
 * waits for them until its deadline: ERR_RETRY naming the variable.
 *
 * Thread-safe. The functions block: not for a thread that runs an event loop.
 */
#ifndef TF_PS_CONTAINERS_H
#define TF_PS_CONTAINERS_H

#include "base/vec.h"
#include "exec/state/variable.h"
#include "resource/clock.h"

/* Selects variables; NULL: any. */
struct variable_place {
    const char *container, *name;
};

/* Copies a variable to the host. ERR_NOINPUT: it does not exist, or has no value. */
int containers_get(struct variable_store *store, const char *container, const char *name,
                   double seconds, struct tensor *value, struct error *err);

/* Gives an existing variable a value. ERR_NOINPUT: it does not exist; ERR_DATA: type or shape do
 * not fit. Then nothing is changed. */
int containers_put(struct variable_store *store, const char *container, const char *name,
                   double seconds, const struct tensor *value, struct error *err);

/* Resets each variable of a container to its state before its first assignment, all of them or
 * none, and frees their memory. *n: their number. ERR_NOINPUT: there is no such container. */
int containers_reset(struct variable_store *store, const char *container, double seconds, int *n,
                     struct error *err);

/* ---- for callers that work on several variables at once ---- */

/* Locks every variable of that place (NULL: all), in the order of creation, which is the global
 * lock order. After a failure the vector holds those locked so far: unlock them in any case. */
int containers_lock(struct variable_store *store, const struct variable_place *place, bool write,
                    double seconds, variable_vec *locked, struct error *err);
void containers_unlock(variable_vec *locked, bool write);

/* The clock of the graph's rounds. NULL: the graph has none, or has not come yet. */
struct clock *containers_clock(struct variable_store *store);

#endif
