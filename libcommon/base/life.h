/* SPDX-License-Identifier: Apache-2.0
 *
 * State machines by tables: each event has a row with a cell for each state, which gives the
 * reaction and the next state. No cell is left out: 0 is no reaction. Each state has a name, by
 * which a test stops or kills the process as the state begins (base/failpoint.h).
 */
#ifndef TF_BASE_LIFE_H
#define TF_BASE_LIFE_H

#include "base/failpoint.h"

#define LIFE_STAYS 15 /* in place of a next state: no change */
#define LIFE_CELL(reaction, state) ((reaction) << 4 | (state))

/* Reaches the failpoint of the first state, by its name. */
#define LIFE_BEGINS(name) ((void)FAILPOINT(name))

/* Returns the next state that a cell gives; reaches that state's failpoint. */
static inline int life_state(unsigned char cell, int state, const char *const *names)
{
    int next = (cell & 15) == LIFE_STAYS ? state : cell & 15;
    (void)(next != state && FAILPOINT(names[next])); /* the failpoint's error is ignored */
    return next;
}

static inline int life_reaction(unsigned char cell)
{
    return cell >> 4;
}

#endif
