/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection manager of a process: its links to other tasks and the records on them. Requests
 * go to the function that is registered for their verb, replies to their caller, values to their
 * exchange. When a link ends, everything that depends on it is told: calls fail, steps are aborted,
 * watchers are called.
 *
 * Verbs and watchers run in the loop's thread and must not block. Everything else is thread-safe
 * unless it says otherwise.
 */
#ifndef TF_TRANSPORT_CONNS_H
#define TF_TRANSPORT_CONNS_H

#include "transport/link/peers.h"
#include "transport/value/exchange.h"

struct conns;

struct conns_options {
    struct peers_options peers;
    uint64_t window;      /* bytes of values that a peer may send without a grant, the same in all
                           * processes of a job; 0: 256 MiB */
    size_t segment_bytes; /* of memory for large values that peers of this host map, or that is
                           * mapped from theirs; 0: 4 GiB */
};

/* Creates its loop, too. Errors as of peers_new. */
struct conns *conns_new(const struct conns_options *options, struct error *err);
/* Ends all links. By then nothing else uses the manager, and its loop does not run. */
void conns_free(struct conns *conns);

struct loop *conns_loop(struct conns *conns);
struct peers *conns_peers(struct conns *conns);
struct exchanges *conns_exchanges(struct conns *conns);
struct segments *conns_segments(struct conns *conns);
/* Frees unused memory now, rather than after some seconds; useful after large transfers that will
 * not be repeated. Any thread. */
void conns_trim(struct conns *conns);
/* Returns the memory from which peers of this host read what is sent to them. */
struct outgoing_memory *conns_outgoing(struct conns *conns);

/* Returns the peer of a task, held for the caller; NULL: there is no link. */
struct peer *conns_peer(struct conns *conns, const char *task);
bool conns_is_linked(struct conns *conns, const char *task);

/* Called when a link opens, and when it ends; each function may be NULL. Owned by the caller. Add
 * and remove it in the loop's thread, or while the loop does not run. */
struct conns_watcher {
    void (*opened)(struct conns_watcher *watcher, struct peer *peer);
    void (*lost)(struct conns_watcher *watcher, struct peer *peer, const struct error *why);
    /* A dial was given up. */
    void (*failed)(struct conns_watcher *watcher, const char *task, const struct error *why);
    /* Takes the records `reduce` of all peers, which go to the newest watcher that takes any, and
     * are refused if there is none. ERR_PROTOCOL ends the peer's link. */
    int (*reduce)(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                  struct error *err);
    /* As in struct link_handler, for such records. */
    bool (*place)(struct conns_watcher *watcher, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t);
    struct conns_watcher *next;
};
void conns_watch(struct conns *conns, struct conns_watcher *watcher);
void conns_unwatch(struct conns *conns, struct conns_watcher *watcher);

/* The origin of the process's variables. Tasks of a job whose origins differ were not restored
 * together, and no session runs over them. 0: nothing was restored. Any thread. */
_Atomic uint64_t *conns_origin(struct conns *conns);

/* ---- calls ---- */

/* A request in flight, owned by the caller. `replied` is called exactly once, in the loop's thread
 * or that of the request, with the reply, which is valid during the call, or with the reason for
 * its absence (the peer's error, or its loss). */
struct call {
    void (*replied)(struct call *call, const struct record *reply, const struct error *failure);
    uint64_t id;
    struct peer *peer;
    struct call *next;
};

/* Starts a request with `n_fields` fields of the verb; the caller packs them and calls conns_call.
 * Returns NULL if the link is gone. If one of the two fails, `replied` is called within it. */
msgpack_packer *conns_call_begin(struct conns *conns, struct peer *peer, const char *verb,
                                 int n_fields, struct call *call);
void conns_call(struct conns *conns, struct call *call, const struct named_tensor *tensors, int n);

/* ---- replies ---- */

struct query {
    struct conns *conns;
    struct peer *peer; /* hold it to reply later */
    uint64_t id;
    const char *verb;
    const struct record *record; /* valid during the call */
};

typedef void verb_function(void *context, const struct query *query);

/* Call this before the loop runs. The name is not copied. */
void conns_verb(struct conns *conns, const char *name, verb_function *function, void *context);

/* From now on every request gets this error as its reply, so that the contexts of verbs may be
 * freed. Call this in the loop's thread. */
void conns_refuse(struct conns *conns, const struct error *why);

/* Each query needs exactly one reply, now or later, from any thread. Replies to a peer that is gone
 * are dropped. */
/* Returns NULL if the peer is gone: then reply_end must not be called. */
msgpack_packer *reply_begin(struct peer *peer, uint64_t id, int n_fields);
void reply_end(struct peer *peer, const struct named_tensor *tensors, int n);
/* Replies with tensors and no fields; with an error if they cannot be carried. */
void reply_tensors(struct peer *peer, uint64_t id, const struct named_tensor *tensors, int n);
void reply_error(struct peer *peer, uint64_t id, const struct error *err);
void reply_done(struct peer *peer, uint64_t id);

#endif
