/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/link/peers.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/shared.h"
#include "transport/link/buffer_pool.h"
#include "transport/link/peers_private.h"

#define LEASE_SECONDS 3.0
#define HELLO_SECONDS 5.0
#define RECORD_BYTES ((size_t)16 << 30)
#define KEPT_BYTES ((size_t)256 << 20) /* of buffers kept for received tensors */
#define SHARED_BYTES ((size_t)1 << 20)
#define NEWEST_MAX 4096 /* tasks whose latest incarnations are remembered */

/* Milliseconds since 1970, and 22 random bits: unique, and larger for a later start. */
static uint64_t make_incarnation(void)
{
    struct timespec now;
    uint32_t bits = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits)
        bits = (uint32_t)now.tv_nsec ^ (uint32_t)getpid();
    uint64_t milliseconds = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return (milliseconds << 22 | (bits >> 10)) & INT64_MAX;
}

static char *copy(const char *text)
{
    return mem_strdup(text ? text : "");
}

void peers_trim(struct peers *peers, double seconds)
{
    buffer_pool_trim(peers->config.buffer_pool, seconds);
}

struct link *peers_linked(const struct peers *peers, const char *task)
{
    int64_t value;
    return map_get(&peers->by_task, task, &value) ? (struct link *)(intptr_t)value : NULL;
}

/* Returns whether the link is the surplus one of two that crossed; both ends choose the same. */
static bool is_surplus(const struct peers *peers, const struct link *link, const struct link *old)
{
    if (!old || old->peer.incarnation != link->peer.incarnation || link->dialed == old->dialed)
        return false; /* the same side dialed twice: the other end has dropped the older */
    return (strcmp(peers->task, link->peer.task) < 0) != link->dialed;
}

static int refuse_surplus(struct error *err)
{
    return error_set(err, ERR_UNAVAILABLE, "there is another connection");
}

/* Decides whether the peer may have a link. */
static int take_hello(void *context, struct link *link, struct error *err)
{
    struct peers *peers = context;
    const char *task = link->peer.task;
    uint64_t incarnation = link->peer.incarnation;
    int64_t newest;
    if (link->unwanted.code)
        *err = link->unwanted;
    if (link->unwanted.code || !*task)
        return err->code;
    if (!strcmp(task, peers->task))
        return error_set(err, ERR_CONFIG, "both ends are '%s'", task);
    bool known = map_get(&peers->newest, task, &newest);
    if (known && (uint64_t)newest > incarnation) {
        link->is_refused = true;
        return error_set(err, ERR_CONFIG, "incarnation %llu was replaced by incarnation %lld",
                         (unsigned long long)link->peer.incarnation, (long long)newest);
    }
    if (is_surplus(peers, link, peers_linked(peers, task)))
        return refuse_surplus(err);
    if (known || peers->newest.n < NEWEST_MAX)
        map_put(&peers->newest, known ? task : mem_strdup(task), (int64_t)incarnation);
    return 0;
}

static void link_opened(void *context, struct link *link)
{
    struct peers *peers = context;
    peers->n_waiting -= !link->dialed;
    if (*link->peer.task) {
        struct link *old = peers_linked(peers, link->peer.task);
        if (is_surplus(peers, link, old)) { /* the other was opened after this one's hello */
            struct error why = ERROR_INIT;
            refuse_surplus(&why);
            link_refuse(link, &why);
            return;
        }
        if (old) {
            struct error why = ERROR_INIT;
            if (old->peer.incarnation == link->peer.incarnation)
                error_set(&why, ERR_UNAVAILABLE, "replaced by another connection");
            else
                error_set(&why, ERR_UNAVAILABLE, "replaced by incarnation %llu",
                          (unsigned long long)link->peer.incarnation);
            link_refuse(old, &why);
        }
        pthread_mutex_lock(&peers->lock);
        map_put(&peers->by_task, link->peer.task, (intptr_t)link);
        pthread_mutex_unlock(&peers->lock);
        dial_reached(peers, link->peer.task);
    }
    if (peers->handler.link.opened)
        peers->handler.link.opened(peers->handler.link.context, link);
}

static void closed(void *context, struct link *link, const struct error *why)
{
    struct peers *peers = context;
    /* The remaining links stay in order of arrival. */
    size_t n = 0;
    for (size_t i = 0; i < peers->links.n; i++)
        if (peers->links.items[i] != link)
            peers->links.items[n++] = peers->links.items[i];
    peers->links.n = n;
    if (link->was_open && *link->peer.task && peers_linked(peers, link->peer.task) == link) {
        pthread_mutex_lock(&peers->lock);
        map_remove(&peers->by_task, link->peer.task);
        pthread_mutex_unlock(&peers->lock);
    }
    if (link->was_open) {
        if (peers->handler.link.closed)
            peers->handler.link.closed(peers->handler.link.context, link, why);
        return;
    }
    if (!link->dialed) {
        peers->n_waiting--;
        atomic_fetch_add(&peers->refused, link->is_refused);
    } else {
        dial_lost(peers, link, why);
    }
}

struct peers *peers_new(struct loop *loop, const struct peers_options *options,
                        const struct peers_handler *handler, struct error *err)
{
    struct tls *tls = NULL;
    if (options->key_file && !(tls = tls_new(options->key_file, err)))
        return NULL;
    struct peers *peers = mem_alloc(sizeof *peers);
    peers->loop = loop;
    peers->options = *options;
    peers->handler = *handler;
    peers->tls = tls;
    peers->task = copy(options->task);
    peers->producer = copy(options->producer);
    peers->folder = options->folder ? copy(options->folder) : NULL;
    pthread_mutex_init(&peers->lock, NULL);
    peers->config = (struct link_config){
        .self = {peers->task, options->incarnation ? options->incarnation : make_incarnation()},
        .producer = peers->producer,
        .lease = options->lease > 0 ? options->lease : LEASE_SECONDS,
        .handshake = options->hello > 0 ? options->hello : HELLO_SECONDS,
        .record_bytes = options->record_bytes ? options->record_bytes : RECORD_BYTES,
        .shared_bytes = options->no_shared_memory ? 0
                        : options->shared_bytes   ? options->shared_bytes
                                                  : SHARED_BYTES,
        .sums = options->sums,
        .buffer_pool = buffer_pool_new(KEPT_BYTES),
        .context = peers,
        .hello = take_hello,
        .opened = link_opened,
        .closed = closed,
        .record = handler->link.record,
        .place = handler->link.place,
        .user = handler->link.context};
    return peers;
}

void peers_free(struct peers *peers)
{
    if (!peers)
        return;
    while (peers->dials)
        dial_free(peers->dials);
    while (peers->listeners)
        listener_free_first(peers);
    loop_run_posted(peers->loop); /* remaining work of links */
    while (peers->links.n)
        link_end_now(peers->links.items[0]);
    loop_run_posted(peers->loop); /* work that held links until now */
    buffer_pool_free(peers->config.buffer_pool);
    tls_free(peers->tls);
    vec_release(&peers->links);
    map_release(&peers->by_task);
    for (size_t i = 0; i < peers->newest.capacity; i++)
        mem_free((void *)(uintptr_t)peers->newest.slots[i].key);
    map_release(&peers->newest);
    pthread_mutex_destroy(&peers->lock);
    mem_free(peers->task);
    mem_free(peers->producer);
    mem_free(peers->folder);
    mem_free(peers);
}

struct link *peers_add(struct peers *peers, int fd, const struct address *address, const char *text,
                       const char *expected, struct error *err)
{
    bool tls = peers->tls && !address_is_unix(address);
    bool rights = peers->config.shared_bytes && address_is_unix(address);
    enum link_path path = address_is_unix(address)       ? LINK_LOCAL
                          : address_is_loopback(address) ? LINK_LOOPBACK
                          : tls                          ? LINK_TLS
                                                         : LINK_PLAIN;
    struct channel *channel = tls      ? tls_channel_new(peers->tls, fd, !expected, err)
                              : rights ? channel_with_fds(fd)
                                       : channel_socket_new(fd);
    if (!channel) {
        close(fd);
        return NULL;
    }
    struct link *link = link_new(peers->loop, &peers->config, channel, text, expected, path);
    vec_push(&peers->links, link);
    return link;
}

struct link *peers_find(struct peers *peers, const char *task)
{
    pthread_mutex_lock(&peers->lock);
    struct link *link = peers_linked(peers, task);
    if (link)
        link_retain(link);
    pthread_mutex_unlock(&peers->lock);
    return link;
}

void peers_each(struct peers *peers, void (*call)(void *context, struct link *link), void *context)
{
    for (size_t i = peers->links.n; i-- > 0;) /* a call may close its link */
        if (i < peers->links.n && peers->links.items[i]->state == LINK_OPEN)
            call(context, peers->links.items[i]);
}

static bool no_dials(void *context)
{
    const struct peers *peers = context;
    return !peers->dials || peers->failed.code;
}

int peers_wait(struct peers *peers, struct error *err)
{
    bool held = loop_run_until(peers->loop, no_dials, peers, -1);
    if (peers->failed.code) {
        *err = peers->failed;
        error_clear(&peers->failed);
        return err->code;
    }
    return held ? 0 : error_set(err, ERR_RETRY, "stopped while waiting for other tasks");
}

const struct link_hello *peers_self(const struct peers *peers)
{
    return &peers->config.self;
}

uint64_t peers_refused(const struct peers *peers)
{
    return atomic_load(&peers->refused);
}
