/* SPDX-License-Identifier: Apache-2.0
 *
 * A process' end of all its links: who it is, where it listens, whom it dials, and which link leads
 * to which task. Unix sockets are guarded by their folder's permissions; TCP wants a key, which
 * both sides hold (TLS 1.3 with a pre-shared key), or, on loopback only, to be told to do without.
 *
 * Everything here is called in the thread that runs the loop, or while nobody runs it, except what
 * says "any thread".
 */
#ifndef TF_TRANSPORT_PEERS_H
#define TF_TRANSPORT_PEERS_H

#include "transport/channel/address.h"
#include "transport/link/link.h"

struct peers;

struct peers_options {
    const char *job;       /* "" or NULL: none; an end without a job talks to every job */
    const char *task;      /* "ps:0"; "" or NULL: a tool, which others cannot find by name */
    uint64_t incarnation;  /* 0: made from the clock, so that a later start has a larger one */
    const char *producer;  /* for the hello: "tf-ps 1.0" */
    const char *folder;    /* what unix:NAME is relative to; NULL: the working directory */
    const char *key_file;  /* 64 hexadecimal digits; NULL: no key */
    bool no_key;           /* TCP on loopback without a key is meant */
    double hello;          /* seconds that a handshake with its hellos may take; 0: 5 */
    double lease;          /* seconds; 0: 3 */
    size_t record_bytes;   /* tensors of one record that is received; 0: 16 GiB */
    size_t shared_bytes;   /* a ring of shared memory each way, on Unix sockets; 0: 1 MiB */
    bool no_shared_memory; /* plain bytes on Unix sockets as well */
    bool sums;             /* checksums of bodies also where the peer is on this host */
};

struct peers_handler {
    struct link_handler link; /* of every link */

    /* A dial was given up: at its deadline, or for a reason that does not pass (wrong key, another
     * job, another version, replaced). `why` names the task, the address and the last cause. */
    void (*failed)(void *context, const char *task, const struct error *why);

    /* A dial waits, once a second: "waiting for ps:1 at 127.0.0.1:7001: connection refused, 27 s
     * left". May be NULL. */
    void (*waiting)(void *context, const char *task, const char *text);

    /* Something that whoever runs the process should know, now and then: "refuses connections at
     * 127.0.0.1:7001: ...". May be NULL. */
    void (*tell)(void *context, const char *text);
};

/* Strings are copied. ERR_NOINPUT, ERR_DENIED (others may read the key), ERR_CONFIG (no key). */
struct peers *peers_new(struct loop *loop, const struct peers_options *options,
                        const struct peers_handler *handler, struct error *err);

/* Closes all links and listeners at once. `closed` is called for links that are open, within this
 * call. */
void peers_free(struct peers *peers);

/* Listens. *bound gets the address with the real port; may be NULL. A Unix socket's stale file is
 * replaced. ERR_CONFIG: TCP without a key, or beyond the loopback with no_key; ERR_OS: in use. */
int peers_listen(struct peers *peers, const char *address, struct address *bound,
                 struct error *err);

/* Dials the task until a link to it is open, for at most `seconds`, with growing pauses (50 ms to
 * 1 s). handler.link.opened or handler.failed follows. A task that is linked or being dialed
 * already is left at that. ERR_CONFIG, ERR_UNAVAILABLE: the address. */
int peers_connect(struct peers *peers, const char *task, const char *address, double seconds,
                  struct error *err);

/* Runs the loop in the calling thread until no dial is under way. The first one that failed since
 * the last call is the error; ERR_RETRY: loop_stop was called. */
int peers_wait(struct peers *peers, struct error *err);

/* The open link to a task, whichever side dialed, held for the caller (link_release); NULL: none.
 * Any thread. */
struct link *peers_find(struct peers *peers, const char *task);

/* Calls for every open link, tools' included. */
void peers_each(struct peers *peers, void (*call)(void *context, struct link *link), void *context);

/* Memory that was kept for the next tensors, and not used for so long, goes back. Any thread. */
void peers_trim(struct peers *peers, double seconds);
struct loop *peers_loop(const struct peers *peers);
const struct link_hello *peers_self(const struct peers *peers);

/* Connections that were refused before they were links, by reason. Any thread. */
struct peer_refusals {
    uint64_t wrong_key, no_tls, http, garbage, wrong_job, wrong_version, timeout, too_many, old;
};

struct peer_refusals peers_refused(const struct peers *peers);

#endif
