/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection manager of a process: its links to other tasks and what travels on them. Requests
 * go to the function that is registered for their verb, replies to who asked, values to their
 * exchange. When a link ends, whoever depends on it is told: calls fail, steps are aborted,
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
    uint64_t window;      /* bytes of values that may come from a peer ungranted, the same in all
                           * processes of a job; 0: 256 MiB */
    size_t segment_bytes; /* of memory for large values that peers of this host map, or that is
                           * theirs; 0: 4 GiB */
    /* Told what a dial waits for, once a second; may be NULL. */
    void (*waiting)(void *context, const char *task, const char *text);
    /* As of struct peers_handler; may be NULL. */
    void (*tell)(void *context, const char *text);
    void *context;
};

/* Makes its loop, too. Errors as of peers_new. */
struct conns *conns_new(const struct conns_options *options, struct error *err);
/* Ends all links. Nothing of it may be used by then, and its loop does not run. */
void conns_free(struct conns *conns);

struct loop *conns_loop(struct conns *conns);
struct peers *conns_peers(struct conns *conns);
struct exchanges *conns_exchanges(struct conns *conns);
struct segments *conns_segments(struct conns *conns);
/* Memory that nobody uses goes back now, rather than after some seconds: for who has exchanged much
 * that does not come again. Any thread. */
void conns_trim(struct conns *conns);
/* Memory from which peers of this host read what is sent to them. */
struct outgoing_memory *conns_outgoing(struct conns *conns);

/* The peer of a task, held for the caller; NULL: there is no link. */
struct peer *conns_peer(struct conns *conns, const char *task);

/* Calls for each peer whose link is open, with what has crossed it. The calls must be short and use
 * nothing of the connection manager's. */
void conns_each_peer(struct conns *conns,
                     void (*call)(void *context, const char *task, const struct link_stats *stats),
                     void *context);

/* Told of every link that opens, and of its end; any of them may be NULL. Lives with its owner. Add
 * and remove in the loop's thread, or while it does not run. */
struct conns_watcher {
    void (*opened)(struct conns_watcher *watcher, struct peer *peer);
    void (*lost)(struct conns_watcher *watcher, struct peer *peer, const struct error *why);
    /* A dial was given up. */
    void (*failed)(struct conns_watcher *watcher, const char *task, const struct error *why);
    struct conns_watcher *next;
};
void conns_watch(struct conns *conns, struct conns_watcher *watcher);
void conns_unwatch(struct conns *conns, struct conns_watcher *watcher);

/* The origin of the process's variables: tasks of a job with different origins were restored apart,
 * and no session runs over them. 0: nothing was restored. Any thread. */
_Atomic uint64_t *conns_origin(struct conns *conns);

/* ---- asking ---- */

/* A request that is on its way; lives with its owner until `replied` is called, exactly once, in
 * the loop's thread: with the reply, valid during the call, or with the reason that there is none
 * (the peer's error, or its loss). */
struct call {
    void (*replied)(struct call *call, const struct record *reply, const struct error *failure);
    uint64_t id;
    struct peer *peer;
    struct call *next;
};

/* Starts a request with `n_fields` fields of the verb's own; the caller packs them and calls
 * conns_call. NULL when the link is gone: `replied` is not called then. */
msgpack_packer *conns_call_begin(struct conns *conns, struct peer *peer, const char *verb,
                                 int n_fields, struct call *call, struct error *err);
/* Not 0: `replied` is not called. */
int conns_call(struct conns *conns, struct call *call, const struct named_tensor *tensors, int n,
               struct error *err);

/* ---- collectives ---- */

/* The receiver of the records `reduce` of all peers, in the loop's thread. */
struct conns_reducer {
    /* ERR_PROTOCOL ends the peer's link. */
    int (*take)(void *context, struct peer *peer, const struct record *record, struct error *err);
    /* The same as struct link_handler's; may be NULL. */
    bool (*place)(void *context, struct peer *peer, const struct record *record,
                  const struct tensor *like, struct tensor *t);
    void *context;
};

/* Lives as long as it is set; NULL: such records have no place here. Set it before there are links.
 */
void conns_reduce(struct conns *conns, const struct conns_reducer *reducer);

/* ---- answering ---- */

struct query {
    struct conns *conns;
    struct peer *peer; /* hold it to answer later */
    uint64_t id;
    const struct record *record; /* valid during the call */
};

typedef void verb_function(void *context, const struct query *query);

/* Before the loop runs. The name is not copied. */
void conns_verb(struct conns *conns, const char *name, verb_function *function, void *context);

/* From now on every request gets this error for a reply: what verbs were registered for may be
 * freed. In the loop's thread. */
void conns_refuse(struct conns *conns, const struct error *why);

/* Exactly one reply to each query, now or later, from any thread. A peer that is gone by then gets
 * none. */
/* NULL: the peer is gone, and there is nothing to end. */
msgpack_packer *reply_begin(struct peer *peer, uint64_t id, int n_fields);
void reply_end(struct peer *peer, const struct named_tensor *tensors, int n);
/* A reply that is tensors and no fields; an error instead if they cannot be carried. */
void reply_tensors(struct peer *peer, uint64_t id, const struct named_tensor *tensors, int n);
void reply_error(struct peer *peer, uint64_t id, const struct error *err);
void reply_done(struct peer *peer, uint64_t id);

#endif
