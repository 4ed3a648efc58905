/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes under a link: a socket's, TLS over a socket, or rings in shared memory. A channel never
 * blocks. Reading happens in the loop's thread only, writing in one thread at a time, both possibly
 * at once.
 */
#ifndef TF_TRANSPORT_CHANNEL_H
#define TF_TRANSPORT_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

struct channel;

#define CHANNEL_SOCKET_BYTES ((size_t)1 << 20) /* best read and written at once on sockets */
#define CHANNEL_AGAIN (-1)                     /* of handshake: when the socket is ready */

struct channel_type {
    /* 0: done; CHANNEL_AGAIN; or an error's code. NULL: there is none. */
    int (*handshake)(struct channel *channel, struct error *err);

    /* As readv and writev: EAGAIN when nothing can be read or written now, after which the socket's
     * (or the ring's) readiness is news; write is offered the same bytes again then. 0 from read:
     * the end. Other errors have a text. */
    ssize_t (*read)(struct channel *channel, const struct iovec *vectors, int n);
    ssize_t (*write)(struct channel *channel, const struct iovec *vectors, int n);

    /* Text of the last error of read or write, by its errno. */
    const char *(*error_text)(struct channel *channel, int number);
    void (*ready)(struct channel *channel); /* something happened to the socket; may be NULL */
    void (*stop)(struct channel *channel);  /* the loop is to forget it; may be NULL */
    void (*free)(struct channel *channel);  /* not the socket */
};

struct channel {
    const struct channel_type *type;
    int fd;
    bool drains;                    /* a read of less than was asked for has emptied it */
    int refusal;                    /* an enum link_refusal, when the handshake failed */
    size_t read_bytes, write_bytes; /* how much is best read and written at once */
};

struct channel *channel_socket_new(int fd);

/* As strerror, as it stands within a message: "connection refused". The text is the calling
 * thread's. */
const char *errno_text(int number);

#endif
