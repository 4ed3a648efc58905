/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory prepared in advance, to which variables will move (exec/state/variable.h). The first
 * writer after a value was shared for a save would otherwise wait for the system to find and clear
 * as many pages as the variable has, in the middle of a step. So a separate thread touches the
 * pages while steps go on, slowly enough to leave the steps nearly all of the machine.
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

/* Starts to prepare memory for one move of each large variable that was written since its first
 * value; does nothing while it is still preparing. Variables that there is no memory for are left
 * out. Called between steps. The store must outlive the spare. */
void spare_begin(struct spare *spare, struct variable_store *store);

/* Stops preparing: values are about to be shared, and a variable that moves uses what is ready. */
void spare_break(struct spare *spare);

/* Stops preparing and waits for the thread to end; harmless on a zero struct. */
void spare_end(struct spare *spare);

#endif
