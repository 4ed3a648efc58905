/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a background save, and how each state reacts to each event. A signal is not an
 * event here: it ends the steps, and whoever then waits for the store gives up
 * (checkpoint/store/lock.h).
 */
#ifndef TF_CHECKPOINT_SAVE_LIFE_H
#define TF_CHECKPOINT_SAVE_LIFE_H

enum save_life {
    SAVE_MARKED,  /* a step that overwrites a variable first keeps the marked value */
    SAVE_LOCKING, /* has copied its values; waits for its turn, or for the store */
    SAVE_WRITING,
    SAVE_DONE, /* saved or failed; its thread ends */
    SAVE_IDLE, /* no save is under way */
    SAVE_STATES
};

enum save_event {
    SAVE_COLLECTED, /* its values were copied */
    SAVE_LOCKED,    /* it holds the store's lock */
    SAVE_ENDED,
    SAVE_DUE,   /* another save is due */
    SAVE_CUT,   /* another save wants to snapshot the variables */
    SAVE_TURN,  /* a waiting save wants to start */
    SAVE_AWAIT, /* no further save follows: wait for this one */
    SAVE_EVENTS
};

enum save_reaction {
    SAVE_BUG = 1, /* the event is impossible in this state */
    SAVE_GO_ON,
    SAVE_WAIT, /* until the save's state has changed */
    SAVE_OMIT, /* the due save is left out, and counted */
    SAVE_JOIN  /* join the thread, and report the save's result */
};

enum save_reaction save_life_react(enum save_life *state, enum save_event event);

#endif
