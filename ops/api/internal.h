/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs behind the handles of the public library (api/tf_tools.h).
 */
#ifndef TF_OPS_API_INTERNAL_H
#define TF_OPS_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/core.h"
#include "exec/device/device_set.h"
#include "exec/session/request.h"
#include "exec/session/session.h"
#include "graph/join.h"

struct tf_graph {
    struct stream_graph joined;
    const char *name;     /* for messages; owned */
    pthread_mutex_t lock; /* guards what requests add to the graph: names of fetches */
};

struct tf_session {
    tf_graph *graph;
    struct device_set devices;
    struct session *session;
    uint64_t seed;
    _Atomic int64_t step;
};

struct tf_call {
    tf_session *session;
    struct request request;
    struct arena names; /* of its feeds, fetches and targets */
    VEC(struct edge) feeds;
    struct session_handle *handle;
    struct tensor *values;  /* per feed; type DTYPE_INVALID: no value yet */
    struct tensor *results; /* per fetch; likewise */
};

/* Passes an error on to the caller; returns its code. */
int api_fail(const struct error *err, struct tf_error *error);

/* Returns whether the process has ever had a graph. */
bool api_graph_exists(void);

/* The functions of struct tf_core: api_graph_open and so on. */
#define X(name) extern __typeof__(tf_##name) api_##name;
CORE_FUNCTIONS(X)
#undef X

#endif
