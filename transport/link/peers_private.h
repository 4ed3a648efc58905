/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of peers: the private parts that its files share.
 */
#ifndef TF_TRANSPORT_PEERS_PRIVATE_H
#define TF_TRANSPORT_PEERS_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "transport/channel/tls.h"
#include "transport/link/link_private.h"
#include "transport/link/peers.h"

struct dial;
struct listener;

struct peers {
    struct loop *loop;
    struct peers_options options;
    struct peers_handler handler;
    struct link_config config;
    char *task, *producer, *folder;
    struct tls *tls;          /* NULL: no key */
    VEC(struct link *) links; /* all, open or not; for the loop's thread */
    struct dial *dials;
    struct listener *listeners;
    int n_waiting; /* accepted, but not yet open */
    pthread_mutex_t lock;
    struct map by_task; /* open links to tasks, by link->peer.task; changed under the lock */
    struct map newest;  /* latest incarnation by task; the map owns its keys */
    atomic_uint_least64_t refused;
    struct error failed; /* the first dial that failed since the last peers_wait */
};

/* Makes a connected socket a link: the peer is at `address`, which messages call `text`; `expected`
 * is the dialed task, NULL if accepted. Returns NULL if the socket was closed instead. */
struct link *peers_add(struct peers *peers, int fd, const struct address *address, const char *text,
                       const char *expected, struct error *err);

/* Returns the open link to a task; NULL: none. In the loop's thread, which alone changes by_task.
 */
struct link *peers_linked(const struct peers *peers, const char *task);

/* listener.c */
void listener_free_first(struct peers *peers);

/* dial.c: handles an open link to the dialed task, and a lost link that the dial made. */
void dial_reached(struct peers *peers, const char *task);
void dial_lost(struct peers *peers, const struct link *link, const struct error *why);
void dial_free(struct dial *dial);

/* socket.c */
int socket_open(const struct address *address, struct error *err);
void socket_tune(int fd, const struct address *address);

#endif
