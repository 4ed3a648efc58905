/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"

#define NAME "control"
#define BACKLOG 128 /* clients waiting for a place */

typedef const char *reply_function(void *context, const char *request);

/* ---- the socket ---- */

static int open_folder(const char *folder)
{
    return open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The folder's own path may be longer than an address. */
static struct sockaddr_un address_in(int folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" NAME, folder);
    return address;
}

static void remove_in(int folder)
{
    struct stat there;
    if (!fstatat(folder, NAME, &there, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(there.st_mode))
        unlinkat(folder, NAME, 0);
}

int control_open(struct control *control, const char *folder, struct error *err)
{
    memset(control, 0, sizeof *control);
    for (int i = 0; i < CONTROL_END; i++)
        control->polls[i].fd = -1;
    if (!folder)
        return 0;
    int at = open_folder(folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = address_in(at);
    if (at >= 0 && fd >= 0)
        remove_in(at);
    /* No client is let in before the mode is set. */
    if (at >= 0 && fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof address) &&
        !fchmodat(at, NAME, 0600, 0) && !listen(fd, BACKLOG)) {
        control->polls[CONTROL_LISTENER].fd = fd;
    } else {
        error_set_errno(err, ERR_IO, "%s/" NAME, folder);
        close_if_open(fd);
    }
    close_if_open(at);
    return err->code;
}

void control_remove(const char *folder)
{
    int at = open_folder(folder);
    if (at < 0)
        return;
    remove_in(at);
    close(at);
}

/* ---- one client: it is read from (POLLIN), waits for a reply (0), or gets it (POLLOUT) ---- */

static void close_client(struct control *control, int i)
{
    close(control->polls[i].fd);
    control->polls[i].fd = -1;
    str_release(&control->clients[i].reply);
}

static void write_reply(struct control *control, int i)
{
    struct control_client *client = &control->clients[i];
    ssize_t n = send(control->polls[i].fd, client->reply.data + client->n,
                     client->reply.n - client->n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
        return;
    client->n += n > 0 ? (size_t)n : 0;
    if (n < 0 || client->n == client->reply.n)
        close_client(control, i);
}

static void reply_client(struct control *control, int i, const char *text)
{
    struct control_client *client = &control->clients[i];
    str_append(&client->reply, text);
    client->n = 0;
    client->since = time_now();
    control->polls[i].events = POLLOUT;
    write_reply(control, i);
}

static void read_request(struct control *control, int i, reply_function *reply, void *context)
{
    struct control_client *client = &control->clients[i];
    size_t most = sizeof client->request - client->n;
    ssize_t n = recv(control->polls[i].fd, client->request + client->n, most, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    client->n += n > 0 ? (size_t)n : 0;
    char *newline = memchr(client->request, '\n', client->n);
    if (newline) {
        *newline = '\0';
        control->polls[i].events = 0;
        const char *text = reply(context, client->request);
        if (text)
            reply_client(control, i, text);
    } else if (n <= 0 || client->n == sizeof client->request) {
        close_client(control, i);
    }
}

static void serve_client(struct control *control, int i, reply_function *reply, void *context)
{
    struct pollfd *poll = &control->polls[i];
    if (poll->events == POLLIN)
        read_request(control, i, reply, context);
    else if (poll->events == POLLOUT)
        write_reply(control, i);
    else if (poll->revents & (POLLHUP | POLLERR))
        close_client(control, i);
    if (poll->fd >= 0 && poll->events && time_now() > control->clients[i].since + CONTROL_SECONDS)
        close_client(control, i);
}

/* ---- all clients ---- */

/* Returns a free place, or that of the oldest client that does not wait for a reply; 0: none. */
static int find_place(const struct control *control)
{
    int place = 0;
    for (int i = CONTROL_FIRST; i < CONTROL_END; i++) {
        if (control->polls[i].fd < 0)
            return i;
        if (control->polls[i].events &&
            (!place || control->clients[i].since < control->clients[place].since))
            place = i;
    }
    return place;
}

void control_wait(struct control *control, int also, double seconds)
{
    bool open = !control->rests && find_place(control);
    control->polls[CONTROL_ALSO] = (struct pollfd){.fd = also, .events = POLLIN};
    control->polls[CONTROL_LISTENER].events = open ? POLLIN : 0;
    poll(control->polls, CONTROL_END, (int)(seconds * 1000));
}

void control_serve(struct control *control, reply_function *reply, void *context)
{
    for (int i = CONTROL_FIRST; i < CONTROL_END; i++)
        if (control->polls[i].fd >= 0)
            serve_client(control, i, reply, context);
    for (int n = 0; n < BACKLOG && control->polls[CONTROL_LISTENER].fd >= 0; n++) {
        /* No client is let in without a place. */
        int place = find_place(control);
        int listener = control->polls[CONTROL_LISTENER].fd;
        int fd = place ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        control->rests = place && fd < 0 && errno != EAGAIN;
        if (fd < 0)
            return;
        if (control->polls[place].fd >= 0)
            close_client(control, place);
        control->polls[place] = (struct pollfd){.fd = fd, .events = POLLIN};
        control->clients[place] = (struct control_client){.since = time_now()};
        read_request(control, place, reply, context);
    }
}

void control_close(struct control *control, const char *text)
{
    double until = time_now() + CONTROL_SECONDS;
    for (int i = CONTROL_FIRST; i < CONTROL_END; i++)
        if (control->polls[i].fd >= 0 && !control->polls[i].events)
            reply_client(control, i, text);
    for (int i = CONTROL_LISTENER; i < CONTROL_END; i++) {
        struct pollfd *poll_of = &control->polls[i];
        while (poll_of->fd >= 0 && poll_of->events == POLLOUT && time_now() < until) {
            poll(poll_of, 1, 100);
            write_reply(control, i);
        }
        if (poll_of->fd >= 0)
            close_client(control, i);
    }
}

/* ---- the asking side ---- */

/* An incomplete reply counts as none. */
static int hear(int fd, const char *request, const struct control_patience *patience,
                struct str *reply)
{
    char bytes[4096];
    ssize_t n = -1;
    str_printf(reply, "%s\n", request);
    bool sent = send(fd, reply->data, reply->n, MSG_NOSIGNAL) == (ssize_t)reply->n;
    str_clear(reply);
    do {
        n = sent ? recv(fd, bytes, sizeof bytes, 0) : -1;
        if (n > 0)
            str_append_bytes(reply, bytes, (size_t)n);
    } while (n > 0 || (sent && n < 0 && errno == EAGAIN && patience->goes_on &&
                       patience->goes_on(patience->context)));
    return n < 0 || !reply->n ? ERR_UNAVAILABLE : 0;
}

int control_ask(const char *folder, const char *request, const struct control_patience *patience,
                struct str *reply)
{
    const struct timeval limit = {.tv_sec = (time_t)patience->seconds};
    int at = open_folder(folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (patience->seconds > 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    struct sockaddr_un address = address_in(at);
    int code = !connect(fd, (struct sockaddr *)&address, sizeof address)
                   ? hear(fd, request, patience, reply)
               : errno == EACCES || errno == EPERM ? ERR_DENIED
               : errno == EAGAIN                   ? ERR_UNAVAILABLE /* all places are taken */
                                                   : ERR_NOINPUT;
    close_if_open(fd);
    close_if_open(at);
    return code;
}
