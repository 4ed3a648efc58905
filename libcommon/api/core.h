/* SPDX-License-Identifier: Apache-2.0
 *
 * The core of the public library. libtf-tools.so.1 contains nothing but its functions (door.c),
 * which call these in a second library that it loads privately: so programs that use it see none of
 * our other names, and we see none of theirs.
 */
#ifndef TF_API_CORE_H
#define TF_API_CORE_H

#include "api/tf_tools.h"

/* Each member implements the public function of that name. */
struct tf_core {
    uint32_t bytes; /* of this struct: both libraries must be of one build */
    uint32_t abi;
    const char *version;
    int (*ops_load)(const char *file, struct tf_error *error);
    void (*on_print)(void (*print)(const char *line, void *context), void *context);

    tf_graph *(*graph_open)(const char *file, struct tf_error *error);
    tf_graph *(*graph_read)(const void *bytes, size_t n, struct tf_error *error);
    void (*graph_free)(tf_graph *graph);

    tf_session *(*session_new)(tf_graph *graph, const struct tf_session_options *options,
                               struct tf_error *error);
    void (*session_free)(tf_session *session);
    int (*session_init)(tf_session *session, struct tf_error *error);
    int (*session_save)(tf_session *session, const char *file, struct tf_error *error);
    int (*session_restore)(tf_session *session, const char *file, struct tf_error *error);
    int64_t (*session_step)(const tf_session *session);

    tf_call *(*call_prepare)(tf_session *session, const char *feeds, const char *fetches,
                             const char *targets, struct tf_error *error);
    void (*call_free)(tf_call *call);
    int (*call_feed)(tf_call *call, int i, const struct tf_tensor *value, struct tf_error *error);
    int (*call_feed_strings)(tf_call *call, int i, const struct tf_shape *shape,
                             const char *const *texts, const size_t *lengths,
                             struct tf_error *error);
    int (*call_run)(tf_call *call, struct tf_error *error);
    int (*call_fetches)(const tf_call *call);
    const char *(*call_fetch_name)(const tf_call *call, int i);
    int (*call_fetch)(const tf_call *call, int i, struct tf_tensor *value, struct tf_error *error);
    const char *(*call_fetch_string)(const tf_call *call, int i, int64_t element, size_t *length);
};

/* The table in libtf-graph.so, looked up by its name. */
extern const struct tf_core tf_core;

#endif
