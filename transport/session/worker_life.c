/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/session/worker_life.h"

#include "base/life.h"

#define STAY(what) LIFE_CELL(WORKER_##what, LIFE_STAYS)
#define ENTER(state) LIFE_CELL(WORKER_GO_ON, WORKER_##state)
#define BUG STAY(BUG)
#define NONE STAY(IGNORE)
#define GO STAY(GO_ON)
#define KEEP STAY(KEEP)
#define GIVE STAY(GIVE)
#define TELL STAY(TELL)
#define PART STAY(TELL_GIVE)
#define ABORT STAY(ABORT)

static const char *const names[WORKER_STATES] = {"worker.meets", "worker.starts", "worker.waits",
                                                 "worker.heard", "worker.steps",  "worker.parts",
                                                 "worker.left"};

/* By state: MEETS, STARTS, WAITS, HEARD, STEPS, PARTS, LEFT.
 *
 * While a worker starts or leaves it runs entries that are no steps. Between two steps its values
 * change by those of workers that left before. So they are kept for a leaving worker when the next
 * step begins; within a step and while it starts at once, as nobody leaves before all agree. */
static const unsigned char cells[WORKER_EVENTS][WORKER_STATES] = {
    [WORKER_OPENED] = {ENTER(STARTS), BUG, BUG, BUG, BUG, BUG, BUG},
    [WORKER_STARTED] = {BUG, ENTER(WAITS), BUG, BUG, BUG, BUG, BUG},
    [WORKER_BEGINS] = {BUG, GO, ENTER(STEPS), LIFE_CELL(WORKER_KEEP, WORKER_STEPS), BUG, GO, BUG},
    [WORKER_ENDS] = {BUG, GO, BUG, BUG, ENTER(WAITS), GO, BUG},
    [WORKER_HEARS] = {NONE, KEEP, ENTER(HEARD), NONE, KEEP, NONE, NONE},
    [WORKER_RESTS] = {NONE, NONE, GIVE, GIVE, NONE, NONE, NONE},
    [WORKER_PARTED] = {BUG, BUG, ENTER(PARTS), ENTER(PARTS), BUG, BUG, BUG},
    [WORKER_LEAVES] = {NONE, NONE, TELL, TELL, NONE, PART, NONE},
    [WORKER_GOES] = {BUG, BUG, ENTER(LEFT), ENTER(LEFT), BUG, ENTER(LEFT), BUG},
    [WORKER_CLOSES] = {ABORT, ABORT, ABORT, ABORT, ABORT, ABORT, NONE},
};

enum worker_reaction worker_react(enum worker_life *state, enum worker_event event)
{
    unsigned char cell = cells[event][*state];
    *state = (enum worker_life)life_state(cell, (int)*state, names);
    return (enum worker_reaction)life_reaction(cell);
}
