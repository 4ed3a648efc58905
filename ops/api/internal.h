/* SPDX-License-Identifier: Apache-2.0
 *
 * What the handles of the public library (api/tf_tools.h) are.
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
    struct joined joined;
    const char *name;     /* for messages; owned */
    pthread_mutex_t lock; /* of what requests add to the graph: names of fetches */
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
    VEC(struct edge) feeds;
    struct session_handle *handle;
    struct tensor *values;  /* per feed; type DTYPE_INVALID: it has none yet */
    struct tensor *results; /* per fetch; likewise */
};

/* Hands an error on to whoever called; returns its code. */
int api_fail(const struct error *err, struct tf_error *error);

/* ---- the functions of struct tf_core ---- */

tf_graph *api_graph_open(const char *file, struct tf_error *error);
tf_graph *api_graph_read(const void *bytes, size_t n, struct tf_error *error);
void api_graph_free(tf_graph *graph);
/* Whether there ever was one in the process. */
bool api_graph_exists(void);

tf_session *api_session_new(tf_graph *graph, const struct tf_session_options *options,
                            struct tf_error *error);
void api_session_free(tf_session *session);
int api_session_init(tf_session *session, struct tf_error *error);
int api_session_save(tf_session *session, const char *file, struct tf_error *error);
int api_session_restore(tf_session *session, const char *file, struct tf_error *error);
int64_t api_session_step(const tf_session *session);

tf_call *api_call_prepare(tf_session *session, const char *feeds, const char *fetches,
                          const char *targets, struct tf_error *error);
void api_call_free(tf_call *call);
int api_call_feed(tf_call *call, int i, const struct tf_tensor *value, struct tf_error *error);
int api_call_feed_strings(tf_call *call, int i, const struct tf_shape *shape,
                          const char *const *texts, const size_t *lengths, struct tf_error *error);
int api_call_run(tf_call *call, struct tf_error *error);
int api_call_fetches(const tf_call *call);
const char *api_call_fetch_name(const tf_call *call, int i);
int api_call_fetch(const tf_call *call, int i, struct tf_tensor *value, struct tf_error *error);
const char *api_call_fetch_string(const tf_call *call, int i, int64_t element, size_t *length);

#endif
