/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds read ahead: while a driver's step runs, a thread reads the records of the next one and
 * stages what devices want of them (exec/step/staged.h). What reading has met with, an error or the
 * end, is told when the step comes that it is for.
 */
#ifndef TF_EXEC_FEED_AHEAD_H
#define TF_EXEC_FEED_AHEAD_H

#include "exec/session/driver.h"

struct feed_ahead;

/* For a driver with a reader and a stage, which are the thread's from now on, but while nothing is
 * read ahead. NULL: no thread can be had. */
struct feed_ahead *feed_ahead_new(struct driver *driver);
/* Whatever it is waiting for. The driver's devices are there still. */
void feed_ahead_free(struct feed_ahead *ahead);

/* As driver_next_feeds: the driver has the feeds of its next step, and the batch for them. Then
 * those of the step after that are read, if the driver has one. */
int feed_ahead_next(struct feed_ahead *ahead, bool *more, struct error *err);

#endif
