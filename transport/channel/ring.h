/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of bytes through memory that two processes share: one writes, one reads. A writer
 * that finds nothing left to be read begins at the first byte again, so that only as much of the
 * memory is used, and stays in caches, as is on its way at once; what was more once goes back to
 * the system then. Memory that the other side may write is never trusted: positions are checked,
 * and bytes are copied out before anybody looks at them.
 */
#ifndef TF_TRANSPORT_RING_H
#define TF_TRANSPORT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct ring_header {                         /* a cache line for each, as each has its writer */
    _Alignas(64) atomic_uint_least64_t head; /* bytes ever written */
    atomic_uint_least64_t origin;            /* the position that lies first in data */
    _Alignas(64) atomic_uint_least64_t tail; /* bytes ever read */
    _Alignas(64) atomic_uint reader_sleeps;
    _Alignas(64) atomic_uint writer_waits;
    _Alignas(64) unsigned char data[];
};

struct ring {
    struct ring_header *shared;
    size_t size;       /* of data, a power of two */
    uint64_t position; /* our own: head of the writer, tail of the reader */
    /* The writer's: */
    size_t reached;  /* bytes of data that may have pages */
    double released; /* when pages went back last */
};

/* Bytes of memory for `size` bytes of data. */
static inline size_t ring_bytes(size_t size)
{
    return sizeof(struct ring_header) + size;
}

/* As readv and writev: EAGAIN when there is nothing, or no room; EBADMSG when the other side's
 * position is impossible. *wake: the other side sleeps or waits, and is to be woken. */
ssize_t ring_write(struct ring *ring, const struct iovec *vectors, int n, bool *wake);
ssize_t ring_read(struct ring *ring, const struct iovec *vectors, int n, bool *wake);

bool ring_has_data(const struct ring *ring); /* the reader's question */
bool ring_has_room(const struct ring *ring); /* the writer's: a quarter of it */

/* Announces that the reader sleeps, or that the writer waits; true: there is no need to. */
bool ring_reader_sleeps(struct ring *ring, bool sleeps);
bool ring_writer_waits(struct ring *ring);

#endif
