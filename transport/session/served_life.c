/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/served_life.h"

#include "base/life.h"

#define STAY(what) LIFE_CELL(SERVED_##what, LIFE_STAYS)
#define ENTER(what, state) LIFE_CELL(SERVED_##what, SERVED_##state)
#define BUG STAY(BUG)
#define NONE STAY(IGNORE)

static const char *const names[SERVED_STATES] = {"served.reading", "served.linking", "served.open",
                                                 "served.closing"};

/* By state: READING, LINKING, OPEN, CLOSING. Links that open while it reads are found then. */
static const unsigned char cells[SERVED_EVENTS][SERVED_STATES] = {
    [SERVED_READ] = {ENTER(GO_ON, LINKING), BUG, BUG, NONE},
    [SERVED_LINKED] = {NONE, STAY(GO_ON), NONE, NONE},
    [SERVED_MISSED] = {NONE, STAY(FAIL), NONE, NONE},
    [SERVED_LATE] = {BUG, STAY(FAIL), BUG, NONE},
    [SERVED_WHOLE] = {BUG, ENTER(GO_ON, OPEN), BUG, NONE},
    [SERVED_ASKED] = {STAY(REFUSE), STAY(REFUSE), STAY(GO_ON), STAY(REFUSE)},
    [SERVED_LEFT] = {STAY(GO_ON), STAY(GO_ON), STAY(GO_ON), STAY(REFUSE)},
    [SERVED_CLOSE] = {ENTER(TELL, CLOSING), ENTER(TELL, CLOSING), ENTER(END, CLOSING), NONE},
};

enum served_reaction served_life_react(enum served_life *state, enum served_event event)
{
    unsigned char cell = cells[event][*state];
    *state = (enum served_life)life_state(cell, (int)*state, names);
    return (enum served_reaction)life_reaction(cell);
}
