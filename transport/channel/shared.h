/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory between two processes of one host: a ring each way, in memory without a name that
 * is passed over their Unix socket together with an event for each side to be woken by. The socket
 * stays, to notice when the other side ends.
 */
#ifndef TF_TRANSPORT_SHARED_H
#define TF_TRANSPORT_SHARED_H

#include <stdbool.h>

#include "transport/channel/channel.h"

#define SHARED_FDS                                                                                 \
    3 /* the memory, the event of the side that accepted, that of the one that dialed */
#define SHARED_MIN ((size_t)64 << 10) /* bytes of a ring */
#define SHARED_MAX ((size_t)4 << 20)

/* ---- a Unix socket that passes descriptors along ---- */

struct channel *channel_rights_new(int fd);
bool channel_has_rights(const struct channel *channel);

/* The descriptors go out with the next bytes, and are closed here. */
void rights_give(struct channel *channel, const int fds[SHARED_FDS]);

/* Those that came in; false unless there are all. They are the caller's. */
bool rights_take(struct channel *channel, int fds[SHARED_FDS]);

/* ---- rings ---- */

struct link;

/* The side that accepted makes the memory, and what to give to the other. `bytes` is a power of two
 * between the limits. ERR_OS. */
struct channel *shared_create(int socket, size_t bytes, int fds[SHARED_FDS], struct error *err);

/* The side that dialed maps it; takes the descriptors over, in any case. ERR_OS, ERR_PROTOCOL. */
struct channel *shared_map(int socket, size_t bytes, const int fds[SHARED_FDS], struct error *err);

/* Attaches the channel: from here on the link's loop looks after it, until channel->type->stop. */
void shared_attach(struct channel *channel, struct link *link);

#endif
