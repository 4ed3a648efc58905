/* SPDX-License-Identifier: Apache-2.0
 *
 * A wait for something that another process holds: it has a time limit, tells the user what it
 * waits for, and is cut short when this process is asked to end. The program sets the handler for
 * both, as in log.h; without one nobody is told, and only time ends a wait.
 *
 *     struct patience patience = patience_begin(seconds, NULL);
 *     while (!try()) {
 *         enum patience_news news = patience_look(&patience);
 *         if (news == PATIENCE_TELL)
 *             patience_tell(&patience, "waiting for the lock of %s", name);
 *         else if (news != PATIENCE_WAIT)
 *             return news == PATIENCE_ENDS ? ERR_CANCELLED : ERR_RETRY;
 *         nanosleep(&pause, NULL);
 *     }
 */
#ifndef TF_BASE_PATIENCE_H
#define TF_BASE_PATIENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct patience_handler {
    void (*say)(void *context, const char *line); /* any thread; NULL: nobody is told */
    bool (*asked)(void *context);                 /* returns whether the process was asked to end */
    void *context;
};

/* Sets the handler, once, before any wait. */
void patience_set_handler(const struct patience_handler *handler);

struct patience {
    double seconds; /* how long it lasts; negative: without limit */
    double until;   /* monotonic time of its end */
    double tell_at; /* when the next line is due, and */
    double pause;   /* the time to the one after it */
    bool was_asked; /* the process was asked to end before the wait began */
    const atomic_bool *cancelled;
};

enum patience_news {
    PATIENCE_WAIT,
    PATIENCE_TELL, /* it is time to tell the user: call patience_tell */
    PATIENCE_OVER, /* its time is over */
    PATIENCE_ENDS  /* the process was asked to end, or the wait was cancelled */
};

/* `seconds` negative: without limit. If the process was already asked to end, the wait is limited
 * to what a user accepts then. Setting *cancelled, if not NULL, ends the wait, too. */
struct patience patience_begin(double seconds, const atomic_bool *cancelled);
enum patience_news patience_look(struct patience *patience);

/* Prints the text and "..., 58 s left": what is waited for, and who holds it. */
void patience_tell(struct patience *patience, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes a lock of flock(2) that its holders keep only briefly: ERR_RETRY if it is not released in
 * time. `what` is locked: "job directory run". ERR_CANCELLED; ERR_OS. */
int patience_lock(int fd, const char *what, struct error *err);

#endif
