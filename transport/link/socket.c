/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "transport/link/peers_private.h"

#define BUFFER_BYTES (4 << 20) /* measured: less halves the throughput of large tensors */

/* Limit of unsent bytes in the system, as urgent records cannot pass these; sent bytes in flight
 * may use the whole buffer. At 100 Mbit/s this is 10 ms, where the buffer alone took 0.35 s. */
#define UNSENT_BYTES (128 << 10)

/* Congestion control of loopback. Nothing is lost there, but the system's usual algorithm may pace
 * (BBR does), with a timer per segment: measured, 100 MB in 40 ms instead of 16. */
#define LOOPBACK_CONGESTION "reno" /* every Linux has it, for any user */

void socket_tune(int fd, const struct address *address)
{
    int one = 1, bytes = BUFFER_BYTES, unsent = UNSENT_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (address_is_unix(address))
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (address_is_loopback(address))
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, LOOPBACK_CONGESTION,
                   sizeof LOOPBACK_CONGESTION - 1);
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
