/* SPDX-License-Identifier: Apache-2.0
 *
 * A summation server (BytePS: Jiang et al., OSDI 2020): adds what the members of collectives
 * (collective.h) bring of a block, by rank, and sends the sum to all of them, or passes on the
 * block of one. It has no variables and updates none: that is the members', as are checkpoints.
 *
 * It keeps nothing between steps, and of a step only what waits for the parts of others. Each part
 * says which sum it is of and who takes part in that, so that a server can begin at any time, and
 * serve several groups; members begin when it has answered each that it knows it. Sums that wait
 * for a member whose link ends are dropped: its group ends.
 */
#ifndef TF_TRANSPORT_SUM_SERVER_H
#define TF_TRANSPORT_SUM_SERVER_H

#include "transport/value/conns.h"

#define SUM_SERVER_HELD_MAX ((int64_t)1 << 30) /* bytes of parts of one member that wait */

struct sum_server_options {
    struct conns *conns;
    /* A line for the log: what a peer sends that cannot be, for which its link ends. May be NULL.
     */
    void (*tell)(void *context, const char *line);
    void *context;
};

struct sum_server;

/* The connection manager gives it all records `reduce`, so there is one of it, and no collective.
 * Before the connection manager has links. */
struct sum_server *sum_server_new(const struct sum_server_options *options);

/* When the loop does not run any more, before the connection manager is freed. */
void sum_server_free(struct sum_server *server);

#endif
