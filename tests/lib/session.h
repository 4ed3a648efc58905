/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a session over a graph in text form, and numbers out of it.
 */
#ifndef TF_TESTS_LIB_SESSION_H
#define TF_TESTS_LIB_SESSION_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/session/session.h"
#include "graph/text.h"
#include "lib/test_device.h"
#include "ops/ops.h"

struct fixture {
    struct graph *graph;
    struct session *session;
    struct error err;
};

static inline struct device *fixture_device(void)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    if (!device) {
        device = test_device_open(2, &err);
        if (!device && test_device_lacks(&err))
            skip();
        if (!device)
            fail_msg("%s", err.text);
    }
    return device;
}

/* Returns for a loop of n iterations how many to make here: on a card each takes a round trip. */
static inline float fixture_iterations(int n)
{
    return (float)(fixture_device()->is_host ? n : n / 100);
}

static inline void fixture_open(struct fixture *f, const char *text, bool dynamic)
{
    memset(f, 0, sizeof *f);
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &f->graph, &f->err))
        fail_msg("%s", f->err.text);
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE}};
    f->session = session_new(f->graph, &options);
}

static inline void fixture_close(struct fixture *f)
{
    session_free(f->session);
    graph_free(f->graph);
}

/* Runs a step: `fetch` or `^target`, with at most one feed. Returns the code. */
static inline int fixture_run(struct fixture *f, const char *what, const char *feed,
                              const struct tensor *value, struct tensor *result)
{
    struct edge fetch, feed_edge;
    int target;
    struct step step = {.number = 1};
    if (graph_parse_edge(f->graph, what, &fetch, &f->err) ||
        (feed && graph_parse_edge(f->graph, feed, &feed_edge, &f->err)))
        fail_msg("%s", f->err.text);
    bool run_only = fetch.slot == CONTROL_SLOT;
    target = fetch.node;
    struct plan_request call = {.feeds = &feed_edge,
                                .feed_values = value,
                                .n_feeds = feed ? 1 : 0,
                                .fetches = &fetch,
                                .n_fetches = run_only ? 0 : 1,
                                .targets = &target,
                                .n_targets = run_only ? 1 : 0};
    struct tensor none;
    return session_run(f->session, &call, &step, result ? result : &none, &f->err);
}

static inline void fixture_do(struct fixture *f, const char *target)
{
    if (fixture_run(f, target, NULL, NULL, NULL))
        fail_msg("%s", f->err.text);
}

/* Returns the first element fetched; `x` is fed to node x unless it is NaN. */
static inline double fixture_get(struct fixture *f, const char *fetch, double x)
{
    struct tensor result, value;
    float element = (float)x;
    bool fed = x == x;
    value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &element);
    if (fixture_run(f, fetch, fed ? "x" : NULL, fed ? &value : NULL, &result))
        fail_msg("%s", f->err.text);
    double number = tensor_get_float64(&result, 0);
    tensor_release(&result);
    return number;
}

/* Compares bits, except those of NaNs: which of two NaNs a sum has is the compiler's choice. */
static inline bool equal_but_nan(const struct tensor *a, const struct tensor *b)
{
    size_t bytes = dtype_bytes(a->type);
    for (int64_t i = 0; i < tensor_count(a); i++) {
        size_t at = (size_t)i * bytes;
        bool both_nan = isnan(tensor_get_float64(a, i)) && isnan(tensor_get_float64(b, i));
        if (!both_nan && memcmp((char *)a->data + at, (char *)b->data + at, bytes) != 0)
            return false;
    }
    return true;
}

#endif
