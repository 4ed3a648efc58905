/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting to a task until it is reachable: attempts with growing pauses between them.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "transport/link/peers_private.h"

#define PAUSE_MIN 0.05
#define PAUSE_MAX 1.0
#define SAY_SECONDS 1.0

struct dial {
    struct peers *peers;
    char *task, *text;
    struct address address;
    double started, deadline, pause, said;
    int fd; /* being connected, or -1 */
    struct event *event;
    struct link *link; /* whose hello is awaited; or NULL */
    struct loop_event *timer;
    struct error last; /* why the last attempt failed */
    struct dial *next;
};

static void stop_connecting(struct dial *dial)
{
    if (dial->event)
        event_free(dial->event);
    if (dial->fd >= 0)
        close(dial->fd);
    dial->event = NULL;
    dial->fd = -1;
}

void dial_free(struct dial *dial)
{
    struct dial **at = &dial->peers->dials;
    while (*at != dial)
        at = &(*at)->next;
    *at = dial->next;
    stop_connecting(dial);
    loop_event_free(dial->timer);
    mem_free(dial->task);
    mem_free(dial->text);
    mem_free(dial);
}

static void give_up(struct dial *dial, const struct error *why)
{
    struct peers *peers = dial->peers;
    struct error last = *why;
    char *task = mem_strdup(dial->task);
    dial_free(dial);
    if (!peers->failed.code)
        peers->failed = last;
    if (peers->handler.failed)
        peers->handler.failed(peers->handler.link.context, task, &last);
    mem_free(task);
}

/* Retries later, or gives up. `why` starts with the task and the address. */
static void retry_later(struct dial *dial, const struct error *why)
{
    double now = time_now();
    dial->last = *why;
    /* Retrying could not help. */
    if (why->code != ERR_UNAVAILABLE && why->code != ERR_OS && why->code != ERR_RETRY) {
        give_up(dial, &dial->last);
    } else if (now >= dial->deadline) {
        dial->last.code = ERR_UNAVAILABLE;
        error_append(&dial->last, ", gave up after %.3g s", dial->deadline - dial->started);
        give_up(dial, &dial->last);
    } else {
        double left = dial->deadline - now;
        const struct peers_news *news = &dial->peers->options.news;
        struct str text = STR_INIT;
        if (news->waiting && now - dial->said >= SAY_SECONDS) {
            dial->said = now;
            str_printf(&text, "waiting for %s, %.0f s left", dial->last.text,
                       ceil(dial->deadline - now));
            news->waiting(news->context, dial->task, text.data);
            str_release(&text);
        }
        loop_timer_set(dial->timer, dial->pause < left ? dial->pause : left);
        dial->pause = dial->pause * 2 < PAUSE_MAX ? dial->pause * 2 : PAUSE_MAX;
    }
}

static void failed_errno(struct dial *dial, int number)
{
    struct error err = ERROR_INIT;
    error_set(&err, ERR_UNAVAILABLE, "%s at %s: %s", dial->task, dial->text, errno_text(number));
    retry_later(dial, &err);
}

static void connected(struct dial *dial)
{
    struct error err = ERROR_INIT;
    int fd = dial->fd;
    dial->fd = -1;
    stop_connecting(dial);
    loop_timer_set(dial->timer, -1); /* the link has its own timeout */
    dial->link = peers_add(dial->peers, fd, &dial->address, dial->text, dial->task, &err);
    if (!dial->link)
        retry_later(dial, &err);
}

static void connect_ready(evutil_socket_t fd, short what, void *context)
{
    struct dial *dial = context;
    int number = 0;
    socklen_t n = sizeof number;
    (void)what;
    loop_worked(dial->peers->loop);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &n))
        number = errno;
    if (!number) {
        connected(dial);
        return;
    }
    stop_connecting(dial);
    failed_errno(dial, number);
}

/* The pause is over, or the deadline has passed while the system was connecting. */
static void timed(void *context)
{
    struct dial *dial = context;
    if (dial->fd < 0) {
        struct error err = ERROR_INIT;
        dial->fd = socket_open(&dial->address, &err);
        if (dial->fd < 0) {
            retry_later(dial, &err);
        } else if (!connect(dial->fd, (struct sockaddr *)&dial->address.socket,
                            dial->address.length)) {
            connected(dial);
        } else if (errno == EINPROGRESS) {
            dial->event =
                event_new(dial->peers->loop->base, dial->fd, EV_WRITE, connect_ready, dial);
            if (!dial->event || event_add(dial->event, NULL))
                mem_exhausted(0);
            loop_timer_set(dial->timer, fmax(dial->deadline - time_now(), 0));
        } else {
            int number = errno;
            stop_connecting(dial);
            failed_errno(dial, number);
        }
        return;
    }
    stop_connecting(dial);
    failed_errno(dial, ETIMEDOUT);
}

static struct dial *find(const struct peers *peers, const char *task)
{
    struct dial *dial = peers->dials;
    while (dial && strcmp(dial->task, task))
        dial = dial->next;
    return dial;
}

int peers_connect(struct peers *peers, const char *task, const char *text, double seconds,
                  struct error *err)
{
    struct address address;
    if (peers_linked(peers, task) || find(peers, task))
        return 0;
    if (address_parse(&address, text, peers->folder, err))
        return error_prefix(err, "%s: ", task);
    if (!address_is_unix(&address) && !peers->options.key_file && !peers->options.no_key)
        return error_set(err, ERR_CONFIG, "%s at %s is TCP: --key-file FILE is needed", task, text);
    if (!address_is_unix(&address) && peers->tls && tls_load(peers->tls, err))
        return err->code;
    struct dial *dial = mem_alloc(sizeof *dial);
    *dial = (struct dial){.peers = peers,
                          .task = mem_strdup(task),
                          .text = mem_strdup(text),
                          .address = address,
                          .pause = PAUSE_MIN,
                          .fd = -1,
                          .next = peers->dials};
    dial->started = dial->said = time_now();
    dial->deadline = dial->started + seconds;
    dial->timer = loop_timer_new(peers->loop, timed, dial);
    loop_timer_set(dial->timer, 0);
    peers->dials = dial;
    return 0;
}

void dial_reached(struct peers *peers, const char *task)
{
    struct dial *dial = find(peers, task);
    if (dial)
        dial_free(dial);
}

void dial_lost(struct peers *peers, const struct link *link, const struct error *why)
{
    for (struct dial *dial = peers->dials; dial; dial = dial->next) {
        if (dial->link != link)
            continue;
        dial->link = NULL;
        retry_later(dial, why);
        return;
    }
}
