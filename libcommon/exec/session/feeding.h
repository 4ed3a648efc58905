/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathering the feeds of a driver's steps from records (driver_next_feeds). Once devices want feeds
 * a thread reads the records of the next step while one runs, and stages what devices want of them
 * (exec/step/staged.h). An error or the end of the records is told when the step comes that it is
 * for.
 */
#ifndef TF_EXEC_FEEDING_H
#define TF_EXEC_FEEDING_H

#include "exec/session/driver.h"

/* Whatever the thread is waiting for. The driver's devices are there still. */
void feed_ahead_free(struct feed_ahead *ahead);

/* The driver's batch is that of its next step, of which devices may ask for what they want. */
void driver_begin_staged(struct driver *driver);

#endif
