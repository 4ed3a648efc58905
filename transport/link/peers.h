/* SPDX-License-Identifier: Apache-2.0
 *
 * A process's end of all its links: its identity, where it listens, whom it dials, and which link
 * leads to which task. Unix sockets are guarded by their folder's permissions; TCP requires a key
 * known to both sides (TLS 1.3 with a pre-shared key) or, on loopback only, the option no_key.
 *
 * Call everything here in the thread that runs the loop, or while no thread does, except functions
 * marked "any thread".
 */
#ifndef TF_TRANSPORT_PEERS_H
#define TF_TRANSPORT_PEERS_H

#include "transport/channel/address.h"
#include "transport/link/link.h"

struct peers;

/* What the operator of the process is told; each function may be NULL. */
struct peers_news {
    /* Called once a second while a task is dialed, or waited for otherwise: "waiting for ps:1 at
     * 127.0.0.1:7001: connection refused, 27 s left". */
    void (*waiting)(void *context, const char *task, const char *text);
    /* Occasional reports: "refuses connections at 127.0.0.1:7001: ...". */
    void (*tell)(void *context, const char *text);
    void *context;
};

struct peers_options {
    struct peers_news news;
    const char *task;      /* "ps:0"; "" or NULL: a tool, which cannot be found by name */
    uint64_t incarnation;  /* 0: from the clock, larger for a later start */
    const char *producer;  /* for the hello: "tf-ps 1.0" */
    const char *folder;    /* unix:NAME is relative to it; NULL: the working directory */
    const char *key_file;  /* 64 hexadecimal digits; NULL: no key */
    bool no_key;           /* allows TCP on loopback without a key */
    double hello;          /* seconds for a handshake with its hellos; 0: 5 */
    double lease;          /* seconds; 0: 3 */
    size_t record_bytes;   /* limit for tensors of one received record; 0: 16 GiB */
    size_t shared_bytes;   /* size of each ring of shared memory, on Unix sockets; 0: 1 MiB */
    bool no_shared_memory; /* uses only the socket, also on Unix sockets */
    bool sums;             /* checksums of bodies even if the peer is on this host */
};

struct peers_handler {
    struct link_handler link; /* of every link */

    /* A dial was given up: at its deadline, or for a permanent reason (wrong key, another
     * version, replaced). `why` names the task, the address and the last cause. */
    void (*failed)(void *context, const char *task, const struct error *why);
};

/* Copies strings. ERR_NOINPUT, ERR_DENIED (others may read the key), ERR_CONFIG (no key). */
struct peers *peers_new(struct loop *loop, const struct peers_options *options,
                        const struct peers_handler *handler, struct error *err);

/* Closes all links and listeners at once. For open links `closed` is called within this call. */
void peers_free(struct peers *peers);

/* Listens. *bound, if not NULL, gets the address with the real port. Replaces a Unix socket's stale
 * file. ERR_CONFIG: TCP without a key, or beyond the loopback with no_key; ERR_OS: in use. */
int peers_listen(struct peers *peers, const char *address, struct address *bound,
                 struct error *err);

/* Dials the task until a link to it is open, for at most `seconds`, with growing pauses (50 ms to 1
 * s). Then calls handler.link.opened or handler.failed. Does nothing for a task that is linked or
 * being dialed. ERR_CONFIG, ERR_UNAVAILABLE: the address. */
int peers_connect(struct peers *peers, const char *task, const char *address, double seconds,
                  struct error *err);

/* Runs the loop in the calling thread until no dial is under way. Returns the first failure since
 * the last call; ERR_RETRY: loop_stop was called. */
int peers_wait(struct peers *peers, struct error *err);

/* Returns the open link to a task, whichever side dialed, held for the caller (link_release); NULL:
 * none. Any thread. */
struct link *peers_find(struct peers *peers, const char *task);

/* Calls the function for every open link, including tools'. */
void peers_each(struct peers *peers, void (*call)(void *context, struct link *link), void *context);

/* Frees kept buffers that were not used for that long. Any thread. */
void peers_trim(struct peers *peers, double seconds);
const struct link_hello *peers_self(const struct peers *peers);

/* Returns the number of connections that were refused before they were links: they came with a
 * wrong key or version, with something else, too late, or there were too many. Any thread. */
uint64_t peers_refused(const struct peers *peers);

#endif
