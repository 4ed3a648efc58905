/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a shard, and how each state reacts to each event. The progress of a save is not a
 * state: the slow queue does one task after the other, and their waits end with SHARD_ENDS.
 */
#ifndef TF_PS_SHARD_LIFE_H
#define TF_PS_SHARD_LIFE_H

enum shard_life {
    SHARD_STARTS, /* not yet resumed */
    SHARD_SERVES,
    SHARD_AWAITS, /* restored values come with a graph; complete once a worker joins */
    SHARD_SAVED,  /* the last checkpoint was made, or another job makes it */
    SHARD_SAVED_AWAITS,
    SHARD_ENDS,
    SHARD_STATES
};

enum shard_event {
    SHARD_START,   /* automatic saves may begin */
    SHARD_RESTORE, /* a request to go back to a checkpoint */
    SHARD_WHOLE,   /* the checkpoint was restored completely */
    SHARD_PART,    /* the rest of the checkpoint comes with a graph */
    SHARD_CLOCK,   /* a clock was made */
    SHARD_TURN,    /* time to look whether a checkpoint is due */
    SHARD_SAVE,    /* a checkpoint is requested */
    SHARD_JOINED,  /* a worker has joined */
    SHARD_LAST,    /* the checkpoint made was the last */
    SHARD_LOST,    /* another job has taken the store over */
    SHARD_END,
    SHARD_EVENTS
};

enum shard_reaction {
    SHARD_BUG = 1, /* the event is impossible in this state */
    SHARD_IGNORE,
    SHARD_GO_ON,
    SHARD_REFUSE,
    SHARD_CHECK,  /* refuse unless a worker has joined */
    SHARD_STOP,   /* stop the clock where the first checkpoint is due */
    SHARD_LET_GO, /* no longer stop the clock */
};

enum shard_reaction shard_life_react(enum shard_life *state, enum shard_event event);

#endif
