/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/shared.h"

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

static struct channel channel_of(const struct channel_type *type, int fd)
{
    return (struct channel){.type = type,
                            .fd = fd,
                            .drains = true,
                            .read_bytes = CHANNEL_SOCKET_BYTES,
                            .write_bytes = CHANNEL_SOCKET_BYTES};
}

struct channel *channel_socket_new(int fd)
{
    struct channel *channel = mem_alloc(sizeof *channel);
    *channel = channel_of(&socket_type, fd);
    return channel;
}

/* ---- a Unix socket that passes descriptors along ---- */

struct fd_channel {
    struct channel channel;
    int in[SHARED_FDS], out[SHARED_FDS];
    int n_in, n_out;
};

union fd_control {
    char bytes[CMSG_SPACE(SHARED_FDS * sizeof(int))];
    struct cmsghdr header;
};

static void close_all(int *fds, int *n)
{
    while (*n)
        close(fds[--*n]);
}

static ssize_t fd_channel_read(struct channel *channel, const struct iovec *vectors, int n)
{
    struct fd_channel *fd_channel = (struct fd_channel *)channel;
    union fd_control control;
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vectors,
                             .msg_iovlen = (size_t)n,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(channel->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return got;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at))
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS) {
            /* Surplus descriptors are closed. */
            size_t n_fds = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < n_fds; i++) {
                int fd;
                memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
                if (fd_channel->n_in < SHARED_FDS)
                    fd_channel->in[fd_channel->n_in++] = fd;
                else
                    close(fd);
            }
        }
    return got;
}

static ssize_t fd_channel_write(struct channel *channel, const struct iovec *vectors, int n)
{
    struct fd_channel *fd_channel = (struct fd_channel *)channel;
    union fd_control control = {0};
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vectors,
                             .msg_iovlen = (size_t)n};
    if (fd_channel->n_out) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof fd_channel->out);
        memcpy(CMSG_DATA(&control.header), fd_channel->out, sizeof fd_channel->out);
    }
    ssize_t sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        close_all(fd_channel->out, &fd_channel->n_out);
    return sent;
}

static void fd_channel_free(struct channel *channel)
{
    struct fd_channel *fd_channel = (struct fd_channel *)channel;
    close_all(fd_channel->in, &fd_channel->n_in);
    close_all(fd_channel->out, &fd_channel->n_out);
    mem_free(fd_channel);
}

static const struct channel_type fd_channel_type = {
    .read = fd_channel_read, .write = fd_channel_write, .free = fd_channel_free};

struct channel *channel_with_fds(int fd)
{
    struct fd_channel *fd_channel = mem_alloc(sizeof *fd_channel);
    fd_channel->channel = channel_of(&fd_channel_type, fd);
    return &fd_channel->channel;
}

bool channel_passes_fds(const struct channel *channel)
{
    return channel->type == &fd_channel_type;
}

void channel_give_fds(struct channel *channel, const int fds[SHARED_FDS])
{
    struct fd_channel *fd_channel = (struct fd_channel *)channel;
    close_all(fd_channel->out, &fd_channel->n_out);
    memcpy(fd_channel->out, fds, sizeof fd_channel->out);
    fd_channel->n_out = SHARED_FDS;
}

bool channel_take_fds(struct channel *channel, int fds[SHARED_FDS])
{
    struct fd_channel *fd_channel = (struct fd_channel *)channel;
    if (fd_channel->n_in < SHARED_FDS)
        return false;
    memcpy(fds, fd_channel->in, sizeof fd_channel->in);
    fd_channel->n_in = 0;
    return true;
}
