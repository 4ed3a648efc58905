/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory between two processes of one host: a ring each way, in anonymous memory that is
 * passed over their Unix socket together with an event per side to wake it. The socket stays open,
 * to notice when the other side ends.
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

struct channel *channel_with_fds(int fd);
bool channel_passes_fds(const struct channel *channel);

/* Passes the descriptors with the next bytes, and closes them here. */
void channel_give_fds(struct channel *channel, const int fds[SHARED_FDS]);

/* Takes the received descriptors, which the caller then owns; false unless all have arrived. */
bool channel_take_fds(struct channel *channel, int fds[SHARED_FDS]);

/* ---- rings ---- */

struct link;

/* The accepting side creates the memory and the descriptors to pass. `bytes` is a power of two
 * between the limits. ERR_OS. */
struct channel *shared_create(int socket, size_t bytes, int fds[SHARED_FDS], struct error *err);

/* The dialing side maps it; always takes ownership of the descriptors. ERR_OS, ERR_PROTOCOL. */
struct channel *shared_map(int socket, size_t bytes, const int fds[SHARED_FDS], struct error *err);

/* Attaches the channel: from here on the link's loop polls it, until channel->type->stop. */
void shared_attach(struct channel *channel, struct link *link);

#endif
