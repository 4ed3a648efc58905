/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/worker_life.h"

/* A reaction and the state that comes; WORKER_STATES: the state stays. */
#define CELL(what, next) (WORKER_##what << 4 | WORKER_##next)
#define BUG CELL(BUG, STATES)
#define IGNORE CELL(IGNORE, STATES)
#define STAY CELL(GO_ON, STATES)
#define KEEP CELL(KEEP, STATES)
#define GIVE CELL(GIVE, STATES)
#define TELL CELL(TELL, STATES)
#define PART CELL(TELL_GIVE, STATES)
#define ABORT CELL(ABORT, STATES)
#define ENTER(state) CELL(GO_ON, state)

/* By state: MEETS, STARTS, WAITS, HEARD, STEPS, PARTS, LEFT.
 *
 * Entries run as it starts and as it leaves, too, which are no steps. What it has changes between
 * two steps by what those give who have left before: so it is kept for one that leaves as the next
 * step begins, within a step at once, and as it starts, since nobody leaves before all agree. */
static const unsigned char cells[WORKER_EVENTS][WORKER_STATES] = {
    [WORKER_OPENED] = {ENTER(STARTS), BUG, BUG, BUG, BUG, BUG, BUG},
    [WORKER_STARTED] = {BUG, ENTER(WAITS), BUG, BUG, BUG, BUG, BUG},
    [WORKER_BEGINS] = {BUG, STAY, ENTER(STEPS), CELL(KEEP, STEPS), BUG, STAY, BUG},
    [WORKER_ENDS] = {BUG, STAY, BUG, BUG, ENTER(WAITS), STAY, BUG},
    [WORKER_HEARS] = {IGNORE, KEEP, ENTER(HEARD), IGNORE, KEEP, IGNORE, IGNORE},
    [WORKER_RESTS] = {IGNORE, IGNORE, GIVE, GIVE, IGNORE, IGNORE, IGNORE},
    [WORKER_PARTED] = {BUG, BUG, ENTER(PARTS), ENTER(PARTS), BUG, BUG, BUG},
    [WORKER_LEAVES] = {IGNORE, IGNORE, TELL, TELL, IGNORE, PART, IGNORE},
    [WORKER_GOES] = {BUG, BUG, ENTER(LEFT), ENTER(LEFT), BUG, ENTER(LEFT), BUG},
    [WORKER_CLOSES] = {ABORT, ABORT, ABORT, ABORT, ABORT, ABORT, IGNORE},
};

enum worker_reaction worker_react(enum worker_life *state, enum worker_event event)
{
    unsigned char cell = cells[event][*state];
    if ((cell & 15) != WORKER_STATES)
        *state = (enum worker_life)(cell & 15);
    return (enum worker_reaction)(cell >> 4);
}
