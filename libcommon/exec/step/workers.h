/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's helper threads for expensive kernels. They are started when they are first needed,
 * sleep when there is nothing to do, and end with the process.
 */
#ifndef TF_EXEC_WORKERS_H
#define TF_EXEC_WORKERS_H

#include <stdbool.h>

/* Has a helper call function(argument) soon. `threads` is the least number of helpers that there
 * should be. Returns false if there is none (threads is 0, or the system refuses one): the caller
 * does the work itself. */
bool workers_submit(int threads, void (*function)(void *argument), void *argument);

/* Takes back submitted work that no helper has begun; returns how many. */
int workers_withdraw(void (*function)(void *argument), void *argument);

#endif
