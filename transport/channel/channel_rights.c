/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/channel/shared.h"

struct rights {
    struct channel channel;
    int in[SHARED_FDS], out[SHARED_FDS];
    int n_in, n_out;
};

union rights_control {
    char bytes[CMSG_SPACE(SHARED_FDS * sizeof(int))];
    struct cmsghdr header;
};

static void close_all(int *fds, int *n)
{
    while (*n)
        close(fds[--*n]);
}

static ssize_t rights_read(struct channel *channel, const struct iovec *vectors, int n)
{
    struct rights *rights = (struct rights *)channel;
    union rights_control control;
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
                if (rights->n_in < SHARED_FDS)
                    rights->in[rights->n_in++] = fd;
                else
                    close(fd);
            }
        }
    return got;
}

static ssize_t rights_write(struct channel *channel, const struct iovec *vectors, int n)
{
    struct rights *rights = (struct rights *)channel;
    union rights_control control = {0};
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vectors,
                             .msg_iovlen = (size_t)n};
    if (rights->n_out) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof rights->out);
        memcpy(CMSG_DATA(&control.header), rights->out, sizeof rights->out);
    }
    ssize_t sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        close_all(rights->out, &rights->n_out);
    return sent;
}

static const char *rights_error(struct channel *channel, int number)
{
    (void)channel;
    return errno_text(number);
}

static void rights_free(struct channel *channel)
{
    struct rights *rights = (struct rights *)channel;
    close_all(rights->in, &rights->n_in);
    close_all(rights->out, &rights->n_out);
    mem_free(rights);
}

static const struct channel_type rights_type = {
    .read = rights_read, .write = rights_write, .error_text = rights_error, .free = rights_free};

struct channel *channel_rights_new(int fd)
{
    struct rights *rights = mem_alloc(sizeof *rights);
    rights->channel = (struct channel){.type = &rights_type,
                                       .fd = fd,
                                       .drains = true,
                                       .read_bytes = CHANNEL_SOCKET_BYTES,
                                       .write_bytes = CHANNEL_SOCKET_BYTES};
    return &rights->channel;
}

bool channel_has_rights(const struct channel *channel)
{
    return channel->type == &rights_type;
}

void rights_give(struct channel *channel, const int fds[SHARED_FDS])
{
    struct rights *rights = (struct rights *)channel;
    close_all(rights->out, &rights->n_out);
    memcpy(rights->out, fds, sizeof rights->out);
    rights->n_out = SHARED_FDS;
}

bool rights_take(struct channel *channel, int fds[SHARED_FDS])
{
    struct rights *rights = (struct rights *)channel;
    if (rights->n_in < SHARED_FDS)
        return false;
    memcpy(fds, rights->in, sizeof rights->in);
    rights->n_in = 0;
    return true;
}
