/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/round.h"

#define BUG REACT_BUG
#define REFUSE REACT_REFUSE
#define IGNORE REACT_IGNORE
#define KEEP REACT_KEEP
#define TAKE REACT_TAKE
#define FAIL REACT_FAIL

/* By state: NEW, CALLING, CALLED, SETTLED, RUNNING, OVER.
 *
 * A second contribution of a member is refused elsewhere, in every state; one that comes after a
 * round has settled is of a member that is not waited for. A member sends chunks once it
 * has heard from all; this one may not have by then. If a member is lost while the others are being
 * told, the round ends once they have been told. */
static const unsigned char reactions[ROUND_EVENTS][ROUND_STATES] = {
    [ROUND_CALL] = {TAKE, BUG, BUG, BUG, BUG, BUG},
    [ROUND_TOLD] = {BUG, TAKE, BUG, BUG, BUG, IGNORE},
    [ROUND_CONTRIBUTION] = {KEEP, KEEP, TAKE, KEEP, KEEP, IGNORE},
    [ROUND_CHUNK] = {REFUSE, KEEP, KEEP, KEEP, TAKE, IGNORE},
    [ROUND_LEAVE] = {KEEP, KEEP, TAKE, IGNORE, IGNORE, IGNORE},
    [ROUND_LOST] = {KEEP, KEEP, FAIL, FAIL, FAIL, IGNORE},
    [ROUND_CANCEL] = {BUG, FAIL, FAIL, FAIL, FAIL, IGNORE},
};

enum round_reaction round_react(enum round_state state, enum round_event event)
{
    return (enum round_reaction)reactions[event][state];
}
