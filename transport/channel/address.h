/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a process listens: HOST:PORT ([HOST]:PORT for IPv6; port 0: the system chooses), or
 * unix:NAME, a socket file relative to a folder. An address is a value.
 */
#ifndef TF_TRANSPORT_ADDRESS_H
#define TF_TRANSPORT_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"

struct address {
    socklen_t length;
    struct sockaddr_storage socket; /* AF_INET, AF_INET6 or AF_UNIX */
    char text[300];                 /* as written, for messages; with the real port */
};

/* Parses an address; unix:NAME is relative to `folder`, NULL: the working directory. Host names are
 * looked up, which may take as long as the system's resolver takes. ERR_CONFIG: malformed, or a
 * path that is too long; ERR_UNAVAILABLE: no such host. */
int address_parse(struct address *address, const char *text, const char *folder, struct error *err);

/* Gets the address that a socket listens at or, if `peer`, that of the other side. */
void address_of_socket(struct address *address, int fd, bool peer);

bool address_is_unix(const struct address *address);
bool address_is_loopback(const struct address *address); /* Unix sockets are */

#endif
