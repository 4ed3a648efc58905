/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "transport/channel/channel.h"

const char *errno_text(int number)
{
    static _Thread_local char text[128];
    snprintf(text, sizeof text, "%s", strerror(number));
    if (!isupper((unsigned char)text[1])) /* not "RPC ..." */
        text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

/* A single vector, as for small records, is read without a list, which the system need not copy. */
static ssize_t socket_read(struct channel *channel, const struct iovec *vectors, int n)
{
    if (n == 1)
        return recv(channel->fd, vectors->iov_base, vectors->iov_len, MSG_DONTWAIT);
    return readv(channel->fd, vectors, n);
}

static ssize_t socket_write(struct channel *channel, const struct iovec *vectors, int n)
{
    if (n == 1)
        return send(channel->fd, vectors->iov_base, vectors->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vectors,
                             .msg_iovlen = (size_t)n};
    return sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void socket_free(struct channel *channel)
{
    mem_free(channel);
}

static const struct channel_type socket_type = {
    .read = socket_read, .write = socket_write, .free = socket_free};

struct channel *channel_socket_new(int fd)
{
    struct channel *channel = mem_alloc(sizeof *channel);
    *channel = (struct channel){.type = &socket_type,
                                .fd = fd,
                                .drains = true,
                                .read_bytes = CHANNEL_SOCKET_BYTES,
                                .write_bytes = CHANNEL_SOCKET_BYTES};
    return channel;
}
