/* SPDX-License-Identifier: Apache-2.0
 *
 * The life cycle of a link: from a connected socket to `closed`.
 */
#include "transport/link/link.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "transport/channel/shared.h"
#include "transport/link/link_private.h"

#define BUFFER_BYTES ((size_t)64 << 10)
#define LEASE_CHECKS 8 /* per lease; it expires one check early, so that no wait exceeds it */
#define PINGS 3        /* per lease */
#define LEASE_MIN 0.03
#define LEASE_MAX 3600.0
#define TASK_BYTES 256 /* of a peer's name */

/* Bins of large values. Each bin may delay more urgent records, in addition to what the system
 * buffers: 20 ms at 100 Mbit/s, and 2 ms over Unix sockets and rings. TCP on this host uses the
 * largest, also some 20 ms: after a bin's tag the system copies at half the speed (measured). */
#define BIN_BYTES ((size_t)256 << 10)
#define LOCAL_BIN_BYTES ((size_t)4 << 20)

/* Makes link_name from what is known of the peer now. */
static void make_name(struct link *link)
{
    struct str name = STR_INIT;
    const char *task = *link->peer.task ? link->peer.task : link->expected ? link->expected : "";
    str_printf(&name, "%s at %s", *task ? task : "peer", link->address);
    if (link->peer.incarnation && *task)
        str_printf(&name, ", incarnation %llu", (unsigned long long)link->peer.incarnation);
    mem_free(link->name);
    link->name = mem_strdup(name.data);
    str_release(&name);
}

void link_retain(struct link *link)
{
    atomic_fetch_add_explicit(&link->holders, 1, memory_order_relaxed);
}

void link_release(struct link *link)
{
    if (!link || atomic_fetch_sub_explicit(&link->holders, 1, memory_order_acq_rel) != 1)
        return;
    link->channel->type->free(link->channel);
    if (link->offered)
        link->offered->type->free(link->offered);
    close(link->fd);
    link_stop_reading(link);
    send_queue_release(&link->out);
    mem_free(link->buffer);
    mem_free((void *)(uintptr_t)link->peer.task);
    mem_free(link->address);
    mem_free(link->name);
    mem_free(link->expected);
    mem_free(link);
}

/* Ends the link, in the loop's thread. */
static void finish(struct link *link)
{
    if (link->state == LINK_CLOSED)
        return;
    link->state = LINK_CLOSED;
    event_free(link->event);
    loop_event_free(link->timer);
    if (link->was_open)
        heartbeat_remove(link->loop, &link->heartbeat);
    loop_remove_poller(link->loop, &link->poller);
    if (link->channel->type->stop)
        link->channel->type->stop(link->channel);
    link->config->closed(link->config->context, link, &link->why);
    shutdown(link->fd, SHUT_RDWR); /* wakes a writing thread; the last holder closes the socket */
    link_release(link);
}

/* Sets the reason, prefixed with the peer's name, unless one is set. */
static void set_reason(struct link *link, const struct error *why)
{
    pthread_mutex_lock(&link->out.lock);
    if (!link->closing) {
        link->closing = true;
        link->why = *why;
        error_prefix(&link->why, "%s: ", link->name);
    }
    pthread_mutex_unlock(&link->out.lock);
}

void link_fail(struct link *link, const struct error *why)
{
    set_reason(link, why);
    finish(link);
}

static void notify_owner(struct link *link, const struct error *why)
{
    if (link->state == LINK_HANDSHAKE || link->state == LINK_DRAINING)
        return;
    msgpack_packer *packer = link_begin(link, RECORD_ERROR, 3);
    pack_key_text(packer, "tool", link->config->producer);
    pack_key_int(packer, "code", why->code);
    pack_key_text(packer, "text", why->text);
    link_send_own(link);
}

void link_refuse(struct link *link, const struct error *why)
{
    notify_owner(link, why);
    link_fail(link, why);
}

void link_ended(struct link *link)
{
    struct error why = ERROR_INIT;
    error_set(&why, 0, "closed");
    set_reason(link, &why);
    finish(link);
}

static void send_end(struct link *link)
{
    msgpack_packer *packer = link_begin(link, RECORD_END, 1);
    pack_key_uint(packer, "records", atomic_load(&link->records_out));
    link_send_own(link);
}

void link_end_now(struct link *link)
{
    if (link->state == LINK_OPEN)
        send_end(link);
    link_ended(link);
}

static void close_posted(void *argument)
{
    struct link *link = argument;
    if (link->state != LINK_CLOSED && !link->why.code && link->state == LINK_OPEN) {
        /* Finish an orderly end: everything is written, and the peer confirms receipt by closing
         * its side. */
        link->state = LINK_DRAINING;
        loop_timer_set(link->timer, link->config->lease);
        send_end(link);
        link->drained = atomic_load(&link->bytes_out);
        if (link_has_written(link))
            shutdown(link->fd, SHUT_WR);
    } else if (link->state != LINK_CLOSED) {
        if (link->why.code)
            notify_owner(link, &link->why);
        finish(link);
    }
    link_release(link);
}

void link_close(struct link *link, const struct error *why)
{
    pthread_mutex_lock(&link->out.lock);
    bool first = !link->closing;
    if (first) {
        link->closing = true;
        if (why)
            link->why = *why;
        else
            error_set(&link->why, 0, "%s: closed", link->name);
    }
    pthread_mutex_unlock(&link->out.lock);
    if (!first)
        return;
    link_retain(link);
    loop_post(link->loop, close_posted, link);
}

/* Returns the time of silence, given the bytes received so far. */
static double silence_of(const struct link *link, uint64_t bytes)
{
    double passed = time_now() - link->checked, most = 2 * link->config->lease / LEASE_CHECKS;
    return bytes != link->heard ? 0 : link->silence + (passed < most ? passed : most);
}

double link_silence(const struct link *link)
{
    return silence_of(link, atomic_load_explicit(&link->bytes_in, memory_order_relaxed));
}

double link_stillness(const struct link *link)
{
    return link->peer_still;
}

/* ---- hellos: the identity of the other end, and the features of both ---- */

static bool asks_shared(const struct link *link)
{
    return link->config->shared_bytes && channel_passes_fds(link->channel);
}

bool link_shares_memory(const struct link *link)
{
    return link->shared_bytes && !channel_passes_fds(link->channel);
}

/* Chooses the largest ring size that both sides accept; `theirs`: bytes in the peer's hello, 0:
 * none. */
static void agree_shared(struct link *link, int64_t theirs)
{
    size_t bytes = SHARED_MAX, wanted = link->config->shared_bytes;
    if (theirs > 0 && (uint64_t)theirs < wanted)
        wanted = (size_t)theirs;
    while (bytes > wanted && bytes > SHARED_MIN)
        bytes /= 2;
    link->shared_bytes = theirs > 0 && asks_shared(link) ? bytes : 0;
}

static bool skips_sums(const struct link *link)
{
    return link->safe && !link->config->sums;
}

static void send_hello(struct link *link)
{
    const struct link_config *config = link->config;
    bool shared = asks_shared(link);
    msgpack_packer *packer = link_begin(link, RECORD_HELLO, 7 + shared);
    pack_key_int(packer, "major", STREAM_MAJOR);
    pack_key_int(packer, "minor", STREAM_MINOR);
    pack_key_text(packer, "producer", config->producer);
    pack_key_text(packer, "task", config->self.task);
    pack_key_uint(packer, "incarnation", config->self.incarnation);
    pack_key_float(packer, "lease", config->lease);
    pack_key_bool(packer, "sums", !skips_sums(link));
    if (shared)
        pack_key_uint(packer, "shared", config->shared_bytes);
    link_send_own(link);
}

int link_take_hello(struct link *link, struct record *record, struct error *err)
{
    bool sums;
    int64_t shared = 0;
    int64_t major, minor;
    if (!record_get_int(&record->header, "major", &major) ||
        !record_get_int(&record->header, "minor", &minor))
        return error_set(err, ERR_PROTOCOL, "a hello without a version");
    if (major != STREAM_MAJOR) {
        link->is_refused = true;
        return error_set(err, ERR_PROTOCOL, "format %lld.%lld, but this program speaks %d.%d",
                         (long long)major, (long long)minor, STREAM_MAJOR, STREAM_MINOR);
    }
    const msgpack_object *header = &record->header;
    const char *task = record_text(header, "task");
    int64_t incarnation;
    if (!task || strlen(task) > TASK_BYTES || !str_is_printable(task, strlen(task)) ||
        !record_get_int(header, "incarnation", &incarnation) || incarnation < 0)
        return error_set(err, ERR_PROTOCOL, "a hello that does not say who it is");
    mem_free((void *)(uintptr_t)link->peer.task);
    link->peer = (struct link_hello){mem_strdup(task), (uint64_t)incarnation};
    if (!record_get_float(header, "lease", &link->peer_lease) ||
        !(link->peer_lease >= LEASE_MIN && link->peer_lease <= LEASE_MAX))
        link->peer_lease = link->config->lease;
    if (link->expected && *link->expected && strcmp(link->expected, task))
        return error_set(err, ERR_CONFIG, "'%s' is there instead of '%s'", task, link->expected);
    if (link->config->hello(link->config->context, link, err))
        return err->code;
    make_name(link);
    if (!record_get_bool(&record->header, "sums", &sums))
        sums = true;
    record_get_int(&record->header, "shared", &shared);
    agree_shared(link, shared);
    link->outer.decoder.sums = sums || !skips_sums(link);
    pthread_mutex_lock(&link->out.lock);
    link->out.sums = link->outer.decoder.sums;
    pthread_mutex_unlock(&link->out.lock);
    return 0;
}

/* ---- shared memory ----
 *
 * Both ends of a Unix socket agree on it. Both hellos ask for it; the accepting side creates it and
 * passes it with its ping, the dialing side replies with a ping that says whether it has mapped it.
 * After the pings all bytes go through it. */

/* Polled by the loop without an event: what is found here may never be reported by one. */
static bool poll_socket(void *context)
{
    struct link *link = context;
    uint64_t before = atomic_load_explicit(&link->bytes_in, memory_order_relaxed);
    link_retain(link);
    link_can_read(link);
    bool found = link->state == LINK_CLOSED ||
                 atomic_load_explicit(&link->bytes_in, memory_order_relaxed) != before;
    link_release(link);
    return found;
}

/* Both hellos were exchanged. */
static void is_open(struct link *link)
{
    double period = link->config->lease < link->peer_lease ? link->config->lease : link->peer_lease;
    link->state = LINK_OPEN;
    link->was_open = true;
    link->checked = link->kept_at = time_now();
    link->ping_seconds = period / PINGS;
    link->heartbeat = (struct heartbeat_task){.call = link_keep_alive, .context = link};
    heartbeat_add(link->loop, &link->heartbeat, link->ping_seconds / 4);
    loop_timer_set(link->timer, link->config->lease / LEASE_CHECKS);
    link->poller = (struct loop_poller){.poll = poll_socket, .context = link, .is_socket = true};
    if (!link_shares_memory(link))
        loop_add_poller(link->loop, &link->poller);
    link->config->opened(link->config->context, link);
}

static void send_ping(struct link *link, size_t shared)
{
    msgpack_packer *packer = link_begin(link, RECORD_PING, shared > 0);
    if (shared)
        pack_key_uint(packer, "shared", shared);
    link_send_own(link);
}

/* The peer's hello was accepted: sends a ping. */
void link_welcome(struct link *link)
{
    if (!link->shared_bytes) {
        send_ping(link, 0);
    } else if (!link->dialed) {
        struct error ignored = ERROR_INIT; /* the socket can be used instead */
        int fds[SHARED_FDS];
        link->offered = shared_create(link->fd, link->shared_bytes, fds, &ignored);
        if (link->offered)
            channel_give_fds(link->channel, fds);
        send_ping(link, link->offered ? link->shared_bytes : 0);
    }
}

static void use_channel(struct link *link, struct channel *channel)
{
    link->channel->type->free(link->channel);
    link->channel = channel;
    shared_attach(channel, link);
}

/* The peer's ping came: the link can be opened. */
void link_take_welcome(struct link *link, const struct record *record)
{
    int64_t bytes = 0;
    bool shared =
        record_get_int(&record->header, "shared", &bytes) && bytes == (int64_t)link->shared_bytes;
    if (link->shared_bytes && link->dialed) {
        /* The dialing side maps the memory that was passed, and says whether it could. */
        struct error ignored = ERROR_INIT;
        int fds[SHARED_FDS];
        struct channel *channel = NULL;
        if (shared && channel_take_fds(link->channel, fds))
            channel = shared_map(link->fd, link->shared_bytes, fds, &ignored);
        send_ping(link, channel ? link->shared_bytes : 0);
        if (channel)
            use_channel(link, channel);
    } else if (link->offered) {
        struct channel *channel = link->offered;
        link->offered = NULL;
        if (shared)
            use_channel(link, channel);
        else
            channel->type->free(channel);
    }
    is_open(link);
}

/* ---- events ---- */

static void timed(void *context)
{
    struct link *link = context;
    struct error err = ERROR_INIT;
    uint64_t bytes;
    switch (link->state) {
    case LINK_HANDSHAKE:
    case LINK_HELLO:
    case LINK_WELCOME:
        link->is_refused = true;
        error_set(&err, ERR_UNAVAILABLE, "no %s in %.3g s",
                  link->state == LINK_HANDSHAKE ? "TLS handshake" : "hello",
                  link->config->handshake);
        link_refuse(link, &err);
        return;
    case LINK_OPEN:
        loop_timer_set(link->timer, link->config->lease / LEASE_CHECKS);
        /* A single late check counts little, as this process may have slept. */
        bytes = atomic_load_explicit(&link->bytes_in, memory_order_relaxed);
        link->silence = silence_of(link, bytes);
        link->heard = bytes;
        link->checked = time_now();
        if (link->silence >= link->config->lease * (LEASE_CHECKS - 1) / LEASE_CHECKS - 1e-3) {
            /* A peer that was stalled before may have been killed for it. */
            if (link->peer_still > 0)
                error_set(&err, ERR_UNAVAILABLE,
                          "silent for %.3g s; its loop had stood still for %.3g s",
                          link->config->lease, link->peer_still);
            else
                error_set(&err, ERR_UNAVAILABLE, "silent for %.3g s", link->config->lease);
            link_fail(link, &err);
        }
        return;
    case LINK_DRAINING: /* continues as long as something gets written */
        if (link->drained == atomic_load(&link->bytes_out)) {
            link_ended(link);
        } else {
            link->drained = atomic_load(&link->bytes_out);
            loop_timer_set(link->timer, link->config->lease);
        }
        return;
    case LINK_CLOSED:
        return;
    }
}

static void start_hello(struct link *link)
{
    link->state = LINK_HELLO;
    send_hello(link);
}

static void fd_ready(evutil_socket_t fd, short what, void *context)
{
    struct link *link = context;
    (void)fd;
    loop_worked(link->loop);
    link_retain(link);
    link->ending |= (what & EV_CLOSED) != 0;
    if (link->channel->type->ready)
        link->channel->type->ready(link->channel);
    if (link->state == LINK_HANDSHAKE) {
        struct error err = ERROR_INIT;
        int status = link->channel->type->handshake(link->channel, &err);
        if (!status) {
            start_hello(link);
        } else if (status != CHANNEL_AGAIN) {
            link->is_refused = true;
            link_fail(link, &err);
        }
    }
    if (what & EV_WRITE && link->state != LINK_HANDSHAKE)
        link_can_write(link);
    bool news = what & ~EV_WRITE & ~EV_ET || !link->channel->drains;
    if (news && link->state != LINK_HANDSHAKE && link->state != LINK_CLOSED)
        link_can_read(link);
    link_release(link);
}

struct link *link_new(struct loop *loop, const struct link_config *config, struct channel *channel,
                      const char *address, const char *expected, enum link_path path)
{
    struct link *link = mem_alloc(sizeof *link);
    atomic_init(&link->holders, 1);
    link->config = config;
    link->loop = loop;
    link->channel = channel;
    link->fd = channel->fd;
    link->safe = path != LINK_PLAIN;
    link->dialed = expected != NULL;
    link->expected = expected ? mem_strdup(expected) : NULL;
    link->address = mem_strdup(address);
    link->peer = (struct link_hello){mem_strdup(""), 0};
    link->buffer = mem_alloc(BUFFER_BYTES);
    make_name(link);
    send_queue_init(&link->out, true,
                    path == LINK_LOOPBACK ? LIMIT_BIN_BYTES
                    : path == LINK_LOCAL  ? LOCAL_BIN_BYTES
                                          : BIN_BYTES);
    link_start_reading(link);
    link->timer = loop_timer_new(loop, timed, link);
    loop_timer_set(link->timer, config->handshake);
    link->event = event_new(loop->base, link->fd,
                            EV_READ | EV_WRITE | EV_CLOSED | EV_PERSIST | EV_ET, fd_ready, link);
    if (!link->event || event_add(link->event, NULL))
        mem_exhausted(0);
    if (!channel->type->handshake)
        start_hello(link);
    return link;
}

const struct link_hello *link_peer(const struct link *link)
{
    return &link->peer;
}

const char *link_name(const struct link *link)
{
    return link->name;
}

void link_set_user(struct link *link, void *user)
{
    link->user = user;
}

void *link_user(const struct link *link)
{
    return link->user;
}

void link_count_shared(struct link *link, uint64_t in, uint64_t out)
{
    atomic_fetch_add_explicit(&link->shared_in, in, memory_order_relaxed);
    atomic_fetch_add_explicit(&link->shared_out, out, memory_order_relaxed);
}

struct link_stats link_stats(const struct link *link)
{
    return (struct link_stats){atomic_load(&link->bytes_in),
                               atomic_load(&link->bytes_out),
                               atomic_load(&link->records_in),
                               atomic_load(&link->records_out),
                               atomic_load(&link->shared_in),
                               atomic_load(&link->shared_out),
                               atomic_load(&link->nested_in),
                               atomic_load(&link->tensors_in) + atomic_load(&link->shared_in),
                               atomic_load(&link->tensors_out) + atomic_load(&link->shared_out)};
}
