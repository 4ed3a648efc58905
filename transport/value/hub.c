/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/value/hub.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "transport/value/segment.h"

#define WINDOW_BYTES (256ull << 20)
#define TRIM_SECONDS 5.0 /* for which segments that nobody uses are kept */

struct hub_verb {
    const char *name;
    verb_function *function;
    void *context;
};

struct hub {
    struct hub_options options;
    struct loop *loop;
    struct peers *peers;
    struct exchanges *exchanges;
    struct segments *segments;
    struct loop_timer *timer; /* of the segments */
    VEC(struct hub_verb) verbs;
    struct error refused; /* why requests are; code 0: they are not */
    struct hub_watcher *watchers;
    const struct hub_reducer *reducer;
    atomic_uint_fast64_t last_call;
    _Atomic uint64_t origin;

    pthread_mutex_t lock; /* guards what follows */
    VEC(struct peer *) open;
    struct call *calls;
};

_Atomic uint64_t *hub_origin(struct hub *hub)
{
    return &hub->origin;
}

/* ---- calls ---- */

msgpack_packer *hub_call_begin(struct hub *hub, struct peer *peer, const char *verb, int n_fields,
                               struct call *call, struct error *err)
{
    call->id = atomic_fetch_add_explicit(&hub->last_call, 1, memory_order_relaxed) + 1;
    call->peer = peer;
    msgpack_packer *packer = peer_begin(peer, RECORD_REQUEST, n_fields + 2, err);
    if (!packer)
        return NULL;
    pack_key_uint(packer, "id", call->id);
    pack_key_text(packer, "verb", verb);
    return packer;
}

/* Takes the call with that id, or, with none, the first to the peer, off the list. */
static struct call *take_call(struct hub *hub, const struct peer *peer, const uint64_t *id)
{
    pthread_mutex_lock(&hub->lock);
    struct call **at = &hub->calls;
    while (*at && !((*at)->peer == peer && (!id || (*at)->id == *id)))
        at = &(*at)->next;
    struct call *call = *at;
    if (call)
        *at = call->next;
    pthread_mutex_unlock(&hub->lock);
    return call;
}

int hub_call(struct hub *hub, struct call *call, const struct named_tensor *tensors, int n,
             struct error *err)
{
    struct peer *peer = call->peer;
    uint64_t id = call->id;
    pthread_mutex_lock(&hub->lock);
    call->next = hub->calls;
    hub->calls = call;
    pthread_mutex_unlock(&hub->lock);
    int code = peer_end(peer, tensors, n, err);
    /* A link that ended meanwhile may have told the caller already. */
    return code && take_call(hub, peer, &id) ? code : 0;
}

/* ---- records ---- */

void hub_verb(struct hub *hub, const char *name, verb_function *function, void *context)
{
    vec_push(&hub->verbs, ((struct hub_verb){name, function, context}));
}

void hub_refuse(struct hub *hub, const struct error *why)
{
    hub->refused = *why;
}

void hub_reduce(struct hub *hub, const struct hub_reducer *reducer)
{
    hub->reducer = reducer;
}

static int take_record(struct hub *hub, struct peer *peer, struct record *record, struct error *err)
{
    switch (record->kind) {
    case RECORD_REQUEST: {
        struct query query = {.hub = hub, .peer = peer, .record = record};
        const char *name = record_text(&record->header, "verb");
        if (!name || !record_get_uint(&record->header, "id", &query.id))
            return error_set(err, ERR_PROTOCOL, "a request without id or verb");
        const struct hub_verb *verb = NULL;
        for (size_t i = 0; i < hub->verbs.n && !verb; i++)
            if (!strcmp(hub->verbs.items[i].name, name))
                verb = &hub->verbs.items[i];
        if (hub->refused.code) {
            answer_error(peer, query.id, &hub->refused);
        } else if (verb) {
            verb->function(verb->context, &query);
        } else {
            struct error unknown = ERROR_INIT;
            error_set(&unknown, ERR_PROTOCOL, "does not know the request '%.64s'", name);
            answer_error(peer, query.id, &unknown);
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
        struct call *call = take_call(hub, peer, &id);
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
        return exchanges_value(hub->exchanges, peer, record, err);
    case RECORD_SHARE:
        return record_field(&record->header, "answer")
                   ? flow_answered(peer, record, err)
                   : exchanges_value(hub->exchanges, peer, record, err);
    case RECORD_ANNOUNCE:
        return exchanges_announce(hub->exchanges, peer, record, err);
    case RECORD_GRANT:
        return flow_granted(peer, record, err);
    case RECORD_REDUCE:
        if (hub->reducer)
            return hub->reducer->take(hub->reducer->context, peer, record, err);
        break;
    default:
        break;
    }
    return error_set(err, ERR_PROTOCOL, "a %s record has no place here",
                     record_kind_name(record->kind));
}

/* ---- links ---- */

static void link_opened(void *context, struct link *link)
{
    struct hub *hub = context;
    struct peer *peer = peer_new(link, hub->options.window, hub->segments);
    link_set_user(link, peer);
    pthread_mutex_lock(&hub->lock);
    vec_push(&hub->open, peer);
    pthread_mutex_unlock(&hub->lock);
    for (struct hub_watcher *w = hub->watchers, *next; w; w = next) {
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
    const struct hub_reducer *reducer = ((struct hub *)context)->reducer;
    struct peer *peer = link_user(link);
    return reducer && reducer->place && peer && record->kind == RECORD_REDUCE &&
           reducer->place(reducer->context, peer, record, like, t);
}

static void link_closed(void *context, struct link *link, const struct error *why)
{
    struct hub *hub = context;
    struct peer *peer = link_user(link);
    struct error reason = *why;
    if (!peer)
        return;
    if (!reason.code)
        error_set(&reason, ERR_UNAVAILABLE, "%s: it has ended", peer_text(peer));
    link_set_user(link, NULL);
    pthread_mutex_lock(&hub->lock);
    for (size_t i = 0; i < hub->open.n; i++) {
        if (hub->open.items[i] == peer) {
            hub->open.items[i] = vec_pop(&hub->open);
            break;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    peer_close(peer, &reason);
    exchanges_lost(hub->exchanges, peer, &reason);
    struct call *call;
    while ((call = take_call(hub, peer, NULL)))
        call->replied(call, NULL, &reason);
    for (struct hub_watcher *w = hub->watchers, *next; w; w = next) {
        next = w->next;
        if (w->lost)
            w->lost(w, peer, &reason);
    }
    peer_release(peer);
}

static void dial_failed(void *context, const char *task, const struct error *why)
{
    struct hub *hub = context;
    for (struct hub_watcher *w = hub->watchers, *next; w; w = next) {
        next = w->next;
        if (w->failed)
            w->failed(w, task, why);
    }
}

static void dial_waits(void *context, const char *task, const char *text)
{
    const struct hub *hub = context;
    if (hub->options.waiting)
        hub->options.waiting(hub->options.context, task, text);
}

static void print_notice(void *context, const char *text)
{
    const struct hub *hub = context;
    if (hub->options.tell)
        hub->options.tell(hub->options.context, text);
}

void hub_trim(struct hub *hub)
{
    segments_trim(hub->segments, 0);
    peers_trim(hub->peers, 0);
}

static void trim(void *hub)
{
    segments_trim(((struct hub *)hub)->segments, TRIM_SECONDS);
    loop_timer_set(((struct hub *)hub)->timer, TRIM_SECONDS);
}

/* ---- the hub ---- */

struct hub *hub_new(const struct hub_options *options, struct error *err)
{
    struct hub *hub = mem_alloc(sizeof *hub);
    struct peers_handler handler = {.link = {hub, link_opened, link_record, link_closed, place},
                                    .failed = dial_failed,
                                    .waiting = dial_waits,
                                    .tell = print_notice};
    hub->options = *options;
    if (!hub->options.window)
        hub->options.window = WINDOW_BYTES;
    pthread_mutex_init(&hub->lock, NULL);
    hub->exchanges = exchanges_new();
    hub->segments = segments_new(hub->options.segment_bytes);
    hub->loop = loop_new(err);
    hub->timer = hub->loop ? loop_timer_new(hub->loop, trim, hub) : NULL;
    hub->peers = hub->loop ? peers_new(hub->loop, &options->peers, &handler, err) : NULL;
    if (hub->peers) {
        loop_timer_set(hub->timer, TRIM_SECONDS);
        return hub;
    }
    hub_free(hub);
    return NULL;
}

void hub_free(struct hub *hub)
{
    if (!hub)
        return;
    if (hub->peers)
        peers_free(hub->peers);
    if (hub->loop) {
        loop_timer_free(hub->timer);
        loop_free(hub->loop);
    }
    exchanges_free(hub->exchanges);
    segments_free(hub->segments);
    vec_release(&hub->verbs);
    vec_release(&hub->open);
    pthread_mutex_destroy(&hub->lock);
    mem_free(hub);
}

struct loop *hub_loop(struct hub *hub)
{
    return hub->loop;
}

struct peers *hub_peers(struct hub *hub)
{
    return hub->peers;
}

struct exchanges *hub_exchanges(struct hub *hub)
{
    return hub->exchanges;
}

struct segments *hub_segments(struct hub *hub)
{
    return hub->segments;
}

struct outgoing_memory *hub_outgoing(struct hub *hub)
{
    return segments_outgoing(hub->segments);
}

struct peer *hub_peer(struct hub *hub, const char *task)
{
    struct peer *found = NULL;
    pthread_mutex_lock(&hub->lock);
    for (size_t i = 0; i < hub->open.n && !found; i++)
        if (!strcmp(peer_task(hub->open.items[i]), task))
            found = peer_retain(hub->open.items[i]);
    pthread_mutex_unlock(&hub->lock);
    return found;
}

void hub_each_peer(struct hub *hub,
                   void (*call)(void *context, const char *task, const struct link_stats *stats),
                   void *context)
{
    struct link_stats stats;
    pthread_mutex_lock(&hub->lock);
    for (size_t i = 0; i < hub->open.n; i++)
        if (peer_stats(hub->open.items[i], &stats))
            call(context, peer_task(hub->open.items[i]), &stats);
    pthread_mutex_unlock(&hub->lock);
}

void hub_watch(struct hub *hub, struct hub_watcher *watcher)
{
    watcher->next = hub->watchers;
    hub->watchers = watcher;
}

void hub_unwatch(struct hub *hub, struct hub_watcher *watcher)
{
    struct hub_watcher **at = &hub->watchers;
    while (*at && *at != watcher)
        at = &(*at)->next;
    if (*at)
        *at = watcher->next;
}
