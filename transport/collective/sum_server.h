/* SPDX-License-Identifier: Apache-2.0
 *
 * A summation server (BytePS: Jiang et al., OSDI 2020): adds the parts of a chunk that members of
 * collectives (collective.h) send, by rank, and sends the sum to all of them, or forwards the chunk
 * of one member. It has no variables and updates none: members do that, and write checkpoints.
 *
 * It keeps nothing between steps, and within a step only parts that wait for those of other
 * members. Each part says which sum it belongs to and which members take part, so that a server can
 * start at any time, and serve several groups; members begin when it has replied to each that it
 * knows its link. Sums that wait for a member whose link ends are dropped: its group ends.
 */
#ifndef TF_TRANSPORT_SUM_SERVER_H
#define TF_TRANSPORT_SUM_SERVER_H

#include "transport/value/conns.h"

#define SUM_SERVER_HELD_MAX ((int64_t)1 << 30) /* bytes of waiting parts of one member */

struct sum_server_options {
    struct conns *conns;
    /* Gets a line for the log when a peer's link ends because of what it sent. May be NULL. */
    void (*tell)(void *context, const char *line);
    void *context;
};

struct sum_server;

/* The connection manager passes it all records `reduce`, so there is one server per manager, and no
 * collective. Call this before the manager has links. */
struct sum_server *sum_server_new(const struct sum_server_options *options);

/* Call this once the loop has ended, and before the connection manager is freed. */
void sum_server_free(struct sum_server *server);

#endif
