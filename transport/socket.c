/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "transport/peers_private.h"

#define BUFFER_BYTES (4 << 20) /* measured: less halves the throughput of large tensors */

void socket_tune(int fd, const struct address *address)
{
    int one = 1, bytes = BUFFER_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (!address_is_unix(address))
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

int socket_open(const struct address *address, struct error *err)
{
    int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        error_set_errno(err, ERR_OS, "%s", address->text);
    else
        socket_tune(fd, address);
    return fd;
}
