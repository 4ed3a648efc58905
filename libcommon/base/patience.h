/* SPDX-License-Identifier: Apache-2.0
 *
 * A wait for something that another process has: it has an end, says what it waits for, and is cut
 * short when this process is asked to end. The program sets who is told and who knows of that, as
 * for log.h; without it nobody is told, and time alone ends a wait.
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
    bool (*asked)(void *context);                 /* whether the process is to end */
    void *context;
};

/* Sets the handler, once, before there are waits. */
void patience_set_handler(const struct patience_handler *handler);

struct patience {
    double until;   /* the monotonic time */
    double tell_at; /* when it is to say what it waits for, and */
    double pause;   /* how much later again */
    bool was_asked; /* before it began */
    const atomic_bool *cancelled;
};

enum patience_news {
    PATIENCE_WAIT,
    PATIENCE_TELL, /* it has waited for so long that the user wants to know: patience_tell */
    PATIENCE_OVER, /* its time is over */
    PATIENCE_ENDS  /* nobody waits any more: the process, or whoever wanted it, is to end */
};

/* `seconds` negative: without end. In a process that is to end already, for as long as people are
 * patient then. *cancelled, if there is one, ends it, too. */
struct patience patience_begin(double seconds, const atomic_bool *cancelled);
enum patience_news patience_look(struct patience *patience);

/* "..., 58 s left": what is waited for, and who has it. */
void patience_tell(struct patience *patience, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The lock of flock(2), which whoever has it, and does not stand still, gives back in a moment:
 * ERR_RETRY if it does not. `what` is locked: "job directory run". ERR_CANCELLED; ERR_OS. */
int patience_lock(int fd, const char *what, struct error *err);

#endif
