/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets that others connect to. A connection is no link before its hello, and may be anybody's:
 * there are only so many of these at a time, as the process may have descriptors, and the last ones
 * are kept for its own files. The one that has waited longest is let go when another one comes,
 * after a while. Where links alone take all descriptors, one is kept back for who comes: it is told
 * why it cannot have a link.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/link/peers_private.h"

#define BACKLOG 512
#define WAITING_MAX 256
#define RESERVED_MAX 32   /* descriptors: a store and its shards are open while they are saved */
#define PAUSE_SECONDS 0.1 /* when there are no descriptors left */
#define TELL_SECONDS 10.0 /* between two lines that say so */
#define HEAR_SECONDS 1.0  /* that who is turned away has for its hello */
#define GRACE_SHARE 0.1   /* of the time for a handshake: that others have before they make room */

struct listener {
    struct peers *peers;
    int fd, spare; /* spare: -1 while somebody is turned away */
    double told;   /* when it was said last that no descriptor is left */
    struct address address;
    struct event *event;
    struct loop_timer *timer;
    struct listener *next;
};

/* A socket file that nobody listens at is left over from a process that was killed. */
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

static void count_too_many(struct peers *peers)
{
    pthread_mutex_lock(&peers->lock);
    peers->refused.too_many++;
    pthread_mutex_unlock(&peers->lock);
}

/* Descriptors that the process may have, and those for connections that are no link yet. */
struct room {
    int descriptors, waiting;
};

/* NULL: it was closed. */
static struct link *accept_link(struct listener *listener, int fd)
{
    struct peers *peers = listener->peers;
    struct address from;
    struct error ignored = ERROR_INIT; /* no memory for TLS: the peer will try again */
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

/* ---- without descriptors ---- */

static int keep_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void notify_owner(struct listener *listener, const struct error *why)
{
    const struct peers_handler *handler = &listener->peers->handler;
    struct str text = STR_INIT;
    double now = time_now();
    if (!handler->tell || (listener->told && now - listener->told < TELL_SECONDS))
        return;
    listener->told = now;
    str_printf(&text, "refuses connections at %s: %s", listener->address.text, why->text);
    handler->tell(handler->link.context, str_text(&text));
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

/* Its link is refused when its hello is there. */
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
    count_too_many(listener->peers);
    link->unwanted = why;
    loop_timer_set(link->timer, HEAR_SECONDS);
}

static void pause_accepting(struct listener *listener)
{
    event_del(listener->event);
    loop_timer_set(listener->timer, PAUSE_SECONDS);
}

static bool has_room(const struct listener *listener, const struct room *room)
{
    /* The number that the next one gets is the lowest that is free: by it one knows how many there
     * are. */
    int next = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
    if (next >= 0)
        close(next);
    return next >= 0 && next < room->descriptors && listener->peers->n_waiting < room->waiting;
}

/* For one that has come. A connection that has had its time for a hello makes room; if there is
 * none, the next ones wait in the backlog. */
static bool make_room(struct listener *listener, const struct room *room)
{
    /* who has waited longest to become a link: links are in the order in which they came */
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
        count_too_many(listener->peers);
        error_set(&why, ERR_RETRY, "too many connect at once");
        link_refuse(oldest, &why);
        return has_room(listener, room);
    }
    if (!oldest)
        turn_away(listener, EMFILE); /* all are links */
    return false;
}

static void accept_all(evutil_socket_t fd, short what, void *context)
{
    struct listener *listener = context;
    struct rlimit limit;
    int all = getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX ? INT_MAX
                                                                           : (int)limit.rlim_cur;
    int reserved = all / 4 < RESERVED_MAX ? all / 4 : RESERVED_MAX;
    int half = (all - reserved) / 2;
    struct room room = {all - reserved, half < WAITING_MAX ? half : WAITING_MAX};
    (void)what;
    loop_worked(listener->peers->loop);
    if (!has_room(listener, &room) && !make_room(listener, &room)) {
        pause_accepting(listener);
        return;
    }
    do {
        int peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer >= 0) {
            accept_link(listener, peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (errno == EMFILE || errno == ENFILE)
                turn_away(listener, errno);
            pause_accepting(listener);
            return;
        } else if (errno == EAGAIN) {
            return;
        } /* else: a connection that was given up before it was taken */
    } while (has_room(listener, &room));
}

/* Connections that are turned away are told so one at a time, on the descriptor that is kept back.
 * */
static void resume_accepting(void *context)
{
    struct listener *listener = context;
    if (listener->spare < 0 && (listener->spare = keep_spare()) < 0)
        loop_timer_set(listener->timer, PAUSE_SECONDS);
    else
        event_add(listener->event, NULL);
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
    listener->event = event_new(peers->loop->base, fd, EV_READ | EV_PERSIST, accept_all, listener);
    if (!listener->event || event_add(listener->event, NULL))
        mem_exhausted(0);
    listener->next = peers->listeners;
    peers->listeners = listener;
    if (bound)
        *bound = listener->address;
    return 0;
}

struct listener *listener_next(const struct listener *listener)
{
    return listener->next;
}

void listener_free(struct listener *listener)
{
    event_free(listener->event);
    loop_timer_free(listener->timer);
    if (address_is_unix(&listener->address))
        unlink(unix_path(&listener->address));
    close(listener->fd);
    if (listener->spare >= 0)
        close(listener->spare);
    mem_free(listener);
}
