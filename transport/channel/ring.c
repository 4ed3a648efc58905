/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/time.h"

#define PUBLISH_BYTES ((size_t)128 << 10) /* the reader starts while the writer copies on */
#define KEPT_BYTES PUBLISH_BYTES          /* whose pages are kept */
#define RELEASE_SECONDS 1.0               /* pages are released at most this often */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the bytes between the positions; size + 1 if these are impossible. */
static size_t used(const struct ring *ring, uint64_t head, uint64_t tail)
{
    uint64_t n = head - tail;
    return n <= ring->size ? (size_t)n : ring->size + 1;
}

static ssize_t impossible(void)
{
    errno = EBADMSG;
    return -1;
}

/* Clears the flag and returns whether it was set. One side publishes and then checks the flag; the
 * other sets the flag and then checks what was published. All four operations are sequentially
 * consistent, so that at least one side sees what the other did. */
static bool take_flag(atomic_uint *flag)
{
    return atomic_load(flag) && atomic_exchange(flag, 0);
}

/* Returns where the next byte lies. The writer changes the origin only when everything was read,
 * and before it publishes more; so the reader's origin always fits the head that it has read. */
static size_t offset(const struct ring *ring)
{
    uint64_t origin = atomic_load_explicit(&ring->shared->origin, memory_order_relaxed);
    return (size_t)((ring->position - origin) & (ring->size - 1));
}

/* Restarts at the first byte after everything was read. */
static void begin_again(struct ring *ring)
{
    atomic_store_explicit(&ring->shared->origin, ring->position, memory_order_relaxed);
    double now = ring->reached > KEPT_BYTES ? time_now() : 0;
    if (now < ring->released + RELEASE_SECONDS)
        return;
    ring->released = now;
    /* Only whole pages of shared memory can be released. */
    uintptr_t page = (uintptr_t)getpagesize(), data = (uintptr_t)ring->shared->data;
    uintptr_t from = (data + KEPT_BYTES + page - 1) & ~(page - 1);
    uintptr_t to = (data + ring->reached) & ~(page - 1);
    if (to > from)
        madvise((void *)from, to - from, MADV_REMOVE);
    ring->reached = 0;
}

static void publish_head(struct ring *ring, bool *wake)
{
    atomic_store(&ring->shared->head, ring->position);
    *wake |= take_flag(&ring->shared->reader_sleeps);
}

ssize_t ring_write(struct ring *ring, const struct iovec *vectors, int n, bool *wake)
{
    size_t total = 0, since = 0;
    for (int i = 0; i < n; i++) {
        for (size_t done = 0, part; done < vectors[i].iov_len; done += part) {
            uint64_t tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
            size_t taken = used(ring, ring->position, tail);
            if (taken > ring->size)
                return impossible();
            part = least(least(vectors[i].iov_len - done, ring->size - taken), PUBLISH_BYTES);
            if (!part)
                goto full;
            if (!taken)
                begin_again(ring);
            /* in two parts if it wraps around, here and in ring_read */
            const char *bytes = (const char *)vectors[i].iov_base + done;
            size_t at = offset(ring), first = least(part, ring->size - at);
            memcpy(ring->shared->data + at, bytes, first);
            memcpy(ring->shared->data, bytes + first, part - first);
            ring->position += part;
            ring->reached =
                least(ring->size, at + part > ring->reached ? at + part : ring->reached);
            total += part;
            if ((since += part) >= PUBLISH_BYTES) {
                publish_head(ring, wake);
                since = 0;
            }
        }
    }
full:
    if (since)
        publish_head(ring, wake);
    if (total)
        return (ssize_t)total;
    errno = EAGAIN;
    return -1;
}

static void publish_tail(struct ring *ring, bool *wake)
{
    atomic_store(&ring->shared->tail, ring->position);
    uint64_t head = atomic_load_explicit(&ring->shared->head, memory_order_acquire);
    if (used(ring, head, ring->position) <= ring->size / 2)
        *wake |= take_flag(&ring->shared->writer_waits);
}

ssize_t ring_read(struct ring *ring, const struct iovec *vectors, int n, bool *wake)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        for (size_t done = 0, part; done < vectors[i].iov_len; done += part) {
            uint64_t head = atomic_load_explicit(&ring->shared->head, memory_order_acquire);
            size_t ready = used(ring, head, ring->position);
            if (ready > ring->size)
                return impossible();
            part = least(least(vectors[i].iov_len - done, ready), PUBLISH_BYTES);
            if (!part)
                goto empty;
            char *bytes = (char *)vectors[i].iov_base + done;
            size_t at = offset(ring), first = least(part, ring->size - at);
            memcpy(bytes, ring->shared->data + at, first);
            memcpy(bytes + first, ring->shared->data, part - first);
            ring->position += part;
            total += part;
            publish_tail(ring, wake);
        }
    }
empty:
    if (total)
        return (ssize_t)total;
    errno = EAGAIN;
    return -1;
}

bool ring_has_data(const struct ring *ring)
{
    return atomic_load_explicit(&ring->shared->head, memory_order_acquire) != ring->position;
}

/* Uses the published position, as the loop may ask while another thread writes. */
bool ring_has_room(const struct ring *ring)
{
    uint64_t head = atomic_load(&ring->shared->head);
    return used(ring, head, atomic_load(&ring->shared->tail)) <= ring->size - ring->size / 4;
}

bool ring_reader_sleeps(struct ring *ring, bool sleeps)
{
    if (!sleeps) {
        atomic_store_explicit(&ring->shared->reader_sleeps, 0, memory_order_relaxed);
        return false;
    }
    atomic_store(&ring->shared->reader_sleeps, 1);
    return atomic_load(&ring->shared->head) != ring->position;
}

bool ring_writer_waits(struct ring *ring)
{
    atomic_store(&ring->shared->writer_waits, 1);
    return ring_has_room(ring);
}
