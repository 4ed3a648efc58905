/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain sockets, as fast as they go: the reference for measurements of links.
 */
#ifndef TF_TESTS_RAW_SOCKET_H
#define TF_TESTS_RAW_SOCKET_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "transport/channel/channel.h"
#include "transport/link/peers_private.h"

#define BIG_BYTES ((size_t)100 << 20)

enum raw_kind { KIND_UNIX, KIND_TCP, KIND_TLS, KIND_SHARED, N_KINDS };

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline void make_pair(enum raw_kind kind, int pair[2])
{
    struct address at;
    struct error err = ERROR_INIT;
    if (kind != KIND_TCP && kind != KIND_TLS) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            die("socketpair");
        address_of_socket(&at, pair[0], false);
        socket_tune(pair[0], &at);
        socket_tune(pair[1], &at);
        return;
    }
    address_parse(&at, "127.0.0.1:0", NULL, &err);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socket_tune(listener, &at);
    if (bind(listener, (struct sockaddr *)&at.socket, at.length) || listen(listener, 1))
        die("listen");
    address_of_socket(&at, listener, false);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    socket_tune(pair[0], &at);
    if (connect(pair[0], (struct sockaddr *)&at.socket, at.length))
        die("connect");
    pair[1] = accept(listener, NULL, NULL);
    socket_tune(pair[1], &at);
    close(listener);
}

/* Waits as a loop does: polls for a while, then sleeps. */
static inline void wait_readable(int epoll, double spin)
{
    struct epoll_event event;
    double end = time_now() + spin;
    if (spin > 0)
        do
            if (epoll_wait(epoll, &event, 1, 0) == 1)
                return;
        while (time_now() < end);
    while (epoll_wait(epoll, &event, 1, -1) < 0)
        ;
}

static inline int watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return epoll;
}

static inline void raw_echo(int fd, double spin)
{
    char byte;
    int epoll = watch(fd);
    for (;;) {
        wait_readable(epoll, spin);
        if (read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1)
            _exit(0);
    }
}

/* A raw connection to a process at the other end. */
struct raw {
    int fd, epoll;
    pid_t child;
    double spin;
    char *buffer;
};

static inline void raw_trip(struct raw *raw)
{
    char byte = 1;
    if (write(raw->fd, &byte, 1) != 1)
        die("write");
    wait_readable(raw->epoll, raw->spin);
    if (read(raw->fd, &byte, 1) != 1)
        die("read");
}

static inline size_t raw_block(size_t done)
{
    return BIG_BYTES - done < CHANNEL_SOCKET_BYTES ? BIG_BYTES - done : CHANNEL_SOCKET_BYTES;
}

/* Reads 100 MB into one buffer and replies with a byte. */
static inline void raw_sink(int fd)
{
    char *buffer = mem_try(BIG_BYTES), byte = 1;
    memset(buffer, 1, BIG_BYTES);
    for (;;) {
        for (size_t done = 0; done < BIG_BYTES;) {
            ssize_t n = read(fd, buffer + done, raw_block(done));
            if (n <= 0)
                _exit(0);
            done += (size_t)n;
        }
        if (write(fd, &byte, 1) != 1)
            _exit(0);
    }
}

static inline void raw_stream(struct raw *raw)
{
    char byte;
    for (size_t done = 0; done < BIG_BYTES;) {
        ssize_t n = write(raw->fd, raw->buffer + done, raw_block(done));
        if (n < 0)
            die("write");
        done += (size_t)n;
    }
    if (read(raw->fd, &byte, 1) != 1)
        die("read");
}

static inline void raw_open(struct raw *raw, enum raw_kind kind, double spin, bool stream)
{
    int pair[2];
    *raw = (struct raw){.spin = spin};
    make_pair(kind, pair);
    raw->child = fork();
    if (!raw->child) {
        close(pair[0]);
        if (stream)
            raw_sink(pair[1]);
        raw_echo(pair[1], spin);
    }
    close(pair[1]);
    raw->fd = pair[0];
    raw->epoll = watch(raw->fd);
    raw->buffer = stream ? mem_try(BIG_BYTES) : NULL;
    if (stream)
        memset(raw->buffer, 1, BIG_BYTES);
}

static inline void raw_close(struct raw *raw)
{
    close(raw->epoll);
    close(raw->fd);
    kill(raw->child, SIGKILL);
    waitpid(raw->child, NULL, 0);
    mem_free(raw->buffer);
}

#endif
