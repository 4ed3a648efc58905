/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/job/save_life.h"

#include "base/life.h"

#define STAY(what) LIFE_CELL(SAVE_##what, LIFE_STAYS)
#define ENTER(what, state) LIFE_CELL(SAVE_##what, SAVE_##state)
#define BUG STAY(BUG)
#define GO STAY(GO_ON)
#define WAIT STAY(WAIT)
#define OMIT STAY(OMIT)
#define JOIN ENTER(JOIN, IDLE)

static const char *const names[SAVE_STATES] = {"save.marked", "save.locking", "save.writing",
                                               "save.done", "save.idle"};

/* By state: MARKED, LOCKING, WRITING, DONE, IDLE. A variable has one snapshot at a time. */
static const unsigned char cells[SAVE_EVENTS][SAVE_STATES] = {
    [SAVE_COLLECTED] = {ENTER(GO_ON, LOCKING), BUG, BUG, BUG, BUG},
    [SAVE_LOCKED] = {BUG, ENTER(GO_ON, WRITING), BUG, BUG, BUG},
    [SAVE_ENDED] = {ENTER(GO_ON, DONE), ENTER(GO_ON, DONE), ENTER(GO_ON, DONE), BUG, BUG},
    [SAVE_DUE] = {OMIT, OMIT, OMIT, OMIT, GO},
    [SAVE_CUT] = {WAIT, GO, GO, GO, GO},
    [SAVE_TURN] = {WAIT, WAIT, WAIT, JOIN, GO},
    [SAVE_AWAIT] = {STAY(JOIN), STAY(JOIN), STAY(JOIN), JOIN, GO},
};

enum save_reaction save_life_react(enum save_life *state, enum save_event event)
{
    unsigned char cell = cells[event][*state];
    *state = (enum save_life)life_state(cell, (int)*state, names);
    return (enum save_reaction)life_reaction(cell);
}
