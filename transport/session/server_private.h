/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's members, also for its tests. Private to transport.
 */
#ifndef TF_TRANSPORT_SERVER_PRIVATE_H
#define TF_TRANSPORT_SERVER_PRIVATE_H

#include <stdatomic.h>

#include "base/serial_queue.h"
#include "transport/session/server.h"
#include "transport/session/update_loop.h"

struct server {
    struct server_options options;
    struct conns_watcher watcher; /* the server is found by offsetof */
    struct update_loops *updates;
    struct serial_queue *graphs;     /* reads and frees graphs, as large ones take long */
    struct served_session *sessions; /* the loop's thread only */
    int n_sessions;                  /* sessions that are not closing */
    bool ends;
    atomic_uint_fast64_t steps; /* steps that were run */
};

#endif
