/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs as a worker: the task of a cluster that --task names, which drives the other tasks.
 */
#include <inttypes.h>

#include "base/memory.h"
#include "bin/cluster_options.h"
#include "bin/runner.h"
#include "cli/parent_pipe.h"
#include "ops/ops.h"

static bool ends_wait(void *context)
{
    const struct runner *r = context;
    return worker_ends_wait(r->worker, r->options.driver);
}

static int waits_for_feeds(void *context, struct error *err)
{
    const struct runner *r = context;
    return worker_moment(r->worker, r->options.driver, MOMENT_IDLE, err);
}

int runner_open_worker(struct runner *r, struct error *err)
{
    struct worker *worker = r->worker;
    struct worker_options options = {.member = cluster_member(r->options.tool),
                                     .graph = r->options.joined->graph,
                                     .plan = {.kernels = ops_kernels(),
                                              .check_numerics = r->options.check,
                                              .no_layouts = r->options.check,
                                              .without = r->options.without},
                                     .device = r->options.device};
    mem_share_heap();
    int code = worker_open(worker, &options, err);
    if (code)
        return code;
    worker_bind_driver(worker, r->options.driver);
    r->options.driver->at_hand.seed = r->options.seed;
    r->options.saving->variables = worker_variables(worker);
    r->options.saving->device = worker_device(worker);
    char *claims = member_claims(&worker->member);
    r->options.saving->claims = claims ? arena_strdup(&r->options.saving->arena, claims) : NULL;
    mem_free(claims);
    if (worker->collective)
        tool_read_on(ends_wait, r); /* the others may wait for the step that needs the feed */
    if (worker->asked)
        tool_when_idle(waits_for_feeds, r);
    return 0;
}

/* Skips the feeds of steps that were counted before this worker was started again. If all workers
 * take their steps together, this one's feeds may end before that; it then leaves. */
static int rejoin(const struct runner *r, int64_t counted, struct error *err)
{
    bool together = r->worker->collective;
    struct driver *driver = r->options.driver;
    int code = driver_pass_over(driver, counted, err);
    if (code)
        return code;
    if (together && driver->step < counted)
        tool_say(r->options.tool,
                 "%s: goes on after step %" PRId64 "; its feeds end after step %" PRId64,
                 driver->name, counted, driver->step);
    else
        tool_say(r->options.tool, "%s: joined again; %" PRId64 " feed records passed over",
                 driver->name, driver->step);
    if (together)
        driver->step = r->options.saving->resumed = counted;
    return 0;
}

int runner_start_worker(struct runner *r, const struct runner_origin *begin, struct error *err)
{
    int64_t counted;
    struct saving *saving = r->options.saving;
    struct worker_origin origin = {
        .reader = begin->reader, .is_restored = begin->is_restored, .step = saving->resumed};
    int code = saving_newest(saving, &origin.seen, err);
    if (!code)
        code = worker_start(r->worker, r->options.driver, &origin, &counted, err);
    if (!code && counted)
        code = rejoin(r, counted, err);
    return code ? code : worker_moment(r->worker, r->options.driver, MOMENT_STARTED, err);
}

/* Leaves, also when asked to end, so that the others go on without this worker. It does not leave
 * if all end because the job's supervisor died: steps of the last few would then be saved as if all
 * had taken part. */
int runner_leave_worker(struct runner *r, int code, struct error *err)
{
    struct worker *worker = r->worker;
    struct error left = ERROR_INIT;
    if (parent_pipe_has_ended() && !worker->collective)
        return err->code;
    /* A worker that was asked to end repeats its unpushed steps when it resumes. */
    int64_t n = 0, every;
    struct error ignored = ERROR_INIT;
    if (!code && !tool_signal() && !r->was_stopped &&
        !worker_count_unpushed(worker, &n, &every, &ignored) && n)
        tool_say(r->options.tool,
                 "%s: not pushed: %" PRId64 " of its steps, the last, as %" PRId64
                 " make a push: they count for nothing",
                 r->options.driver->name, n, every);
    if (worker_leave(worker, r->options.driver, &left) && !code)
        *err = left;
    return err->code;
}
