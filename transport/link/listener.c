/* SPDX-License-Identifier: Apache-2.0
 *
 * Listening sockets. Before its hello a connection is no link yet and may be anybody's: their
 * number is limited by the process's descriptors, of which the last ones are kept for its own
 * files. When another connection comes, the one that has waited longest is closed, after a grace
 * time. If links alone use all descriptors, one is kept in reserve to tell new connections why they
 * are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/link/peers_private.h"

#define BACKLOG 512
#define WAITING_MAX 256
#define RESERVED_MAX 32   /* descriptors: a store and its shards are open while saving */
#define PAUSE_SECONDS 0.1 /* after descriptors ran out */
#define TELL_SECONDS 10.0 /* between two reports of that */
#define HEAR_SECONDS 1.0  /* for the hello of a connection that is turned away */
#define GRACE_SHARE 0.1   /* of the handshake's time: after it a waiting connection may be closed */

struct listener {
    struct peers *peers;
    int fd, spare; /* spare: -1 while a connection is turned away */
    double told;   /* last time that lack of descriptors was reported */
    struct address address;
    struct loop_event *event; /* NULL: paused */
    struct loop_event *timer;
    struct listener *next;
};

/* A socket file that nobody listens at was left by a killed process. */
static bool is_stale(const struct address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int status = connect(fd, (const struct sockaddr *)&address->socket, address->length);
    bool stale = status && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

static const char *unix_path(const struct address *address)
{
    return ((const struct sockaddr_un *)&address->socket)->sun_path;
}

static int bind_to(int fd, const struct address *address)
{
    const struct sockaddr *socket = (const struct sockaddr *)&address->socket;
    int one = 1;
    if (!address_is_unix(address)) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        return bind(fd, socket, address->length);
    }
    int status = bind(fd, socket, address->length);
    if (status && errno == EADDRINUSE && is_stale(address) && !unlink(unix_path(address)))
        status = bind(fd, socket, address->length);
    return status ? status : chmod(unix_path(address), 0600);
}

static int check_allowed(const struct peers *peers, const struct address *address,
                         struct error *err)
{
    if (address_is_unix(address))
        return 0;
    if (peers->tls)
        return tls_load(peers->tls, err);
    if (!peers->options.no_key)
        return error_set(err, ERR_CONFIG,
                         "%s is TCP: --key-file FILE is needed; to make one: (umask 077; openssl "
                         "rand -hex 32 > FILE)",
                         address->text);
    if (!address_is_loopback(address))
        return error_set(err, ERR_CONFIG, "%s: --no-key is for the loopback only", address->text);
    return 0;
}

/* The limit of descriptors, and of connections that are no link yet. */
struct room {
    int descriptors, waiting;
};

/* Returns NULL if the connection was closed. */
static struct link *accept_link(struct listener *listener, int fd)
{
    struct peers *peers = listener->peers;
    struct address from;
    struct error ignored = ERROR_INIT; /* no memory for TLS: the peer will retry */
    socket_tune(fd, &listener->address);
    address_of_socket(&from, fd, true);
    bool local = address_is_unix(&listener->address); /* the peer's end has no name */
    struct link *link =
        peers_add(peers, fd, &from, local ? listener->address.text : from.text, NULL, &ignored);
    if (link)
        link->came = time_now();
    peers->n_waiting += link != NULL;
    return link;
}

/* ---- out of descriptors ---- */

static int keep_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void notify_owner(struct listener *listener, const struct error *why)
{
    const struct peers_news *news = &listener->peers->options.news;
    struct str text = STR_INIT;
    double now = time_now();
    if (!news->tell || (listener->told && now - listener->told < TELL_SECONDS))
        return;
    listener->told = now;
    str_printf(&text, "refuses connections at %s: %s", listener->address.text, why->text);
    news->tell(news->context, str_text(&text));
    str_release(&text);
}

static struct error tell_full(struct listener *listener, int number)
{
    struct error why = ERROR_INIT;
    struct rlimit limit;
    if (number == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
        error_set(&why, ERR_RETRY, "has no file descriptor left: %llu may be open (ulimit -n)",
                  (unsigned long long)limit.rlim_cur);
    else
        error_set(&why, ERR_RETRY, "has no file descriptor left: %s", errno_text(number));
    notify_owner(listener, &why);
    return why;
}

/* Accepts a connection to refuse it once its hello is there. */
static void turn_away(struct listener *listener, int number)
{
    struct error why = tell_full(listener, number);
    if (listener->spare < 0)
        return;
    close(listener->spare);
    listener->spare = -1;
    int peer = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct link *link = peer < 0 ? NULL : accept_link(listener, peer);
    if (!link)
        return;
    link->is_refused = true;
    link->unwanted = why;
    loop_timer_set(link->timer, HEAR_SECONDS);
}

static void pause_accepting(struct listener *listener)
{
    loop_event_free(listener->event);
    listener->event = NULL;
    loop_timer_set(listener->timer, PAUSE_SECONDS);
}

static bool has_room(const struct listener *listener, const struct room *room)
{
    /* The next descriptor gets the lowest free number, which tells how many are open. */
    int next = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
    if (next >= 0)
        close(next);
    return next >= 0 && next < room->descriptors && listener->peers->n_waiting < room->waiting;
}

/* Makes room for a new connection. One that has had its time for a hello is closed; without one,
 * further connections wait in the backlog. */
static bool make_room(struct listener *listener, const struct room *room)
{
    /* the longest waiting connection: links are in order of arrival */
    const struct peers *peers = listener->peers;
    struct link *oldest = NULL;
    for (size_t i = 0; i < peers->links.n && !oldest; i++)
        if (!peers->links.items[i]->dialed && !peers->links.items[i]->was_open)
            oldest = peers->links.items[i];
    bool is_full = listener->peers->n_waiting < room->waiting;
    if (oldest && time_now() - oldest->came >= GRACE_SHARE * oldest->config->handshake) {
        if (is_full)
            tell_full(listener, EMFILE);
        struct error why = ERROR_INIT;
        oldest->is_refused = true;
        error_set(&why, ERR_RETRY, "too many connect at once");
        link_refuse(oldest, &why);
        return has_room(listener, room);
    }
    if (!oldest)
        turn_away(listener, EMFILE); /* all descriptors are links */
    return false;
}

static void accept_all(void *context)
{
    struct listener *listener = context;
    struct rlimit limit;
    int all = getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX ? INT_MAX
                                                                           : (int)limit.rlim_cur;
    int reserved = all / 4 < RESERVED_MAX ? all / 4 : RESERVED_MAX;
    int half = (all - reserved) / 2;
    struct room room = {all - reserved, half < WAITING_MAX ? half : WAITING_MAX};
    if (!has_room(listener, &room) && !make_room(listener, &room)) {
        pause_accepting(listener);
        return;
    }
    do {
        int peer = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer >= 0) {
            accept_link(listener, peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (errno == EMFILE || errno == ENFILE)
                turn_away(listener, errno);
            pause_accepting(listener);
            return;
        } else if (errno == EAGAIN) {
            return;
        } /* else: the connection was aborted before it was accepted */
    } while (has_room(listener, &room));
}

/* Connections are turned away one at a time, using the reserved descriptor. */
static void resume_accepting(void *context)
{
    struct listener *listener = context;
    if (listener->spare < 0 && (listener->spare = keep_spare()) < 0)
        loop_timer_set(listener->timer, PAUSE_SECONDS);
    else
        listener->event = loop_watch_new(listener->peers->loop, listener->fd, accept_all, listener);
}

int peers_listen(struct peers *peers, const char *text, struct address *bound, struct error *err)
{
    struct address address;
    if (address_parse(&address, text, peers->folder, err) || check_allowed(peers, &address, err))
        return err->code;
    int fd = socket_open(&address, err);
    if (fd < 0)
        return err->code;
    if (bind_to(fd, &address) || listen(fd, BACKLOG)) {
        error_set_errno(err, ERR_OS, "listening at %s", address.text);
        close(fd);
        return err->code;
    }
    struct listener *listener = mem_alloc(sizeof *listener);
    *listener =
        (struct listener){.peers = peers, .fd = fd, .spare = keep_spare(), .address = address};
    if (!address_is_unix(&address))
        address_of_socket(&listener->address, fd, false);
    listener->timer = loop_timer_new(peers->loop, resume_accepting, listener);
    listener->event = loop_watch_new(peers->loop, fd, accept_all, listener);
    listener->next = peers->listeners;
    peers->listeners = listener;
    if (bound)
        *bound = listener->address;
    return 0;
}

void listener_free_first(struct peers *peers)
{
    struct listener *listener = peers->listeners;
    peers->listeners = listener->next;
    loop_event_free(listener->event);
    loop_event_free(listener->timer);
    if (address_is_unix(&listener->address))
        unlink(unix_path(&listener->address));
    close(listener->fd);
    if (listener->spare >= 0)
        close(listener->spare);
    mem_free(listener);
}
