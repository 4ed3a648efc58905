/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a save in the background, and what each event does in each of them. A signal is
 * none of these: it ends the steps, and whoever then waits for the store gives up
 * (checkpoint/store/lock.h).
 */
#ifndef TF_CHECKPOINT_SAVE_LIFE_H
#define TF_CHECKPOINT_SAVE_LIFE_H

enum save_life {
    SAVE_MARKED,  /* steps that write over what it saves keep that for it */
    SAVE_LOCKING, /* it has its values, and waits for its turn, or for the store */
    SAVE_WRITING,
    SAVE_DONE, /* or failed: its thread ends */
    SAVE_IDLE, /* none is under way */
    SAVE_STATES
};

enum save_event {
    SAVE_COLLECTED, /* its values are */
    SAVE_LOCKED,    /* the store is its own */
    SAVE_ENDED,
    SAVE_DUE,   /* another one is */
    SAVE_CUT,   /* of another one the variables are to be marked */
    SAVE_TURN,  /* of one that waits */
    SAVE_AWAIT, /* nothing comes behind it */
    SAVE_EVENTS
};

enum save_reaction {
    SAVE_BUG = 1, /* this process does not do that */
    SAVE_GO_ON,
    SAVE_WAIT, /* until there is something else to be done */
    SAVE_OMIT, /* it is left out, and counted */
    SAVE_JOIN  /* the thread; what became of it is told */
};

enum save_reaction save_life_react(enum save_life *state, enum save_event event);

#endif
