/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a run of tf-exec, and what a signal does in each of its states. Everywhere the first
 * one asks to end, at once where the process waits; what then goes on for longer than --grace is
 * cancelled.
 */
#ifndef TF_BIN_EXEC_LIFE_H
#define TF_BIN_EXEC_LIFE_H

#include <stdbool.h>

enum exec_life {
    LIFE_READS,  /* its graph */
    LIFE_OPENS,  /* devices; the tasks of its cluster are waited for */
    LIFE_STARTS, /* variables get their values, feeds are passed over */
    LIFE_FEEDS,  /* it saves, and waits for what the next step is fed */
    LIFE_STEPS,
    LIFE_ENDS, /* it leaves, and saves */
    LIFE_GONE,
    LIFE_STATES
};

enum exec_end { END_AT_ONCE, END_LEAVES, END_SAVES };

struct exec_life_rule {
    const char *point; /* that is reached as it begins (base/failpoint.h) */
    const char *doing; /* what is said not to have ended; NULL: the step */
    enum exec_end end; /* asked there, it tells others, and saves what steps did. Else nobody counts
                        * on it yet, or what it did is half done */
    bool ends_late;    /* killed where it does not heed that it was cancelled: nothing is lost */
};

extern const struct exec_life_rule exec_life_rules[LIFE_STATES];

/* The next state begins. */
void exec_life_go(enum exec_life *life, enum exec_life next);

#endif
