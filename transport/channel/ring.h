/* SPDX-License-Identifier: Apache-2.0
 *
 * A byte stream one way through memory shared by two processes: one writes, one reads. When
 * everything was read, the writer restarts at the first byte; so only as much memory is used, and
 * stays in caches, as is under way at once, and pages beyond it are released. Memory that the other
 * side may write is never trusted: positions are checked, and bytes are copied out before they are
 * interpreted.
 */
#ifndef TF_TRANSPORT_RING_H
#define TF_TRANSPORT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct ring_header {                         /* a cache line per writer */
    _Alignas(64) atomic_uint_least64_t head; /* bytes ever written */
    atomic_uint_least64_t origin;            /* the position at the start of data */
    _Alignas(64) atomic_uint_least64_t tail; /* bytes ever read */
    _Alignas(64) atomic_uint reader_sleeps;
    _Alignas(64) atomic_uint writer_waits;
    _Alignas(64) unsigned char data[];
};

struct ring {
    struct ring_header *shared;
    size_t size;       /* of data, a power of two */
    uint64_t position; /* private: head for the writer, tail for the reader */
    /* For the writer only: */
    size_t reached;  /* bytes of data that may have pages */
    double released; /* when pages were last released */
};

/* Returns the memory needed for `size` bytes of data. */
static inline size_t ring_bytes(size_t size)
{
    return sizeof(struct ring_header) + size;
}

/* As readv and writev: EAGAIN if there is no data, or no room; EBADMSG if the other side's position
 * is impossible. *wake: the other side sleeps or waits, and must be woken. */
ssize_t ring_write(struct ring *ring, const struct iovec *vectors, int n, bool *wake);
ssize_t ring_read(struct ring *ring, const struct iovec *vectors, int n, bool *wake);

bool ring_has_data(const struct ring *ring); /* for the reader */
bool ring_has_room(const struct ring *ring); /* for the writer: a quarter is free */

/* Announces that the reader sleeps, or that the writer waits; true: there is work already. */
bool ring_reader_sleeps(struct ring *ring, bool sleeps);
bool ring_writer_waits(struct ring *ring);

#endif
