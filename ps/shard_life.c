/* SPDX-License-Identifier: Apache-2.0 */
#include "ps/shard_life.h"

#include "base/life.h"

#define STAY(what) LIFE_CELL(SHARD_##what, LIFE_STAYS)
#define ENTER(state) LIFE_CELL(SHARD_GO_ON, SHARD_##state)
#define BUG STAY(BUG)
#define NONE STAY(IGNORE)
#define GO STAY(GO_ON)
#define NO STAY(REFUSE)

static const char *const names[SHARD_STATES] = {"shard.starts",       "shard.serves",
                                                "shard.awaits",       "shard.saved",
                                                "shard.saved-awaits", "shard.ends"};

/* By state: STARTS, SERVES, AWAITS, SAVED, SAVED_AWAITS, ENDS. */
static const unsigned char cells[SHARD_EVENTS][SHARD_STATES] = {
    [SHARD_START] = {ENTER(SERVES), BUG, GO, BUG, BUG, NONE},
    [SHARD_RESTORE] = {GO, GO, GO, GO, GO, NO},
    [SHARD_WHOLE] = {GO, GO, ENTER(SERVES), GO, ENTER(SAVED), NONE},
    [SHARD_PART] = {ENTER(AWAITS), ENTER(AWAITS), GO, ENTER(SAVED_AWAITS), GO, NONE},
    [SHARD_CLOCK] = {NONE, STAY(STOP), STAY(STOP), NONE, NONE, NONE},
    [SHARD_TURN] = {BUG, GO, GO, STAY(LET_GO), STAY(LET_GO), STAY(LET_GO)},
    [SHARD_SAVE] = {GO, GO, STAY(CHECK), GO, STAY(CHECK), NO},
    [SHARD_JOINED] = {NONE, NONE, ENTER(SERVES), NONE, ENTER(SAVED), NONE},
    [SHARD_LAST] = {ENTER(SAVED), ENTER(SAVED), BUG, GO, BUG, NONE},
    [SHARD_LOST] = {ENTER(SAVED), ENTER(SAVED), BUG, GO, BUG, NONE},
    [SHARD_END] = {ENTER(ENDS), ENTER(ENDS), ENTER(ENDS), ENTER(ENDS), ENTER(ENDS), NONE},
};

enum shard_reaction shard_life_react(enum shard_life *state, enum shard_event event)
{
    unsigned char cell = cells[event][*state];
    *state = (enum shard_life)life_state(cell, (int)*state, names);
    return (enum shard_reaction)life_reaction(cell);
}
