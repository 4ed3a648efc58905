/* SPDX-License-Identifier: Apache-2.0
 *
 * Before a worker's first step: variables get their values, and it joins.
 */
#include <stdio.h>
#include <time.h>

#include "base/time.h"
#include "graph/worker_attr.h"
#include "transport/session/worker_private.h"

/* Reads the one truth value that the entry ready fetches. */
static int is_ready(struct driver *driver, bool *ready, struct error *err)
{
    struct tensor value = TENSOR_INIT;
    *ready = false;
    if (!graph_entry(driver->graph, "ready"))
        return 0;
    int code = driver_run_entry(driver, "ready", 0, &value, 1, err);
    if (!code && (value.type != BOOL || shape_count(&value.shape) != 1))
        code = error_set(err, ERR_DATA, "%s: entry 'ready' is no truth value", driver->name);
    if (!code)
        *ready = *(const bool *)value.data;
    tensor_release(&value);
    return code;
}

/* One variable that has no value, for messages. */
static const struct node *first_without_value(struct worker *worker)
{
    const struct graph *graph = worker->options.graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        struct saved_variable saved = {.node = graph_node(graph, (int)i)};
        struct error ignored = ERROR_INIT;
        bool lacks = node_is(saved.node, "Variable") && !worker_take(worker, &saved, &ignored) &&
                     saved.value.type == DTYPE_INVALID;
        tensor_release(&saved.value);
        if (lacks)
            return saved.node;
    }
    return NULL;
}

static int wait_until_ready(struct worker *worker, struct driver *driver, struct error *err)
{
    const struct member_options *options = &worker->member.options;
    double seconds = options->timeout > 0 ? options->timeout : 30, start = time_now(), told = start;
    bool ready = !graph_entry(driver->graph, "ready");
    int code = 0;
    while (!ready && !(code = is_ready(driver, &ready, err)) && !ready) {
        double left = start + seconds - time_now();
        if (options->given_up && options->given_up(options->context))
            return error_set(err, ERR_CANCELLED, "%s: given up before the variables were there",
                             worker->member.task);
        if (left <= 0) {
            const struct node *node = first_without_value(worker);
            return error_set(err, ERR_UNAVAILABLE, "%s: '%s' was not initialized by %s:0 in %.0f s",
                             worker->member.task, node ? node->name : "?", worker->member.job_name,
                             seconds);
        }
        if (options->waiting && time_now() - told >= 1) {
            char text[256];
            snprintf(text, sizeof text, "waiting for %s:0 to initialize the variables, %.0f s left",
                     worker->member.job_name, left);
            options->waiting(options->context, text);
            told = time_now();
        }
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    }
    return code;
}

static int initialize(struct worker *worker, struct driver *driver,
                      const struct worker_origin *origin, int64_t *counted, struct error *err)
{
    bool ready;
    if (worker->collective)
        return worker_start_collective(worker, driver, origin, counted, err);
    if (worker->member.index)
        return wait_until_ready(worker, driver, err);
    *counted = origin->step;
    if (origin->reader && worker_restore(worker, origin->reader, err))
        return err->code;
    if (origin->is_restored || origin->reader)
        return worker_take_states(worker, err);
    int code = is_ready(driver, &ready, err);
    return code || ready ? code : driver_initialize(driver, err);
}

/* The second tensor that join fetches is how many pushes of this worker count. */
static int join(struct driver *driver, int64_t *counted, struct error *err)
{
    struct tensor values[2] = {TENSOR_INIT, TENSOR_INIT};
    if (!graph_entry(driver->graph, "join"))
        return 0;
    int code = driver_run_entry(driver, "join", 0, values, 2, err);
    if (!code && (values[1].type != INT64 || shape_count(&values[1].shape) != 1))
        code = error_set(err, ERR_DATA, "%s: entry 'join' does not fetch version and count",
                         driver->name);
    if (!code)
        *counted = *(const int64_t *)values[1].data;
    tensor_release(&values[0]);
    tensor_release(&values[1]);
    return code;
}

int worker_start(struct worker *worker, struct driver *driver, const struct worker_origin *origin,
                 int64_t *counted, struct error *err)
{
    *counted = 0;
    int code = initialize(worker, driver, origin, counted, err);
    if (!code)
        code = worker_ask_for_updates(worker, err);
    if (!code)
        code = join(driver, counted, err);
    if (!code && graph_entry(driver->graph, WORKER_ANCHOR))
        code = driver_run_entry(driver, WORKER_ANCHOR, 0, NULL, 0, err);
    worker->averaged = *counted;
    if (!code)
        worker_react(&worker->state, WORKER_STARTED);
    worker_tell_journal(worker);
    conns_trim(worker->member.conns); /* initial values came through more memory than steps use */
    return code;
}
