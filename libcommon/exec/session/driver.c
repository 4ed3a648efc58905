/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/driver.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/plan/plan_io.h"

#include "exec/session/feeding.h"

void driver_init(struct driver *driver, const struct graph *graph, const char *name)
{
    driver->graph = driver->request.graph = driver->feeds.graph = graph;
    driver->name = name;
}

void driver_release(struct driver *driver)
{
    feed_ahead_free(driver->ahead);
    staged_free(driver->staged);
    stage_free(driver->stage);
    request_release(&driver->request);
    feeds_release(&driver->feeds);
    mem_free(driver->views);
    vec_release(&driver->needs);
    record_release(&driver->record);
}

int driver_ready(struct driver *driver, struct error *err)
{
    if (!driver->request.fetches.n && !driver->request.targets.n)
        return error_set(err, ERR_USAGE,
                         "nothing to do: name an entry with --run or a tensor with --fetch");
    request_needs(&driver->request, driver->feeds.edges.items, (int)driver->feeds.edges.n,
                  &driver->needs);
    return 0;
}

static int run_call(struct driver *driver, const struct session_call *call, struct tensor *fetches,
                    struct error *err)
{
    struct step *step = &driver->at_hand;
    return driver->run ? driver->run(driver->run_context, call, step, fetches, err)
                       : session_run(driver->session, call, step, fetches, err);
}

/* Makes the call without feeds, or with those given. */
static struct session_call make_call(const struct request *request, const struct feeds *feeds)
{
    return (struct session_call){.feeds = feeds ? feeds->edges.items : NULL,
                                 .feed_values = feeds ? feeds->values.items : NULL,
                                 .n_feeds = feeds ? (int)feeds->edges.n : 0,
                                 .fetches = request->fetches.items,
                                 .n_fetches = (int)request->fetches.n,
                                 .targets = request->targets.items,
                                 .n_targets = (int)request->targets.n};
}

int driver_run_entry(struct driver *driver, const char *entry, int64_t number,
                     struct tensor *fetches, int n_max, struct error *err)
{
    struct request request = {.graph = driver->graph};
    int code = request_run(&request, entry, err);
    if (!code && (int)request.fetches.n > n_max)
        code = error_set(err, ERR_DATA, "entry '%s' fetches %zu tensors", entry, request.fetches.n);
    const struct session_call call = make_call(&request, NULL);
    driver->at_hand.number = number;
    driver->at_hand.seed = driver->seed;
    if (!code)
        code = run_call(driver, &call, fetches, err);
    request_release(&request);
    return code ? error_prefix(err, "%s: %s: ", driver->name, entry) : 0;
}

int driver_initialize(struct driver *driver, struct error *err)
{
    return graph_entry(driver->graph, "init") ? driver_run_entry(driver, "init", 0, NULL, 0, err)
                                              : 0;
}

/* ---- running ---- */

static bool is_written(const struct driver *driver)
{
    int64_t every = driver->write_every > 1 ? driver->write_every : 1;
    return driver->request.fetches.n && driver->writer && driver->step % every == 0;
}

#define FLUSH_SECONDS 0.2 /* who reads what is fetched waits no longer, if steps take long */

static const struct request_view *views_of(struct driver *driver)
{
    if (!driver->views)
        driver->views = request_views(&driver->request);
    return driver->views;
}

static int64_t version_now(const struct driver *driver)
{
    return driver->version && is_written(driver) ? driver->version(driver->run_context) : -1;
}

/* `before`: the version before the step. */
static int write_fetches(struct driver *driver, struct tensor *values, int64_t before,
                         struct error *err)
{
    int n_kept = (int)driver->feeds.kept.n, n = n_kept + (int)driver->request.fetches.n;
    int64_t after = version_now(driver);
    struct named_tensor *named = mem_array((size_t)n + 1, sizeof *named);
    int64_t *versions = mem_array((size_t)n + 1, sizeof *versions);
    for (int i = 0; i < n_kept; i++) {
        named[i] = driver->feeds.kept.items[i];
        versions[i] = -1;
    }
    for (int i = n_kept; i < n; i++) {
        int at = i - n_kept;
        const struct request_view *view = driver->version ? &views_of(driver)[at] : NULL;
        named[i] = (struct named_tensor){driver->request.names.items[at], values[at]};
        versions[i] = !view || view->of_own ? -1 : view->before ? before : after;
    }
    int code = stream_write_fetches(driver->writer, driver->step, versions, named, n, err);
    mem_free(versions);
    mem_free(named);
    double now = time_now();
    if (code || (!driver->version && now - driver->flushed < FLUSH_SECONDS))
        return code; /* at once where others count versions: they wait for what was measured of one
                      */
    driver->flushed = now;
    return stream_flush(driver->writer, err);
}

void driver_begin_staged(struct driver *driver)
{
    if (!driver->stage) {
        driver->stage = stage_new(driver->trace);
        driver->staged = staged_new(driver->stage);
    }
    staged_begin(driver->staged,
                 &(struct staged_feeds){driver->feeds.edges.items, driver->feeds.values.items,
                                        (int)driver->feeds.edges.n});
}

int driver_run_step(struct driver *driver, struct error *err)
{
    driver->at_hand.number = ++driver->step;
    driver->at_hand.seed = driver->seed;
    driver->at_hand.trace = driver->trace;
    struct session_call call = make_call(&driver->request, &driver->feeds);
    struct tensor *values = mem_array(driver->request.fetches.n + 1, sizeof *values);
    int64_t version = version_now(driver);
    int64_t start = driver->trace ? time_now_ns() : 0;
    driver_begin_staged(driver);
    driver->at_hand.staged = driver->staged;
    int code = run_call(driver, &call, values, err);
    driver->at_hand.staged = NULL;
    staged_end(driver->staged);
    if (code)
        error_prefix(err, "%s: step %" PRId64 ": ", driver->name, driver->step);
    if (!code && driver->trace) {
        trace_step(driver->trace, driver->step, start, time_now_ns());
        code = trace_flush(driver->trace, driver->trace_writer, err);
    }
    if (!code && is_written(driver))
        code = write_fetches(driver, values, version, err);
    for (size_t i = 0; i < driver->request.fetches.n; i++) {
        if (!code && driver->fetched)
            driver->fetched(driver->fetched_context, driver->request.names.items[i], &values[i],
                            &views_of(driver)[i]);
        tensor_release(&values[i]);
    }
    mem_free(values);
    return code;
}

int driver_write_plan(struct driver *driver, struct error *err)
{
    struct session_call call = make_call(&driver->request, &driver->feeds);
    struct plan *const *plans;
    int n, code = session_plans(driver->session, &call, &plans, &n, err);
    if (code)
        return error_prefix(err, "%s: ", driver->name);
    for (int i = 0; !code && i < n; i++)
        code = plan_write(driver->writer, plans[i], driver->what, err);
    return code;
}
