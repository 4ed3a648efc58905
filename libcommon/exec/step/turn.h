/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread does next. A kernel that sends a value may make a kernel of another plan ready, and
 * that one a third: whoever is in the middle of something puts such work off instead of calling
 * into it, so that stacks stay flat and nobody is entered while it is busy. Everything here is of
 * the calling thread alone.
 */
#ifndef TF_EXEC_TURN_H
#define TF_EXEC_TURN_H

#include <stdbool.h>

struct device;

/* A piece of work; lives with its owner, who may be gone when `run` returns. */
struct turn {
    void (*run)(struct turn *turn);
    struct turn *next;
};

/* Runs it now; between turn_begin and turn_end, in order, at the latest when the last ends. */
void turn_take(struct turn *turn);

void turn_begin(void);
void turn_end(void);

/* Before the thread blocks, when those for whom it has put work off may wait for it: does it. */
bool turn_is_pending(void);
void turn_catch_up(void);

/* Before the thread does something that takes long: the same, unless it is catching up already. */
void turn_before_long(void);

/* Tells the device that kernels of it run on this thread now, with a team of that size, if the last
 * were others. */
void turn_enter_device(struct device *device, int team);

#endif
