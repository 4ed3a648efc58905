/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a round, which is one call of all members as one of them sees it, and what each
 * event does in each state. A member calls and tells the others what it contributes (CALLING,
 * CALLED). When it has heard all, what is small is combined (SETTLED), and where rows come in
 * chunks members say that they know which (AGREEING). Then chunks of what is large go their way
 * (RUNNING).
 */
#ifndef TF_COLLECTIVE_ROUND_H
#define TF_COLLECTIVE_ROUND_H

enum round_state {
    ROUND_NEW,      /* others have called */
    ROUND_CALLING,  /* this member has, and the others are being told */
    ROUND_CALLED,   /* they have been */
    ROUND_SETTLED,  /* all members are known */
    ROUND_AGREEING, /* what is small has been combined; others may not know the chunks yet */
    ROUND_RUNNING,
    ROUND_OVER, /* done, failed, cancelled */
    ROUND_STATES,
};

enum round_event {
    ROUND_CALL,         /* of this member, or it declines */
    ROUND_TOLD,         /* all others, of that call */
    ROUND_CONTRIBUTION, /* of another member */
    ROUND_READY,        /* another has heard all */
    ROUND_CHUNK,        /* another's part of one, to be added, or what is whole */
    ROUND_LEAVE,        /* another takes no part any more */
    ROUND_LOST,         /* another is */
    ROUND_CANCEL,       /* nobody waits here any more */
    ROUND_EVENTS,
};

enum round_reaction {
    REACT_BUG = 1, /* this process does not do that */
    REACT_REFUSE,  /* no other can have a reason to: its link ends */
    REACT_IGNORE,
    REACT_KEEP, /* for later states */
    REACT_TAKE, /* the round may go on */
    REACT_FAIL, /* the round is over; of CANCEL, without a reply */
};

enum round_reaction round_react(enum round_state state, enum round_event event);

#endif
