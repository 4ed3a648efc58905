/* SPDX-License-Identifier: Apache-2.0
 *
 * The library of tf-tools: runs graphs that the programs made (tf-graph, tf-opt, tf-place) within a
 * program of your own. Link with libtf-tools, by `pkg-config --cflags --libs tf-tools`.
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
 * Errors. A function that can fail returns 0 or a code (enum tf_code), or NULL where it makes
 * something, and says in *error what failed, in one line; `error` may be NULL. Nothing is printed,
 * and the process is not ended, with one exception: where the system has no memory for something
 * small, a line says so and the process exits with TF_OS. Whatever is as large as its input, a
 * tensor for instance, is an error instead.
 *
 * Ownership. Objects that a function makes are the caller's, who frees them: calls before their
 * session, the session before its graph. NULL may be freed. Texts that are passed in are copied.
 *
 * Threads. A graph may be used by any number of threads and sessions at once. A session as well:
 * calls that run at the same time are steps that overlap, and each sees every variable as some
 * step left it. A call is used by one thread at a time. A session starts threads: who has one forks
 * only to run another program. While the first one is made no other thread may change the
 * environment. A thread that makes or runs something may have another size of its OpenMP teams
 * afterwards.
 */
#ifndef TF_TOOLS_H
#define TF_TOOLS_H

#include "tf_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. A library has one as well, and is linked by its name
 * libtf-tools.so.1: functions are added within a version, and none is taken away or changed. */
#define TF_TOOLS_ABI 1

uint32_t tf_abi(void);        /* of the library at hand; 0: it is not installed wholly */
const char *tf_version(void); /* "1.0"; "" likewise */

#define TF_ERROR_BYTES 1024

struct tf_error {
    int32_t code; /* enum tf_code; 0: there was none */
    char text[TF_ERROR_BYTES];
};

typedef struct tf_graph tf_graph;
typedef struct tf_session tf_session;
typedef struct tf_call tf_call;

/* Loads an object with ops of your own (tf_op.h), for all graphs of the process. Before the first
 * of them: later it is TF_USAGE. */
int tf_ops_load(const char *file, struct tf_error *error);

/* Sets where ops print: `print` gets a line at a time, from one thread at a time. NULL: nobody
 * hears it, as at first. */
void tf_on_print(void (*print)(const char *line, void *context), void *context);

/* ---- graphs ---- */

/* A graph, or the parts of one for several devices of this process, as tf-part writes them. */
tf_graph *tf_graph_open(const char *file, struct tf_error *error);
tf_graph *tf_graph_read(const void *bytes, size_t n, struct tf_error *error);
void tf_graph_free(tf_graph *graph);

/* ---- sessions: a graph with the values of its variables ---- */

struct tf_session_options {
    uint32_t bytes;        /* sizeof (struct tf_session_options) */
    int32_t threads;       /* to compute with; 0: as many as cores */
    int32_t deterministic; /* not 0: the same bits whatever the number of threads */
    uint64_t seed;         /* of the random ops */
    int32_t exact;         /* not 0: no element depends on what it does not see, as with Winograd */
};

/* Options NULL: all are 0. */
tf_session *tf_session_new(tf_graph *graph, const struct tf_session_options *options,
                           struct tf_error *error);
void tf_session_free(tf_session *session);

/* Gives the variables their first values: runs the entry init of the graph, if it has one. */
int tf_session_init(tf_session *session, struct tf_error *error);

/* Writes the variables to a file, which appears whole or not at all (but what is no regular file,
 * as a pipe, is written to where it is), and reads them back, wholly or not at all: what tf-exec
 * --save and --restore write and read. While other threads run steps that change variables, what is
 * saved is of no single step. */
int tf_session_save(tf_session *session, const char *file, struct tf_error *error);
int tf_session_restore(tf_session *session, const char *file, struct tf_error *error);

/* The number of the last step: one for each tf_call_run since the beginning, or since the step that
 * was restored. */
int64_t tf_session_step(const tf_session *session);

/* ---- calls: what a step is fed, what it runs, what it gives ---- */

/* A value: elements in row-major order, in the host's memory. */
struct tf_tensor {
    int32_t type; /* enum tf_type */
    struct tf_shape shape;
    const void *data; /* aligned as its elements are; NULL for strings */
    size_t bytes;
};

/* Prepares steps. Each argument is a list of names, separated by commas, or NULL: tensors to feed,
 * in the order of tf_call_feed; tensors to fetch, in that of tf_call_fetch, behind which come those
 * that an entry fetches; entries or nodes to run. TF_NOINPUT names what must be fed besides. */
tf_call *tf_call_prepare(tf_session *session, const char *feeds, const char *fetches,
                         const char *targets, struct tf_error *error);
void tf_call_free(tf_call *call);

/* Feeds i-th of the tensors to feed, from the next run on. The elements are borrowed: they must
 * stay until something else is fed, or the call is freed, and not change while it runs. */
int tf_call_feed(tf_call *call, int i, const struct tf_tensor *value, struct tf_error *error);

/* The same with texts, which are copied; lengths NULL: they end in NUL. */
int tf_call_feed_strings(tf_call *call, int i, const struct tf_shape *shape,
                         const char *const *texts, const size_t *lengths, struct tf_error *error);

/* Runs a step with what is fed. */
int tf_call_run(tf_call *call, struct tf_error *error);

/* The number of tensors that are fetched, and the name of one. */
int tf_call_fetches(const tf_call *call);
const char *tf_call_fetch_name(const tf_call *call, int i);

/* Returns a result of the last run; the elements live until the next run, or until the call is
 * freed. */
int tf_call_fetch(const tf_call *call, int i, struct tf_tensor *value, struct tf_error *error);

/* An element of strings, which does not end in NUL; NULL: there is none. */
const char *tf_call_fetch_string(const tf_call *call, int i, int64_t element, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
