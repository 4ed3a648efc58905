/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes under a link: over a socket, TLS over a socket, or rings in shared memory. A channel
 * never blocks. Only the loop's thread reads, and one thread at a time writes; both may happen at
 * once.
 */
#ifndef TF_TRANSPORT_CHANNEL_H
#define TF_TRANSPORT_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

struct channel;

#define CHANNEL_SOCKET_BYTES ((size_t)1 << 20) /* best size of one read or write on sockets */
#define CHANNEL_AGAIN (-1)                     /* of handshake: call again when ready */

struct channel_type {
    /* Returns 0: done; CHANNEL_AGAIN; or an error's code. NULL: there is no handshake. */
    int (*handshake)(struct channel *channel, struct error *err);

    /* As readv and writev: EAGAIN if nothing can be read or written now; the socket (or ring)
     * becoming ready is then reported, and write is called with the same bytes again. 0 from read
     * is the end. Other errors have a text. */
    ssize_t (*read)(struct channel *channel, const struct iovec *vectors, int n);
    ssize_t (*write)(struct channel *channel, const struct iovec *vectors, int n);

    /* Returns a text for the last error of read or write, given its errno. NULL: errno_text. */
    const char *(*error_text)(struct channel *channel, int number);
    void (*ready)(struct channel *channel); /* the socket became ready; may be NULL */
    void (*stop)(struct channel *channel);  /* removes it from the loop; may be NULL */
    void (*free)(struct channel *channel);  /* does not close the socket */
};

struct channel {
    const struct channel_type *type;
    int fd;
    bool drains;                    /* a read that returns less than requested has emptied it */
    size_t read_bytes, write_bytes; /* best sizes of one read and one write */
};

struct channel *channel_socket_new(int fd);

/* As strerror, in the form for use within a message: "connection refused". The text belongs to the
 * calling thread. */
const char *errno_text(int number);

static inline const char *channel_error_text(struct channel *channel, int number)
{
    return channel->type->error_text ? channel->type->error_text(channel, number)
                                     : errno_text(number);
}

#endif
