/* SPDX-License-Identifier: Apache-2.0
 *
 * A Unix socket `control` in a folder, over which other processes of the user ask the one that has
 * the folder: one line a connection, such as "status"; then the answer, with which it ends. A
 * client that says nothing, half a line or too much, does not read, or goes away, holds nobody up:
 * there are so many places, and when another one comes who has had his longest without a request
 * loses it.
 *
 * One thread; nothing here waits but control_wait, control_close and who asks.
 */
#ifndef TF_SUPERVISE_CONTROL_H
#define TF_SUPERVISE_CONTROL_H

#include <poll.h>

#include "base/error.h"
#include "base/str.h"

#define CONTROL_CLIENTS 32
#define CONTROL_SECONDS 2.0 /* to say what is asked, and to read what is answered */

enum {
    CONTROL_ALSO,
    CONTROL_LISTENER,
    CONTROL_FIRST,
    CONTROL_END = CONTROL_FIRST + CONTROL_CLIENTS
};

struct control {
    struct pollfd polls[CONTROL_END]; /* another descriptor, the listener, the clients */
    struct control_client {
        double since; /* when it came, or was answered */
        char request[32];
        size_t n;          /* bytes of the request that were read; of the answer, written */
        struct str answer; /* empty: none yet */
    } clients[CONTROL_END];
    bool rests; /* nobody can be let in at present, for want of descriptors */
};

/* Opens the folder's socket; without a folder nobody asks, but control_wait waits. One socket a
 * folder: the caller has it alone, and replaces what another one has left there. ERR_IO, and it is
 * as without one. */
int control_open(struct control *control, const char *folder, struct error *err);

/* Waits until there is something to be read from `also` (-1: nothing), or for control_serve, so
 * many seconds at most. */
void control_wait(struct control *control, int also, double seconds);

/* Takes requests. `answer` gives what to say, a whole text, "" for nothing, which ends the
 * connection; or NULL: what control_close says. */
void control_serve(struct control *control,
                   const char *(*answer)(void *context, const char *request), void *context);

/* Answers who has waited for the end. Leaves the socket to control_remove. */
void control_close(struct control *control, const char *text);

/* Removes the socket from the folder. */
void control_remove(const char *folder);

/* The time that a client waits for an answer. */
struct control_patience {
    double seconds; /* < 0: as long as it takes */
    /* When they are over: whether to wait as long again. NULL: no. */
    bool (*goes_on)(void *context);
    void *context;
};

/* Asks, and waits. ERR_NOINPUT: nobody is
 * there; ERR_UNAVAILABLE: no answer; ERR_DENIED: it is somebody else's. */
int control_ask(const char *folder, const char *request, const struct control_patience *patience,
                struct str *answer);

#endif
