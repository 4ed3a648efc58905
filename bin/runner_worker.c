/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs as a worker: the task of a cluster that --task names, which drives the other tasks.
 */
#include <inttypes.h>
#include <string.h>

#include "base/container_of.h"
#include "base/memory.h"
#include "bin/cluster_options.h"
#include "bin/runner.h"
#include "cli/parent_pipe.h"
#include "graph/holders.h"
#include "graph/task.h"
#include "ops/ops.h"
#include "transport/session/worker.h"

struct worker_runner {
    struct runner runner;
    struct worker worker;
};

static struct worker *worker_of(const struct runner *r)
{
    return &CONTAINER_OF(r, struct worker_runner, runner)->worker;
}

static bool worker_has_all(const struct runner *r)
{
    struct error ignored = ERROR_INIT;
    char own[DEVICE_WORD_BYTES];
    int index;
    return !task_parse(cluster_options.task, own, &index, &ignored) &&
           !holders_find_elsewhere(r->options.joined->graph, own, index);
}

static bool ends_wait(void *context)
{
    const struct runner *r = context;
    return worker_ends_wait(worker_of(r), r->options.driver);
}

static int stepped(struct runner *r, bool is_last, struct error *err)
{
    return worker_moment(worker_of(r), r->options.driver, is_last ? MOMENT_LAST : MOMENT_STEPPED,
                         err);
}

static bool is_settled(const struct runner *r)
{
    return worker_is_settled(worker_of(r), r->options.driver->step);
}

static int64_t meets_at(const struct runner *r)
{
    return worker_average_step(worker_of(r), r->options.driver->step);
}

static int waits_for_feeds(void *context, struct error *err)
{
    const struct runner *r = context;
    return worker_moment(worker_of(r), r->options.driver, MOMENT_IDLE, err);
}

static int open_worker(struct runner *r, struct error *err)
{
    struct worker *worker = worker_of(r);
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
    r->options.driver->seed = r->options.seed;
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
    bool together = worker_of(r)->collective;
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

static int start_worker(struct runner *r, const struct runner_origin *begin, struct error *err)
{
    int64_t counted;
    struct saving *saving = r->options.saving;
    struct worker_origin origin = {
        .reader = begin->reader, .is_restored = begin->is_restored, .step = saving->resumed};
    int code = saving_newest(saving, &origin.seen, err);
    if (!code)
        code = worker_start(worker_of(r), r->options.driver, &origin, &counted, err);
    if (!code && counted)
        code = rejoin(r, counted, err);
    return code ? code : worker_moment(worker_of(r), r->options.driver, MOMENT_STARTED, err);
}

static bool worker_may_begin(struct runner *r)
{
    return worker_begins(worker_of(r), r->options.driver, tool_signal(), r->ends);
}

static bool job_is_over(struct runner *r)
{
    bool ends = r->ends && !worker_of(r)->collective; /* else it ends a step later, with all */
    return worker_is_over(worker_of(r), r->options.driver, tool_signal() || ends);
}

static bool goes_together(const struct runner *r)
{
    return worker_of(r)->collective;
}

static int gather_rows(struct runner *r, const struct collective_key *key,
                       const struct tensor *rows, bool *met, struct tensor *all, struct error *err)
{
    return worker_exchange(worker_of(r), (struct collective_call){.key = *key}, rows, met, all,
                           err);
}

static bool shares_state(const struct runner *r)
{
    return worker_shares_state(worker_of(r));
}

static int gather_state(struct runner *r, bool saves, bool *again, struct error *err)
{
    return worker_gather_state(worker_of(r), meets_at(r), saves, again, err);
}

static int gather_last(struct runner *r, bool saves, struct error *err)
{
    return worker_gather_last(worker_of(r), meets_at(r), saves, err);
}

static int saved(struct runner *r, struct error *err)
{
    return worker_cut_parts(worker_of(r), err);
}

static bool saves(const struct runner *r)
{
    return worker_writes(worker_of(r));
}

static int write_all(struct runner *r, struct stream_writer *writer, struct error *err)
{
    return worker_save(worker_of(r), r->options.driver->step, writer, err);
}

/* Leaves, also when asked to end, so that the others go on without this worker. It does not leave
 * if all end because the job's supervisor died: steps of the last few would then be saved as if all
 * had taken part. */
static int leave(struct runner *r, int code, struct error *err)
{
    struct worker *worker = worker_of(r);
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

static void close_worker(struct runner *r)
{
    worker_close(worker_of(r));
    mem_free(CONTAINER_OF(r, struct worker_runner, runner));
}

struct runner *runner_worker_new(const struct runner_options *options)
{
    static const struct runner_kind kind = {.has_all_variables = worker_has_all,
                                            .open = open_worker,
                                            .start = start_worker,
                                            .begins = worker_may_begin,
                                            .goes_together = goes_together,
                                            .gather_rows = gather_rows,
                                            .stepped = stepped,
                                            .is_settled = is_settled,
                                            .meets_at = meets_at,
                                            .is_over = job_is_over,
                                            .saves_together = shares_state,
                                            .gather = gather_state,
                                            .gather_last = gather_last,
                                            .saved = saved,
                                            .saves = saves,
                                            .write = write_all,
                                            .leave = leave,
                                            .close = close_worker};
    struct worker_runner *own = mem_alloc(sizeof *own);
    own->runner = (struct runner){.kind = &kind, .options = *options, .first = INT64_MAX};
    return &own->runner;
}
