/* SPDX-License-Identifier: Apache-2.0
 *
 * Lives of things by tables: for each event a row with a cell for each state, which says what is to
 * be done and which state comes. No cell is left out: 0 is none.
 */
#ifndef TF_BASE_LIFE_H
#define TF_BASE_LIFE_H

#define LIFE_STAYS 15 /* in place of a state */
#define LIFE_CELL(reaction, state) ((reaction) << 4 | (state))

/* From the state by the cell: the next state, and the reaction. */
static inline int life_state(unsigned char cell, int state)
{
    return (cell & 15) == LIFE_STAYS ? state : cell & 15;
}

static inline int life_reaction(unsigned char cell)
{
    return cell >> 4;
}

#endif
