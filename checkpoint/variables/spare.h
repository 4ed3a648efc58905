/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that variables will move to (exec/state/variable.h), made ready before they do. The first
 * writer after a value was shared for a save would otherwise wait for the system to find and clear
 * as many pages as the variable has, in the middle of a step. A thread of its own touches them
 * while steps go on, at a pace that leaves these nearly all of the machine.
 */
#ifndef TF_CHECKPOINT_SPARE_H
#define TF_CHECKPOINT_SPARE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/state/variable.h"

struct spare { /* zero at first */
    variable_vec variables;
    pthread_t thread;
    bool is_started;
    atomic_bool is_done, is_stopped;
};

/* Begins to see to it that each large variable that was written since its first value can move once
 * without new memory, unless it is still at that. Variables that there is no memory for are left
 * out. Between steps. The store lives longer than the spare. */
void spare_begin(struct spare *spare, struct variable_store *store);

/* Breaks off: values are about to be shared, and a variable that moves takes what there is. */
void spare_break(struct spare *spare);

/* The same, and waits until the thread is gone; harmless on a zero struct. */
void spare_end(struct spare *spare);

#endif
