/* SPDX-License-Identifier: Apache-2.0
 *
 * A channel of two rings in shared memory.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/memfd.h"
#include "transport/channel/ring.h"
#include "transport/channel/shared.h"
#include "transport/link/link_private.h"

#define BLOCK_BYTES ((size_t)1 << 20)

struct shared_channel {
    struct channel channel;
    void *memory;
    size_t bytes;
    struct ring in, out;
    int own_event, peer_event;
    struct link *link;
    struct loop_event *event;
    struct loop_poller poller;
    atomic_bool waits; /* writing found no room; the loop is to check */
    bool look;         /* the socket has an event */
    bool ended;        /* the other side has closed the socket */
};

static struct shared_channel *shared_of(struct channel *channel)
{
    return (struct shared_channel *)channel;
}

static void wake(const struct shared_channel *shared)
{
    uint64_t one = 1;
    (void)!write(shared->peer_event, &one, sizeof one); /* if full, the peer is awake */
}

static ssize_t shared_read(struct channel *channel, const struct iovec *vectors, int n)
{
    struct shared_channel *shared = shared_of(channel);
    bool wanted = false;
    if (shared->look) { /* the socket now only reports its end */
        char byte;
        shared->look = false;
        ssize_t received = recv(shared->channel.fd, &byte, 1, MSG_DONTWAIT);
        shared->ended |= !received || (received < 0 && errno != EAGAIN && errno != EINTR);
    }
    ssize_t got = ring_read(&shared->in, vectors, n, &wanted);
    if (wanted)
        wake(shared);
    if (got < 0 && errno == EAGAIN && shared->ended)
        return 0;
    return got;
}

static ssize_t shared_write(struct channel *channel, const struct iovec *vectors, int n)
{
    struct shared_channel *shared = shared_of(channel);
    bool wanted = false, full;
    ssize_t put;
    do {
        put = ring_write(&shared->out, vectors, n, &wanted);
        full = put < 0 && errno == EAGAIN;
        if (full) /* before waking the reader, which may at once wake the loop in another thread */
            atomic_store(&shared->waits, true);
    } while (full && ring_writer_waits(&shared->out));
    if (wanted)
        wake(shared);
    return put;
}

static const char *shared_error(struct channel *channel, int number)
{
    (void)channel;
    return number == EBADMSG ? "the shared memory is damaged" : errno_text(number);
}

static void shared_ready(struct channel *channel)
{
    shared_of(channel)->look = true;
}

/* Polled by the loop. */
static bool poll_rings(void *context)
{
    struct shared_channel *shared = context;
    struct link *link = shared->link;
    bool waits = atomic_load_explicit(&shared->waits, memory_order_relaxed);
    bool room = waits && ring_has_room(&shared->out), data = ring_has_data(&shared->in);
    if (!room && !data)
        return false;
    link_retain(link);
    if (room) {
        atomic_store(&shared->waits, false);
        link_can_write(link);
    }
    if (data && link->state != LINK_CLOSED)
        link_can_read(link);
    link_release(link);
    return true;
}

static bool arm_rings(void *context, bool sleeps)
{
    struct shared_channel *shared = context;
    if (ring_reader_sleeps(&shared->in, sleeps))
        return true;
    return sleeps && atomic_load(&shared->waits) && ring_has_room(&shared->out);
}

/* The loop then polls the rings. */
static void woken(void *context)
{
    const struct shared_channel *shared = context;
    uint64_t count;
    (void)!read(shared->own_event, &count, sizeof count);
}

static void shared_stop(struct channel *channel)
{
    struct shared_channel *shared = shared_of(channel);
    loop_remove_poller(shared->link->loop, &shared->poller);
    loop_event_free(shared->event);
}

static void shared_free(struct channel *channel)
{
    struct shared_channel *shared = shared_of(channel);
    if (shared->memory)
        munmap(shared->memory, shared->bytes);
    if (shared->own_event >= 0)
        close(shared->own_event);
    if (shared->peer_event >= 0)
        close(shared->peer_event);
    mem_free(shared);
}

static const struct channel_type shared_type = {.read = shared_read,
                                                .write = shared_write,
                                                .error_text = shared_error,
                                                .ready = shared_ready,
                                                .stop = shared_stop,
                                                .free = shared_free};

static struct shared_channel *shared_new(int socket)
{
    struct shared_channel *shared = mem_alloc(sizeof *shared);
    shared->channel = (struct channel){.type = &shared_type,
                                       .fd = socket,
                                       .drains = true,
                                       .read_bytes = BLOCK_BYTES,
                                       .write_bytes = BLOCK_BYTES};
    shared->own_event = shared->peer_event = -1;
    return shared;
}

/* Maps the rings, one after the other: first that which the accepting side writes. */
static int map_rings(struct shared_channel *shared, int fd, size_t bytes, bool accepted,
                     struct error *err)
{
    shared->bytes = 2 * ring_bytes(bytes);
    void *memory = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return error_set_errno(err, ERR_OS, "%zu bytes of shared memory", shared->bytes);
    shared->memory = memory;
    struct ring first = {.shared = memory, .size = bytes};
    struct ring second = {.shared = (void *)((char *)memory + ring_bytes(bytes)), .size = bytes};
    shared->out = accepted ? first : second;
    shared->in = accepted ? second : first;
    return 0;
}

struct channel *shared_create(int socket, size_t bytes, int fds[SHARED_FDS], struct error *err)
{
    struct shared_channel *shared = shared_new(socket);
    int memory = memfd_new("tf-link", 2 * ring_bytes(bytes));
    if (memory < 0)
        error_set_errno(err, ERR_OS, "shared memory");
    shared->own_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    shared->peer_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    fds[0] = memory;
    fds[1] = dup(shared->own_event);
    fds[2] = dup(shared->peer_event);
    if (memory >= 0 && fds[1] >= 0 && fds[2] >= 0 && !map_rings(shared, memory, bytes, true, err))
        return &shared->channel;
    if (!err->code)
        error_set(err, ERR_OS, "shared memory: no descriptors");
    for (int i = 0; i < SHARED_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    shared_free(&shared->channel);
    return NULL;
}

struct channel *shared_map(int socket, size_t bytes, const int fds[SHARED_FDS], struct error *err)
{
    struct shared_channel *shared = shared_new(socket);
    shared->peer_event = fds[1];
    shared->own_event = fds[2];
    /* seals belong to the open file, which both sides share */
    size_t there;
    if (!memfd_is_sealed(fds[0], &there) || there != 2 * ring_bytes(bytes))
        error_set(err, ERR_PROTOCOL, "shared memory of another size, or not sealed");
    if (err->code || map_rings(shared, fds[0], bytes, false, err)) {
        shared_free(&shared->channel);
        shared = NULL;
    }
    close(fds[0]);
    return shared ? &shared->channel : NULL;
}

void shared_attach(struct channel *channel, struct link *link)
{
    struct shared_channel *shared = shared_of(channel);
    shared->link = link;
    shared->look = true;
    shared->poller = (struct loop_poller){.poll = poll_rings, .arm = arm_rings, .context = shared};
    loop_add_poller(link->loop, &shared->poller);
    shared->event = loop_watch_new(link->loop, shared->own_event, woken, shared);
}
