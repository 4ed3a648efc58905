/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that does one thing after the other: what a loop's thread must not do because it waits
 * for holds or disks.
 */
#ifndef TF_PS_CLERK_H
#define TF_PS_CLERK_H

#include <stdbool.h>

struct clerk;

struct clerk *clerk_new(void);

/* Any thread. `work` is called once, in the order of the calls, and owns what `argument` points to.
 * False: the clerk is being freed, and nothing was done. */
bool clerk_do(struct clerk *clerk, void (*work)(void *argument), void *argument);

/* Does what is left, then ends the thread. */
void clerk_free(struct clerk *clerk);

#endif
