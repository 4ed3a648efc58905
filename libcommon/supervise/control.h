/* SPDX-License-Identifier: Apache-2.0
 *
 * A Unix socket `control` in a folder, over which other processes of the user send requests to the
 * folder's owner: one line per connection, such as "status"; the reply ends the connection. A
 * client that sends nothing, half a line or too much, does not read, or goes away, holds nobody up:
 * the number of places is fixed, and a new client takes the place of the one that was longest
 * without a request.
 *
 * One thread; nothing here blocks except control_wait, control_close and control_ask.
 */
#ifndef TF_SUPERVISE_CONTROL_H
#define TF_SUPERVISE_CONTROL_H

#include <poll.h>

#include "base/error.h"
#include "base/str.h"

#define CONTROL_CLIENTS 32
#define CONTROL_SECONDS 2.0 /* for sending a request, and for reading a reply */

enum {
    CONTROL_ALSO,
    CONTROL_LISTENER,
    CONTROL_FIRST,
    CONTROL_END = CONTROL_FIRST + CONTROL_CLIENTS
};

struct control {
    struct pollfd polls[CONTROL_END]; /* the caller's descriptor, the listener, the clients */
    struct control_client {
        double since; /* time when it connected, or got its reply */
        char request[32];
        size_t n;         /* request bytes read; reply bytes written */
        struct str reply; /* empty: no reply yet */
    } clients[CONTROL_END];
    bool rests; /* no client can be accepted at present: out of descriptors */
};

/* Opens the folder's socket; without a folder there are no requests, but control_wait waits. One
 * socket per folder: the caller owns the folder and replaces what an earlier owner has left.
 * ERR_IO: it then works as without a folder. */
int control_open(struct control *control, const char *folder, struct error *err);

/* Waits until `also` (-1: none) is readable or control_serve has work, for at most `seconds`. */
void control_wait(struct control *control, int also, double seconds);

/* Serves requests. `answer` returns the whole reply, "" for none, after which the connection ends;
 * or NULL: control_close will reply. */
void control_serve(struct control *control,
                   const char *(*reply)(void *context, const char *request), void *context);

/* Replies to the clients that wait for the end. The socket stays for control_remove. */
void control_close(struct control *control, const char *text);

/* Removes the socket from the folder. */
void control_remove(const char *folder);

/* How long a client waits for a reply. */
struct control_patience {
    double seconds; /* < 0: without limit */
    /* Called after that time: returns whether to wait as long again. NULL: no. */
    bool (*goes_on)(void *context);
    void *context;
};

/* Sends a request and waits for the reply. ERR_NOINPUT: nobody listens; ERR_UNAVAILABLE: no reply;
 * ERR_DENIED: another user's. */
int control_ask(const char *folder, const char *request, const struct control_patience *patience,
                struct str *reply);

#endif
