/* SPDX-License-Identifier: Apache-2.0
 *
 * A relay that damages traffic, for tests of how other programs react. It listens, prints its
 * address, and connects each client to TARGET; the fault affects the bytes of one direction, all
 * others pass unchanged.
 *
 * usage: proxy [-d up|down] [FAULT]... LISTEN TARGET       HOST:PORT or unix:PATH each
 *   -d up      bytes from the client to the target (default); down: the other way
 *   -a N       the faults begin behind byte N of the connection (default 0)
 *   -w MS      each piece is delivered MS milliseconds later (a delay, not a slower rate)
 *   -c         cut: both connections are closed there
 *   -f BIT     the bit (0 to 7) of that byte is flipped
 *   -t         trickle: a byte a second
 *   -n         never read again: nothing is taken from the sender, whose buffers fill
 *   -s         swallow: everything is taken and nothing delivered
 *   -k N       only the Nth connection is harmed (1: the first; 0: each)
 * It ends when its standard input ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "transport/channel/address.h"

#define CONNECTIONS_MAX 64
#define PIECES_MAX 256 /* that wait for their time; a sender waits beyond */
#define PIECE_BYTES ((size_t)64 << 10)
#define TRICKLE_SECONDS 1.0

struct faults {
    bool down, cut, trickle, deaf, swallow;
    int bit; /* -1: none */
    unsigned long long at;
    double delay; /* seconds */
    int only;     /* which connection; 0: each */
};

struct delayed_piece {
    struct delayed_piece *next;
    double due;
    size_t n, done;
    unsigned char bytes[];
};

struct direction {
    int from, to;
    bool harmed, ended; /* ended: the sender has closed its side */
    bool cut;           /* to be closed behind what is on its way */
    unsigned long long passed;
    struct delayed_piece *first, *last;
    int n_pieces;
    double next; /* when the next byte of a trickle may go */
};

struct connection {
    struct direction up, down;
};

static struct faults faults = {.bit = -1};
static struct connection connections[CONNECTIONS_MAX];
static int n_connections, n_accepted;

static void die(const char *what)
{
    fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void parse(struct address *address, const char *text)
{
    struct error err = ERROR_INIT;
    if (address_parse(address, text, NULL, &err)) {
        fprintf(stderr, "proxy: %s\n", err.text);
        exit(err.code);
    }
}

static int start_listening(const char *text)
{
    struct address address, real;
    parse(&address, text);
    int fd = socket(address.socket.ss_family, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address.socket, address.length) || listen(fd, 64))
        die(text);
    address_of_socket(&real, fd, false);
    printf("%s\n", real.text);
    fflush(stdout);
    return fd;
}

static void close_connection(struct connection *c)
{
    for (int i = 0; i < 2; i++) {
        struct direction *d = i ? &c->down : &c->up;
        for (struct delayed_piece *piece = d->first, *next; piece; piece = next) {
            next = piece->next;
            free(piece);
        }
    }
    close(c->up.from);
    close(c->up.to);
    *c = connections[--n_connections];
}

static void accept_one(int listener, const struct address *target)
{
    int client = accept(listener, NULL, NULL);
    if (client < 0)
        return;
    int server = socket(target->socket.ss_family, SOCK_STREAM, 0);
    if (n_connections == CONNECTIONS_MAX || server < 0 ||
        connect(server, (const struct sockaddr *)&target->socket, target->length)) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    bool harmed = !faults.only || ++n_accepted == faults.only;
    fcntl(client, F_SETFL, O_NONBLOCK);
    fcntl(server, F_SETFL, O_NONBLOCK);
    connections[n_connections++] = (struct connection){
        .up = {.from = client, .to = server, .harmed = harmed && !faults.down},
        .down = {.from = server, .to = client, .harmed = harmed && faults.down}};
}

/* Returns whether the faults have begun in this direction. */
static bool is_harmed(const struct direction *d)
{
    return d->harmed && d->passed >= faults.at;
}

static bool may_read(const struct direction *d)
{
    return !d->ended && d->n_pieces < PIECES_MAX && !(is_harmed(d) && faults.deaf);
}

static void put_piece(struct direction *d, const unsigned char *bytes, size_t n)
{
    struct delayed_piece *piece = malloc(sizeof *piece + n);
    if (!piece)
        die("memory");
    *piece = (struct delayed_piece){.n = n, .due = time_now() + (is_harmed(d) ? faults.delay : 0)};
    memcpy(piece->bytes, bytes, n);
    if (d->last)
        d->last->next = piece;
    else
        d->first = piece;
    d->last = piece;
    d->n_pieces++;
}

/* Reads a piece; returns false if the connection is to be closed. */
static bool read_piece(struct direction *d)
{
    static unsigned char bytes[PIECE_BYTES];
    size_t most = sizeof bytes;
    if (d->harmed && d->passed < faults.at && faults.at - d->passed < most)
        most = (size_t)(faults.at - d->passed); /* the fault begins with a piece */
    ssize_t n = read(d->from, bytes, most);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    d->ended |= !n;
    if (!n)
        return true;
    if (is_harmed(d) && faults.cut) {
        d->cut = d->ended = true;
        return true;
    }
    if (is_harmed(d) && d->passed == faults.at && faults.bit >= 0)
        bytes[0] ^= (unsigned char)(1 << faults.bit);
    if (!(is_harmed(d) && faults.swallow))
        put_piece(d, bytes, (size_t)n);
    d->passed += (unsigned long long)n;
    return true;
}

static bool trickles(const struct direction *d)
{
    return d->harmed && faults.trickle && d->passed > faults.at;
}

/* Returns when the first piece may be sent; < 0: there is none. */
static double due(const struct direction *d)
{
    if (!d->first)
        return -1;
    return trickles(d) && d->next > d->first->due ? d->next : d->first->due;
}

static void drop_first(struct direction *d)
{
    struct delayed_piece *piece = d->first;
    d->first = piece->next;
    if (!d->first)
        d->last = NULL;
    d->n_pieces--;
    free(piece);
}

static bool write_pieces(struct direction *d)
{
    while (d->first && due(d) <= time_now()) {
        struct delayed_piece *piece = d->first;
        size_t n = trickles(d) ? 1 : piece->n - piece->done;
        ssize_t written = send(d->to, piece->bytes + piece->done, n, MSG_NOSIGNAL);
        if (written < 0)
            return errno == EAGAIN || errno == EINTR;
        piece->done += (size_t)written;
        d->next = time_now() + TRICKLE_SECONDS;
        if (piece->done == piece->n)
            drop_first(d);
    }
    if (d->ended && !d->first && !d->cut)
        shutdown(d->to, SHUT_WR);
    return true;
}

static short events(const struct direction *in, const struct direction *out)
{
    bool ready = out->first && due(out) <= time_now();
    return (short)((may_read(in) ? POLLIN : 0) | (ready ? POLLOUT : 0));
}

/* Returns the milliseconds until a piece is due. */
static int patience(void)
{
    double least = 1e9, t = time_now();
    for (int i = 0; i < n_connections; i++) {
        double up = due(&connections[i].up), down = due(&connections[i].down);
        least = up > t && up - t < least ? up - t : least;
        least = down > t && down - t < least ? down - t : least;
    }
    return least > 1e8 ? -1 : (int)(least * 1000) + 1;
}

static bool serve(struct connection *c, short client, short server)
{
    if (client & POLLERR || server & POLLERR)
        return false;
    if (client & (POLLIN | POLLHUP) && may_read(&c->up) && !read_piece(&c->up))
        return false;
    if (server & (POLLIN | POLLHUP) && may_read(&c->down) && !read_piece(&c->down))
        return false;
    if (!write_pieces(&c->up) || !write_pieces(&c->down))
        return false;
    return !(c->up.cut && !c->up.first) && !(c->down.cut && !c->down.first) &&
           !(c->up.ended && c->down.ended && !c->up.first && !c->down.first);
}

static void run(int listener, const struct address *target)
{
    static struct pollfd fds[2 * CONNECTIONS_MAX + 2];
    for (;;) {
        int n = n_connections;
        fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < n; i++) {
            struct connection *c = &connections[i];
            short client = events(&c->up, &c->down), server = events(&c->down, &c->up);
            fds[2 + 2 * i] = (struct pollfd){.fd = client ? c->up.from : -1, .events = client};
            fds[3 + 2 * i] = (struct pollfd){.fd = server ? c->up.to : -1, .events = server};
        }
        if (poll(fds, (nfds_t)(2 + 2 * n), patience()) < 0 && errno != EINTR)
            die("poll");
        char byte;
        if (fds[0].revents && read(STDIN_FILENO, &byte, 1) <= 0)
            return;
        for (int i = n - 1; i >= 0; i--) /* backwards: one that is closed makes the last take its
                                            place */
            if (!serve(&connections[i], fds[2 + 2 * i].revents, fds[3 + 2 * i].revents))
                close_connection(&connections[i]);
        if (fds[1].revents)
            accept_one(listener, target);
    }
}

static void read_options(int n, char **arguments)
{
    for (int option; (option = getopt(n, arguments, "d:a:w:cf:tnsk:")) >= 0;) {
        switch (option) {
        case 'd':
            faults.down = !strcmp(optarg, "down");
            break;
        case 'a':
            faults.at = strtoull(optarg, NULL, 10);
            break;
        case 'w':
            faults.delay = atof(optarg) / 1000;
            break;
        case 'c':
            faults.cut = true;
            break;
        case 'f':
            faults.bit = atoi(optarg);
            break;
        case 't':
            faults.trickle = true;
            break;
        case 'n':
            faults.deaf = true;
            break;
        case 's':
            faults.swallow = true;
            break;
        case 'k':
            faults.only = atoi(optarg);
            break;
        default:
            exit(ERR_USAGE);
        }
    }
}

int main(int n, char **arguments)
{
    struct address target;
    read_options(n, arguments);
    if (n - optind != 2) {
        fprintf(stderr, "usage: proxy [-d up|down] [-a N] [-w MS] [-c] [-f BIT] [-t] [-n] [-s] "
                        "[-k N] LISTEN TARGET\n");
        return ERR_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    parse(&target, arguments[optind + 1]);
    int listener = start_listening(arguments[optind]);
    run(listener, &target);
    if (str_starts(arguments[optind], "unix:"))
        unlink(arguments[optind] + 5);
    return 0;
}
