/* SPDX-License-Identifier: Apache-2.0
 *
 * Lives of things by tables: for each event a row with a cell for each state, which says what is to
 * be done and which state comes. No cell is left out: 0 is none. Each state has a name, by which a
 * test has the process stand still, or killed, as the state begins (base/failpoint.h).
 */
#ifndef TF_BASE_LIFE_H
#define TF_BASE_LIFE_H

#include "base/failpoint.h"

#define LIFE_STAYS 15 /* in place of a state */
#define LIFE_CELL(reaction, state) ((reaction) << 4 | (state))

/* The first state begins, by its name. */
#define LIFE_BEGINS(name) ((void)FAILPOINT(name))

/* Reads the cell of a state: the next state, and the reaction. */
static inline int life_state(unsigned char cell, int state, const char *const *names)
{
    int next = (cell & 15) == LIFE_STAYS ? state : cell & 15;
    (void)(next != state && FAILPOINT(names[next])); /* nothing fails there */
    return next;
}

static inline int life_reaction(unsigned char cell)
{
    return cell >> 4;
}

#endif
