/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/conns.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "transport/value/segment.h"

#define WINDOW_BYTES (256ull << 20)
#define TRIM_SECONDS 5.0               /* age at which unused memory is freed */
#define LARGE_BYTES ((size_t)64 << 10) /* of a reply */

struct conns_verb {
    const char *name;
    verb_function *function;
    void *context;
};

struct conns {
    struct conns_options options;
    struct loop *loop;
    struct peers *peers;
    struct exchanges *exchanges;
    struct segments *segments;
    struct loop_event *timer; /* trims unused memory */
    VEC(struct conns_verb) verbs;
    struct error refused; /* why requests are refused; code 0: they are not */
    struct conns_watcher *watchers;
    atomic_uint_fast64_t last_call;
    _Atomic uint64_t origin;

    pthread_mutex_t lock; /* guards the calls, and the peers as the links' users */
    struct call *calls;
};

_Atomic uint64_t *conns_origin(struct conns *conns)
{
    return &conns->origin;
}

/* ---- calls ---- */

msgpack_packer *conns_call_begin(struct conns *conns, struct peer *peer, const char *verb,
                                 int n_fields, struct call *call)
{
    struct error err = ERROR_INIT;
    call->id = atomic_fetch_add_explicit(&conns->last_call, 1, memory_order_relaxed) + 1;
    call->peer = peer;
    msgpack_packer *packer = peer_begin(peer, RECORD_REQUEST, n_fields + 2, &err);
    if (!packer) {
        call->replied(call, NULL, &err);
        return NULL;
    }
    pack_key_uint(packer, "id", call->id);
    pack_key_text(packer, "verb", verb);
    return packer;
}

/* Removes and returns the call with that id, or, if `id` is NULL, the first call to the peer. */
static struct call *take_call(struct conns *conns, const struct peer *peer, const uint64_t *id)
{
    pthread_mutex_lock(&conns->lock);
    struct call **at = &conns->calls;
    while (*at && !((*at)->peer == peer && (!id || (*at)->id == *id)))
        at = &(*at)->next;
    struct call *call = *at;
    if (call)
        *at = call->next;
    pthread_mutex_unlock(&conns->lock);
    return call;
}

void conns_call(struct conns *conns, struct call *call, const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    struct peer *peer = call->peer;
    uint64_t id = call->id;
    pthread_mutex_lock(&conns->lock);
    call->next = conns->calls;
    conns->calls = call;
    pthread_mutex_unlock(&conns->lock);
    /* If the link ended meanwhile, `replied` may have been called already. */
    if (peer_end(peer, tensors, n, &err) && take_call(conns, peer, &id))
        call->replied(call, NULL, &err);
}

/* ---- answering ---- */

static msgpack_packer *begin_reply(struct peer *peer, uint64_t id, int code, int n_fields)
{
    struct error ignored = ERROR_INIT;
    msgpack_packer *packer = peer_begin(peer, RECORD_REPLY, n_fields + 2, &ignored);
    if (!packer)
        return NULL;
    pack_key_uint(packer, "id", id);
    pack_key_int(packer, "code", code);
    return packer;
}

msgpack_packer *reply_begin(struct peer *peer, uint64_t id, int n_fields)
{
    return begin_reply(peer, id, 0, n_fields);
}

/* Replies are matched by id and may come in any order: large ones do not delay others. */
static int end_reply(struct peer *peer, const struct named_tensor *tensors, int n,
                     struct error *err)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += tensor_bytes(&tensors[i].tensor);
    return peer_end_value(peer, bytes > LARGE_BYTES ? 0 : LINK_FIRST, tensors, n, err);
}

void reply_end(struct peer *peer, const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    end_reply(peer, tensors, n, &err); /* a peer that is gone needs no reply */
}

void reply_error(struct peer *peer, uint64_t id, const struct error *err)
{
    const char *reason = error_reason_name(err->reason);
    msgpack_packer *packer = begin_reply(peer, id, err->code, reason ? 2 : 1);
    if (!packer)
        return;
    pack_key_text(packer, "error", err->text);
    if (reason)
        pack_key_text(packer, "reason", reason);
    reply_end(peer, NULL, 0);
}

void reply_tensors(struct peer *peer, uint64_t id, const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    if (begin_reply(peer, id, 0, 0) && end_reply(peer, tensors, n, &err))
        reply_error(peer, id, &err);
}

void reply_done(struct peer *peer, uint64_t id)
{
    if (begin_reply(peer, id, 0, 0))
        reply_end(peer, NULL, 0);
}

/* ---- records ---- */

void conns_verb(struct conns *conns, const char *name, verb_function *function, void *context)
{
    vec_push(&conns->verbs, ((struct conns_verb){name, function, context}));
}

void conns_refuse(struct conns *conns, const struct error *why)
{
    conns->refused = *why;
}

static struct conns_watcher *find_reducer(const struct conns *conns)
{
    struct conns_watcher *watcher = conns->watchers;
    while (watcher && !watcher->reduce)
        watcher = watcher->next;
    return watcher;
}

static int take_record(struct conns *conns, struct peer *peer, struct record *record,
                       struct error *err)
{
    switch (record->kind) {
    case RECORD_REQUEST: {
        const char *name = record_text(&record->header, "verb");
        struct query query = {.conns = conns, .peer = peer, .verb = name, .record = record};
        if (!name || !record_get_uint(&record->header, "id", &query.id))
            return error_set(err, ERR_PROTOCOL, "a request without id or verb");
        size_t i = vec_find(&conns->verbs, name);
        if (conns->refused.code) {
            reply_error(peer, query.id, &conns->refused);
        } else if (i < conns->verbs.n) {
            conns->verbs.items[i].function(conns->verbs.items[i].context, &query);
        } else {
            struct error unknown = ERROR_INIT;
            error_set(&unknown, ERR_PROTOCOL, "does not know the request '%.64s'", name);
            reply_error(peer, query.id, &unknown);
        }
        return 0;
    }
    case RECORD_REPLY: {
        struct error failure = ERROR_INIT;
        const char *text = record_text(&record->header, "error");
        uint64_t id;
        int64_t code;
        if (!record_get_uint(&record->header, "id", &id) ||
            !record_get_int(&record->header, "code", &code) || code < 0 || code > 255)
            return error_set(err, ERR_PROTOCOL, "a reply without id or code");
        struct call *call = take_call(conns, peer, &id);
        if (!call)
            return error_set(err, ERR_PROTOCOL, "a reply that nobody asked for");
        if (code) {
            error_set(&failure, (int)code, "%s: %s", peer_task(peer),
                      text ? text : "failed and said not why");
            failure.reason = error_reason_parse(record_text(&record->header, "reason"));
        }
        call->replied(call, code ? NULL : record, code ? &failure : NULL);
        return 0;
    }
    case RECORD_VALUE:
        return exchanges_value(conns->exchanges, peer, record, err);
    case RECORD_SHARE:
        return record_field(&record->header, "answer")
                   ? flow_answered(peer, record, err)
                   : exchanges_value(conns->exchanges, peer, record, err);
    case RECORD_ANNOUNCE:
        return exchanges_announce(conns->exchanges, peer, record, err);
    case RECORD_GRANT:
        return flow_granted(peer, record, err);
    case RECORD_REDUCE: {
        struct conns_watcher *reducer = find_reducer(conns);
        if (reducer)
            return reducer->reduce(reducer, peer, record, err);
    } break;
    default:
        break;
    }
    return error_set(err, ERR_PROTOCOL, "a %s record has no place here",
                     record_kind_name(record->kind));
}

/* ---- links ---- */

static void link_opened(void *context, struct link *link)
{
    struct conns *conns = context;
    struct peer *peer = peer_new(link, conns->options.window, conns->segments);
    pthread_mutex_lock(&conns->lock);
    link_set_user(link, peer);
    pthread_mutex_unlock(&conns->lock);
    for (struct conns_watcher *w = conns->watchers, *next; w; w = next) {
        next = w->next;
        if (w->opened)
            w->opened(w, peer);
    }
}

static void link_record(void *context, struct link *link, struct record *record)
{
    struct error err = ERROR_INIT;
    struct peer *peer = link_user(link);
    if (peer && take_record(context, peer, record, &err))
        link_close(link, &err);
}

static bool place(void *context, struct link *link, const struct record *record,
                  const struct tensor *like, struct tensor *t)
{
    struct conns_watcher *reducer = record->kind == RECORD_REDUCE ? find_reducer(context) : NULL;
    struct peer *peer = link_user(link);
    return reducer && reducer->place && peer && reducer->place(reducer, peer, record, like, t);
}

static void link_closed(void *context, struct link *link, const struct error *why)
{
    struct conns *conns = context;
    struct peer *peer = link_user(link);
    struct error reason = *why;
    if (!peer)
        return;
    if (!reason.code)
        error_set(&reason, ERR_UNAVAILABLE, "%s: it has ended", peer_text(peer));
    pthread_mutex_lock(&conns->lock);
    link_set_user(link, NULL);
    pthread_mutex_unlock(&conns->lock);
    peer_close(peer, &reason);
    exchanges_lost(conns->exchanges, peer, &reason);
    struct call *call;
    while ((call = take_call(conns, peer, NULL)))
        call->replied(call, NULL, &reason);
    for (struct conns_watcher *w = conns->watchers, *next; w; w = next) {
        next = w->next;
        if (w->lost)
            w->lost(w, peer, &reason);
    }
    peer_release(peer);
}

static void dial_failed(void *context, const char *task, const struct error *why)
{
    struct conns *conns = context;
    for (struct conns_watcher *w = conns->watchers, *next; w; w = next) {
        next = w->next;
        if (w->failed)
            w->failed(w, task, why);
    }
}

static void trim(struct conns *conns, double seconds)
{
    segments_trim(conns->segments, seconds);
    peers_trim(conns->peers, seconds);
}

void conns_trim(struct conns *conns)
{
    trim(conns, 0);
}

static void trim_often(void *context)
{
    struct conns *conns = context;
    trim(conns, TRIM_SECONDS);
    loop_timer_set(conns->timer, TRIM_SECONDS);
}

/* ---- the connection manager ---- */

struct conns *conns_new(const struct conns_options *options, struct error *err)
{
    struct conns *conns = mem_alloc(sizeof *conns);
    struct peers_handler handler = {.link = {conns, link_opened, link_record, link_closed, place},
                                    .failed = dial_failed};
    conns->options = *options;
    if (!conns->options.window)
        conns->options.window = WINDOW_BYTES;
    pthread_mutex_init(&conns->lock, NULL);
    conns->exchanges = exchanges_new();
    conns->segments = segments_new(conns->options.segment_bytes);
    conns->loop = loop_new(err);
    conns->timer = conns->loop ? loop_timer_new(conns->loop, trim_often, conns) : NULL;
    conns->peers = conns->loop ? peers_new(conns->loop, &options->peers, &handler, err) : NULL;
    if (conns->peers) {
        loop_timer_set(conns->timer, TRIM_SECONDS);
        return conns;
    }
    conns_free(conns);
    return NULL;
}

void conns_free(struct conns *conns)
{
    if (!conns)
        return;
    peers_free(conns->peers);
    loop_event_free(conns->timer);
    loop_free(conns->loop);
    exchanges_free(conns->exchanges);
    segments_free(conns->segments);
    vec_release(&conns->verbs);
    pthread_mutex_destroy(&conns->lock);
    mem_free(conns);
}

struct loop *conns_loop(struct conns *conns)
{
    return conns->loop;
}

struct peers *conns_peers(struct conns *conns)
{
    return conns->peers;
}

struct exchanges *conns_exchanges(struct conns *conns)
{
    return conns->exchanges;
}

struct segments *conns_segments(struct conns *conns)
{
    return conns->segments;
}

struct outgoing_memory *conns_outgoing(struct conns *conns)
{
    return segments_outgoing(conns->segments);
}

struct peer *conns_peer(struct conns *conns, const char *task)
{
    struct link *link = peers_find(conns->peers, task);
    pthread_mutex_lock(&conns->lock);
    struct peer *peer = link ? link_user(link) : NULL;
    if (peer)
        peer_retain(peer);
    pthread_mutex_unlock(&conns->lock);
    link_release(link);
    return peer;
}

bool conns_is_linked(struct conns *conns, const char *task)
{
    struct peer *peer = conns_peer(conns, task);
    peer_release(peer);
    return peer != NULL;
}

void conns_watch(struct conns *conns, struct conns_watcher *watcher)
{
    watcher->next = conns->watchers;
    conns->watchers = watcher;
}

void conns_unwatch(struct conns *conns, struct conns_watcher *watcher)
{
    struct conns_watcher **at = &conns->watchers;
    while (*at && *at != watcher)
        at = &(*at)->next;
    if (*at)
        *at = watcher->next;
}
