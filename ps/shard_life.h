/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a shard, and what each event does in each of them. How far a save has come is no
 * state: the slow queue does one thing after the other, whose waits end with SHARD_ENDS.
 */
#ifndef TF_PS_SHARD_LIFE_H
#define TF_PS_SHARD_LIFE_H

enum shard_life {
    SHARD_STARTS, /* what there is to resume is not there yet */
    SHARD_SERVES,
    SHARD_AWAITS, /* what was restored comes with a graph, and is all there when a worker joins */
    SHARD_SAVED,  /* the last checkpoint was made, or is another job's to make */
    SHARD_SAVED_AWAITS,
    SHARD_ENDS,
    SHARD_STATES
};

enum shard_event {
    SHARD_START,   /* it may save by itself */
    SHARD_RESTORE, /* it is asked to go back to a checkpoint */
    SHARD_WHOLE,   /* the one that it goes back to is all there */
    SHARD_PART,    /* the rest of that comes with a graph */
    SHARD_CLOCK,   /* a clock was made */
    SHARD_TURN,    /* it looks whether a checkpoint is due */
    SHARD_SAVE,    /* one is to be made */
    SHARD_JOINED,  /* a worker is there */
    SHARD_LAST,    /* there is to be none after the one that was made */
    SHARD_LOST,    /* another job has taken the store over */
    SHARD_END,
    SHARD_EVENTS
};

enum shard_reaction {
    SHARD_BUG = 1, /* this process does not do that */
    SHARD_IGNORE,
    SHARD_GO_ON,
    SHARD_REFUSE,
    SHARD_CHECK,  /* refuse unless a worker has joined */
    SHARD_STOP,   /* the clock, where the first checkpoint is due */
    SHARD_LET_GO, /* the clock is stopped no more */
};

enum shard_reaction shard_life_react(enum shard_life *state, enum shard_event event);

#endif
