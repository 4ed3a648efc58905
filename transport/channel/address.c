/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/channel/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static int parse_unix(struct address *address, const char *name, const char *folder,
                      struct error *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&address->socket;
    bool relative = folder && *folder && name[0] != '/';
    int n = snprintf(un->sun_path, sizeof un->sun_path, "%s%s%s", relative ? folder : "",
                     relative ? "/" : "", name);
    if (!*name)
        return error_set(err, ERR_CONFIG, "'unix:' without a name");
    if (n < 0 || (size_t)n >= sizeof un->sun_path)
        return error_set(
            err, ERR_CONFIG, "%s%s%s: has %d bytes, and the path of a socket at most %zu",
            relative ? folder : "", relative ? "/" : "", name, n, sizeof un->sun_path - 1);
    un->sun_family = AF_UNIX;
    address->length = sizeof *un;
    return 0;
}

static int parse_tcp(struct address *address, struct error *err)
{
    char host[256];
    int64_t number;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found;
    /* Split HOST:PORT or [HOST]:PORT into host and port. */
    const char *text = address->text;
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    } else if (colon && memchr(text, ':', length)) {
        length = 0; /* IPv6 requires brackets */
    }
    const char *port = colon ? colon + 1 : "";
    if (!length || length >= sizeof host || !str_to_int64(port, &number) || number < 0 ||
        number > 65535)
        return error_set(err, ERR_CONFIG, "'%s' is no address: HOST:PORT or unix:NAME",
                         address->text);
    memcpy(host, text, length);
    host[length] = '\0';
    hints.ai_flags = AI_NUMERICSERV;
    int status = getaddrinfo(host, port, &hints, &found);
    if (status)
        return error_set(err, ERR_UNAVAILABLE, "'%s': %s", address->text, gai_strerror(status));
    memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
    address->length = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int address_parse(struct address *address, const char *text, const char *folder, struct error *err)
{
    memset(address, 0, sizeof *address);
    size_t n = strlen(text);
    if (n >= sizeof address->text || !str_is_printable(text, n))
        return error_set(err, ERR_CONFIG, "'%.60s' is no address: HOST:PORT or unix:NAME",
                         str_is_printable(text, n) ? text : "?");
    memcpy(address->text, text, n + 1);
    if (str_starts(text, "unix:"))
        return parse_unix(address, text + 5, folder, err);
    return parse_tcp(address, err);
}

void address_of_socket(struct address *address, int fd, bool peer)
{
    memset(address, 0, sizeof *address);
    address->length = sizeof address->socket;
    struct sockaddr *socket = (struct sockaddr *)&address->socket;
    if (peer ? getpeername(fd, socket, &address->length)
             : getsockname(fd, socket, &address->length))
        address->length = 0;
    char host[INET6_ADDRSTRLEN + 1] = "?";
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->socket;
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->socket;
    switch (address->socket.ss_family) {
    case AF_INET:
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(address->text, sizeof address->text, "%s:%d", host, ntohs(v4->sin_port));
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(address->text, sizeof address->text, "[%s]:%d", host, ntohs(v6->sin6_port));
        break;
    default:
        snprintf(address->text, sizeof address->text, "unix:%s", un->sun_path);
    }
}

bool address_is_unix(const struct address *address)
{
    return address->socket.ss_family == AF_UNIX;
}

bool address_is_loopback(const struct address *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->socket;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->socket;
    switch (address->socket.ss_family) {
    case AF_INET:
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    default:
        return address_is_unix(address);
    }
}
