/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's helper threads for expensive kernels. They are started when they are first needed,
 * sleep when there is nothing to do, and end with the process.
 */
#ifndef TF_EXEC_WORKERS_H
#define TF_EXEC_WORKERS_H

#include <stdbool.h>

/* Has some helper call function(argument) soon. `threads` is how many helpers there should be at
 * least by now. False when there is none (threads is 0, or the system refuses one): the caller does
 * the work itself. */
bool workers_submit(int threads, void (*function)(void *argument), void *argument);

/* Takes back what was submitted and no helper has begun; how many. */
int workers_withdraw(void (*function)(void *argument), void *argument);

#endif
