/* SPDX-License-Identifier: Apache-2.0
 *
 * The links of a driver session: dialing, and what becomes of them. Watchers live in the loop's
 * thread.
 */
#include <stddef.h>
#include <string.h>

#include "base/container_of.h"
#include "transport/session/driver_private.h"

static struct driver_session *session_of(struct conns_watcher *watcher)
{
    return CONTAINER_OF(watcher, struct driver_session, watcher);
}

static struct remote_task *find_task(struct driver_session *session, const char *name)
{
    for (size_t i = 0; i < session->tasks.n; i++)
        if (!strcmp(session->tasks.items[i].name, name))
            return &session->tasks.items[i];
    return NULL;
}

static void opened(struct conns_watcher *watcher, struct peer *peer)
{
    struct driver_session *session = session_of(watcher);
    struct remote_task *task = find_task(session, peer_task(peer));
    if (!task || task->peer)
        return;
    exchange_route(session->exchange, task->name, peer);
    pthread_mutex_lock(&session->lock);
    task->peer = peer_retain(peer);
    driver_changed(session);
    pthread_mutex_unlock(&session->lock);
}

static void lost(struct conns_watcher *watcher, struct peer *peer, const struct error *why)
{
    struct driver_session *session = session_of(watcher);
    const struct remote_task *task = find_task(session, peer_task(peer));
    if (task && task->peer == peer)
        driver_step_lost(session, why);
}

static void failed(struct conns_watcher *watcher, const char *name, const struct error *why)
{
    struct driver_session *session = session_of(watcher);
    const struct remote_task *task = find_task(session, name);
    if (!task || task->peer) /* the other side's connection counts */
        return;
    pthread_mutex_lock(&session->lock);
    if (!session->dial_error.code)
        session->dial_error = *why;
    driver_changed(session);
    pthread_mutex_unlock(&session->lock);
}

const char *driver_address(const struct driver_session *session, const char *name,
                           struct error *err)
{
    char job[DEVICE_WORD_BYTES];
    int index;
    if (task_parse(name, job, &index, err))
        return NULL;
    const struct cluster_task *task = cluster_find(session->options.cluster, job, index);
    if (!task)
        error_set(err, ERR_CONFIG, "the graph needs %s, which is not in the cluster", name);
    return task ? task->address : NULL;
}

/* In the loop's thread, or while it does not run. */
static void dial_all(void *argument)
{
    struct driver_session *session = argument;
    double timeout = session->options.timeout > 0 ? session->options.timeout : 30;
    session->watcher = (struct conns_watcher){opened, lost, failed, NULL};
    conns_watch(session->options.conns, &session->watcher);
    for (size_t i = 0; i < session->tasks.n; i++) {
        struct error err = ERROR_INIT;
        const char *name = session->tasks.items[i].name;
        struct peer *peer = conns_peer(session->options.conns, name);
        const char *address = driver_address(session, name, &err);
        if (peer)
            opened(&session->watcher, peer);
        else if (!address ||
                 peers_connect(conns_peers(session->options.conns), name, address, timeout, &err))
            failed(&session->watcher, name, &err);
        peer_release(peer);
    }
}

bool driver_is_given_up(const struct driver_session *session)
{
    return session->options.given_up && session->options.given_up(session->options.context);
}

static bool is_linked(void *context)
{
    const struct driver_session *session = context;
    bool all = true;
    for (size_t i = 0; i < session->tasks.n; i++)
        all = all && session->tasks.items[i].peer;
    return all || session->dial_error.code || driver_is_given_up(session);
}

int driver_dial(struct driver_session *session, struct error *err)
{
    if (session->options.pumps)
        dial_all(session);
    else
        loop_post(conns_loop(session->options.conns), dial_all, session);
    driver_wait(session, is_linked, session);
    pthread_mutex_lock(&session->lock); /* of what was given up the loop may tell just now */
    if (session->dial_error.code)
        *err = session->dial_error;
    else if (driver_is_given_up(session))
        error_set(err, ERR_CANCELLED, "the session was given up");
    pthread_mutex_unlock(&session->lock);
    return err->code;
}

void driver_cut_off(struct driver_session *session)
{
    struct error why = ERROR_INIT;
    struct link *link;
    error_set(&why, ERR_UNAVAILABLE, "%s has given up", session->options.task);
    for (size_t i = 0; session->options.pumps && i < session->tasks.n; i++)
        if ((link =
                 peers_find(conns_peers(session->options.conns), session->tasks.items[i].name))) {
            link_close(link, &why);
            link_release(link);
        }
}

struct unwatch {
    struct driver_session *session;
    bool done;
};

static void unwatch(void *argument)
{
    struct unwatch *u = argument;
    conns_unwatch(u->session->options.conns, &u->session->watcher);
    pthread_mutex_lock(&u->session->lock);
    u->done = true;
    driver_changed(u->session);
    pthread_mutex_unlock(&u->session->lock);
}

static bool is_unwatched(void *context)
{
    return ((struct unwatch *)context)->done;
}

void driver_let_go(struct driver_session *session)
{
    struct unwatch u = {.session = session};
    if (session->options.pumps)
        unwatch(&u);
    else
        loop_post(conns_loop(session->options.conns), unwatch, &u);
    driver_wait(session, is_unwatched, &u);
}
