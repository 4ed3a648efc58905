/* SPDX-License-Identifier: Apache-2.0
 *
 * The library of tf-tools: runs graphs made by the programs (tf-graph, tf-opt, tf-place) within
 * your own program. Link with libtf-tools, by `pkg-config --cflags --libs tf-tools`.
 *
 *     tf_graph *graph = tf_graph_open("digits.tfg", &error);
 *     tf_session *session = tf_session_new(graph, NULL, &error);
 *     tf_call *call = tf_call_prepare(session, "x,y", "loss", "train", &error);
 *     tf_session_init(session, &error);
 *     tf_call_feed(call, 0, &x, &error);
 *     tf_call_feed(call, 1, &y, &error);
 *     tf_call_run(call, &error);
 *     tf_call_fetch(call, 0, &loss, &error);
 *
 * Errors. A function that can fail returns 0 or a code (enum tf_code), or NULL if it creates an
 * object, and describes the failure in *error, in one line; `error` may be NULL. The library prints
 * nothing and never ends the process, with one exception: if a small allocation fails, it prints a
 * line and exits with TF_OS. Allocations as large as an input, for example a tensor, return an
 * error instead.
 *
 * Ownership. The caller owns and frees the objects that functions create: calls before their
 * session, the session before its graph. NULL may be freed. Texts that are passed in are copied.
 *
 * Threads. Any number of threads and sessions may use a graph at once. So may threads a session:
 * concurrent calls are overlapping steps, and each sees every variable as some step left it. A call
 * is used by one thread at a time. A session starts threads: a process that has one may fork only
 * to run another program. While the first session is created no other thread may change the
 * environment. Creating or running something may change the size of a thread's OpenMP teams.
 */
#ifndef TF_TOOLS_H
#define TF_TOOLS_H

#include "tf_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header and of the library, which is linked by the name libtf-tools.so.1:
 * within a version functions are added, and none is removed or changed. */
#define TF_TOOLS_ABI 1

uint32_t tf_abi(void);        /* of the installed library; 0: the installation is incomplete */
const char *tf_version(void); /* "1.0"; "" likewise */

#define TF_ERROR_BYTES 1024

struct tf_error {
    int32_t code; /* enum tf_code; 0: no error */
    char text[TF_ERROR_BYTES];
};

typedef struct tf_graph tf_graph;
typedef struct tf_session tf_session;
typedef struct tf_call tf_call;

/* Loads an object with custom ops (tf_op.h), for all graphs of the process. Call it before the
 * first graph is made: later it fails with TF_USAGE. */
int tf_ops_load(const char *file, struct tf_error *error);

/* Sets where ops print: `print` gets one line at a time, from one thread at a time. NULL, the
 * default: the lines are dropped. */
void tf_on_print(void (*print)(const char *line, void *context), void *context);

/* ---- graphs ---- */

/* Opens a graph, or its partitions for several devices of this process, as tf-part writes them. */
tf_graph *tf_graph_open(const char *file, struct tf_error *error);
tf_graph *tf_graph_read(const void *bytes, size_t n, struct tf_error *error);
void tf_graph_free(tf_graph *graph);

/* ---- sessions: a graph with the values of its variables ---- */

struct tf_session_options {
    uint32_t bytes;        /* sizeof (struct tf_session_options) */
    int32_t threads;       /* for computing; 0: one per core */
    int32_t deterministic; /* not 0: the same bits whatever the number of threads */
    uint64_t seed;         /* of the random ops */
    int32_t exact;         /* not 0: elements depend only on inputs in their window, unlike Winograd
                            */
};

/* Options NULL: all are 0. */
tf_session *tf_session_new(tf_graph *graph, const struct tf_session_options *options,
                           struct tf_error *error);
void tf_session_free(tf_session *session);

/* Initialises the variables: runs the graph's entry init, if it has one. */
int tf_session_init(tf_session *session, struct tf_error *error);

/* Save and restore the variables, in the format of tf-exec --save and --restore. The file appears
 * whole or not at all (a path that is no regular file, such as a pipe, is written in place), and is
 * restored wholly or not at all. If other threads meanwhile run steps that change variables, the
 * saved values are of no single step. */
int tf_session_save(tf_session *session, const char *file, struct tf_error *error);
int tf_session_restore(tf_session *session, const char *file, struct tf_error *error);

/* Returns the number of the last step: one per tf_call_run since the session began, or since the
 * restored step. */
int64_t tf_session_step(const tf_session *session);

/* ---- calls: the feeds, targets and fetches of a step ---- */

/* A value: elements in row-major order, in the host's memory. */
struct tf_tensor {
    int32_t type; /* enum tf_type */
    struct tf_shape shape;
    const void *data; /* aligned for its element type; NULL for strings */
    size_t bytes;
};

/* Prepares steps. Each argument is a list of names, separated by commas, or NULL: tensors to feed,
 * as tf_call_feed numbers them; tensors to fetch, as tf_call_fetch numbers them, followed by those
 * that the entries fetch; entries or nodes to run. TF_NOINPUT names what else must be fed. */
tf_call *tf_call_prepare(tf_session *session, const char *feeds, const char *fetches,
                         const char *targets, struct tf_error *error);
void tf_call_free(tf_call *call);

/* Feeds the i-th tensor, from the next run on. The elements are borrowed: they must stay until
 * another value is fed or the call is freed, and must not change while the call runs. */
int tf_call_feed(tf_call *call, int i, const struct tf_tensor *value, struct tf_error *error);

/* The same for strings, which are copied; lengths NULL: they are NUL-terminated. */
int tf_call_feed_strings(tf_call *call, int i, const struct tf_shape *shape,
                         const char *const *texts, const size_t *lengths, struct tf_error *error);

/* Runs a step with the fed tensors. */
int tf_call_run(tf_call *call, struct tf_error *error);

/* Return the number of fetched tensors; the name of one, which lives as long as the call. */
int tf_call_fetches(const tf_call *call);
const char *tf_call_fetch_name(const tf_call *call, int i);

/* Returns a result of the last run; the elements live until the next run, or until the call is
 * freed. */
int tf_call_fetch(const tf_call *call, int i, struct tf_tensor *value, struct tf_error *error);

/* Returns an element of a string tensor, without terminating NUL; NULL: there is none. */
const char *tf_call_fetch_string(const tf_call *call, int i, int64_t element, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
