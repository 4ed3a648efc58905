/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of a run of tf-exec, and what a signal does in each of them. In every state the first
 * signal asks the run to end, at once if the process is waiting; work that then lasts longer than
 * --grace is cancelled.
 */
#ifndef TF_BIN_EXEC_LIFE_H
#define TF_BIN_EXEC_LIFE_H

#include <stdbool.h>

enum exec_life {
    LIFE_READS,  /* reads its graph */
    LIFE_OPENS,  /* opens devices, waits for the tasks of its cluster */
    LIFE_STARTS, /* gives variables their values, skips feeds */
    LIFE_FEEDS,  /* saves, and waits for the feeds of the next step */
    LIFE_STEPS,
    LIFE_ENDS, /* leaves, and saves */
    LIFE_GONE,
    LIFE_STATES
};

enum exec_end { END_AT_ONCE, END_LEAVES, END_SAVES };

struct exec_life_rule {
    const char *point; /* failpoint that the state begins with (base/failpoint.h) */
    const char *doing; /* what a message says did not end; NULL: the step */
    enum exec_end end; /* if asked to end: whether it tells others, and saves. END_AT_ONCE where
                        * nobody relies on it yet, or its work is half done */
    bool ends_late;    /* if it does not react to being cancelled it is killed: nothing is lost */
};

extern const struct exec_life_rule exec_life_rules[LIFE_STATES];

/* Enters the next state. */
void exec_life_go(enum exec_life *life, enum exec_life next);

#endif
