/* SPDX-License-Identifier: Apache-2.0
 *
 * The server, as its tests see it, too. Private to transport.
 */
#ifndef TF_TRANSPORT_SERVER_PRIVATE_H
#define TF_TRANSPORT_SERVER_PRIVATE_H

#include <stdatomic.h>

#include "base/serial_queue.h"
#include "transport/session/server.h"
#include "transport/session/update_loop.h"

struct server {
    struct server_options options;
    struct conns_watcher watcher; /* its owner is found by offsetof */
    struct update_loops *updates;
    struct serial_queue *graphs; /* reads and frees them: the larger they are the longer it takes */
    struct served_session *sessions; /* of the loop's thread */
    int n_sessions;                  /* that are not closing */
    bool ends;
    atomic_uint_fast64_t steps; /* that were run */
};

#endif
