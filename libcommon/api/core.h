/* SPDX-License-Identifier: Apache-2.0
 *
 * The core of the public library. libtf-tools.so.1 contains nothing but its functions (door.c),
 * which call these in a second library that it loads privately: so programs that use it see none of
 * our other names, and we see none of theirs.
 */
#ifndef TF_API_CORE_H
#define TF_API_CORE_H

#include "api/tf_tools.h"

/* The public functions that door.c forwards. */
#define CORE_FUNCTIONS(X)                                                                          \
    X(ops_load)                                                                                    \
    X(on_print)                                                                                    \
    X(graph_open)                                                                                  \
    X(graph_read)                                                                                  \
    X(graph_free)                                                                                  \
    X(session_new)                                                                                 \
    X(session_free)                                                                                \
    X(session_init)                                                                                \
    X(session_save)                                                                                \
    X(session_restore)                                                                             \
    X(session_step)                                                                                \
    X(call_prepare)                                                                                \
    X(call_free)                                                                                   \
    X(call_feed)                                                                                   \
    X(call_feed_strings)                                                                           \
    X(call_run)                                                                                    \
    X(call_fetches)                                                                                \
    X(call_fetch_name)                                                                             \
    X(call_fetch)                                                                                  \
    X(call_fetch_string)

/* Each member implements the public function of that name, and has its type. */
struct tf_core {
    uint32_t bytes; /* of this struct: both libraries must be of one build */
    uint32_t abi;
    const char *version;
#define X(name) __typeof__(tf_##name) *name;
    CORE_FUNCTIONS(X)
#undef X
};

/* The table in libtf-graph.so, looked up by its name. */
extern const struct tf_core tf_core;

#endif
