/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers whoever connects to an address with a file, as it is then, by HTTP: the figures that
 * tf-top writes, for Prometheus. The address goes to stdout when it is listened at. Stdin is the
 * parent-death pipe: it ends with tf-top, and so does this.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "cli/tool.h"
#include "transport/channel/address.h"

#define FIGURES_BYTES (1 << 26)
#define REQUEST_BYTES 65536

static const struct option_row rows[] = {TOOL_COMMON_ROWS, {0}};

static const struct option_table table = {
    .tool = "tf-top",
    .summary = "answer Prometheus",
    .operands = "ADDRESS FILE",
    .description = "Answers by HTTP with the file, for tf-top.",
    .examples = "serve 127.0.0.1:9500 figures",
    .rows = rows,
    .operands_max = 2,
};

/* Reads the request, whatever it asks for, and answers. Who is slow gets nothing. */
static void reply(int fd, const char *path)
{
    const struct timeval patience = {.tv_sec = 2};
    struct str figures = STR_INIT, reply = STR_INIT;
    struct error ignored = ERROR_INIT;
    char request[REQUEST_BYTES];
    size_t n = 0;
    ssize_t got;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    while (n < sizeof request - 1 && (got = read(fd, request + n, sizeof request - 1 - n)) > 0) {
        n += (size_t)got;
        request[n] = '\0';
        if (strstr(request, "\r\n\r\n") || strstr(request, "\n\n"))
            break;
    }
    if (n && !file_read(path, FIGURES_BYTES, &figures, &ignored)) {
        str_printf(&reply,
                   "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   figures.n, str_text(&figures));
        for (size_t at = 0; at < reply.n; at += (size_t)got)
            if ((got = send(fd, reply.data + at, reply.n - at, MSG_NOSIGNAL)) <= 0)
                break;
    }
    str_release(&figures);
    str_release(&reply);
    close(fd);
}

static int listen_at(const char *text, struct address *address, struct error *err)
{
    const int one = 1;
    if (address_parse(address, text, NULL, err))
        return -1;
    const struct sockaddr *at = (const struct sockaddr *)&address->socket;
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    /* The file of a socket that nobody listens at any more makes room. */
    if (address_is_unix(address) && connect(fd, at, address->length))
        unlink(((const struct sockaddr_un *)at)->sun_path);
    if (bind(fd, at, address->length) || listen(fd, 16)) {
        error_set_errno(err, ERR_UNAVAILABLE, "--listen %s", text);
        close(fd);
        return -1;
    }
    if (!address_is_unix(address))
        address_of_socket(address, fd, false);
    return fd;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct address address;
    (void)tool;
    int fd = n == 2 ? listen_at(operands[0], &address, err) : -1;
    if (fd < 0)
        return err->code ? err->code : error_set(err, ERR_USAGE, "usage: serve ADDRESS FILE");
    printf("%s\n", address.text);
    fflush(stdout);
    struct pollfd waits[2] = {{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    while (poll(waits, 2, -1) >= 0 && !waits[1].revents) {
        int client = accept(fd, NULL, NULL);
        if (client >= 0)
            reply(client, operands[1]);
    }
    if (address_is_unix(&address))
        unlink(((const struct sockaddr_un *)&address.socket)->sun_path);
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
