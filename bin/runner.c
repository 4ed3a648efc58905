/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/runner.h"

#include <inttypes.h>

#include "base/memory.h"
#include "bin/cluster_options.h"
#include "checkpoint/variables/files.h"
#include "cli/parent_pipe.h"
#include "cli/record_file.h"
#include "exec/state/saver.h"
#include "graph/holders.h"
#include "graph/task.h"
#include "ops/ops.h"

#define IDLE_SECONDS 1.0 /* of a wait for feeds, after which the next may be far off */

/* The source of the variables' first values. */
struct runner_origin {
    struct stream_reader *reader; /* of --restore; NULL: none */
    bool is_restored;             /* variables have their values, of step saving->resumed */
};

struct runner *runner_new(const struct runner_options *options)
{
    struct runner *r = mem_alloc(sizeof *r);
    *r = (struct runner){.options = *options, .first = INT64_MAX};
    r->worker = cluster_options.task ? mem_alloc(sizeof *r->worker) : NULL;
    return r;
}

bool runner_has_all_variables(const struct runner *r)
{
    struct error ignored = ERROR_INIT;
    char own[DEVICE_WORD_BYTES];
    int index;
    return !r->worker || (!task_parse(cluster_options.task, own, &index, &ignored) &&
                          !holders_find_elsewhere(r->options.joined->graph, own, index));
}

/* Gives the driver its session, and `saving` its variables. Parts of a partitioned graph run
 * together, each on its device. */
static int open_alone(struct runner *r, struct error *err)
{
    struct device_set *devices = &r->devices;
    struct driver *driver = r->options.driver;
    struct saving *saving = r->options.saving;
    const struct stream_graph *joined = r->options.joined;
    if (device_set_open(devices, joined->graph, joined->is_cut, &r->options.device, err))
        return joined->is_cut ? error_prefix(err, "%s: ", driver->name) : err->code;
    driver->device = devices->devices.items[0];
    struct session_options session = {.plan = {.kernels = ops_kernels(),
                                               .device = driver->device,
                                               .check_numerics = r->options.check,
                                               .no_layouts = r->options.check,
                                               .without = r->options.without,
                                               .step = &driver->at_hand},
                                      .devices = devices->devices.items,
                                      .n_devices = joined->is_cut ? (int)devices->devices.n : 0};
    driver->session = session_new(joined->graph, &session);
    driver->at_hand.seed = r->options.seed;
    saving->variables = session_variables(driver->session);
    saving->device = driver->device;
    variable_store_set_files(saving->variables, checkpoint_files(saving->producer));
    return 0;
}

static bool ends_wait(void *context)
{
    const struct runner *r = context;
    return worker_ends_wait(r->worker, r->options.driver);
}

/* Between two steps: lets others read the variables, if they ask to. */
static void let_read(struct runner *r)
{
    if (r->shard && shard_is_asked(r->shard) && saving_collect(r->options.saving))
        shard_let_read(r->shard, r->options.driver->step);
}

/* Where workers have parts of variables, these are whole only after a step of all. */
static int waits_for_feeds(void *context, double seconds, struct error *err)
{
    struct runner *r = context;
    bool was_idle = r->waited >= IDLE_SECONDS && r->waited <= seconds;
    r->waited = seconds;
    if (!runner_saves_together(r) && runner_is_settled(r))
        let_read(r);
    return was_idle || seconds < IDLE_SECONDS
               ? 0
               : worker_moment(r->worker, r->options.driver, MOMENT_IDLE, err);
}

static void answers(void *context, struct conns *conns)
{
    struct runner *r = context;
    const struct saving *saving = r->options.saving;
    const struct shard_options options = {.conns = conns,
                                          .task = r->worker->member.task,
                                          .variables = r->worker->variables,
                                          .is_worker = true,
                                          .save_folder =
                                              saving->to_store ? saving->options->path : NULL,
                                          .producer = saving->producer,
                                          .run = saving->writer.run};
    r->shard = shard_new(&options);
}

static int open_worker(struct runner *r, struct error *err)
{
    struct worker *worker = r->worker;
    struct worker_options options = {.member = cluster_member(r->options.tool),
                                     .graph = r->options.joined->graph,
                                     .plan = {.kernels = ops_kernels(),
                                              .check_numerics = r->options.check,
                                              .no_layouts = r->options.check,
                                              .without = r->options.without},
                                     .device = r->options.device,
                                     .context = r};
    if (!r->options.plan_only && runner_has_all_variables(r))
        options.answers = answers;
    mem_share_heap();
    int code = worker_open(worker, &options, err);
    if (code)
        return code;
    worker_bind_driver(worker, r->options.driver);
    r->options.driver->at_hand.seed = r->options.seed;
    r->options.saving->variables = worker->variables;
    r->options.saving->device = worker_device(worker);
    char *claims = member_claims(&worker->member);
    r->options.saving->claims = claims ? arena_strdup(&r->options.saving->arena, claims) : NULL;
    mem_free(claims);
    if (worker->collective)
        tool_read_on(ends_wait, r); /* the others may wait for the step that needs the feed */
    if (worker->asked || r->shard)
        tool_when_idle(waits_for_feeds, r);
    return 0;
}

int runner_open(struct runner *r, struct error *err)
{
    struct saving *saving = r->options.saving;
    if (!r->options.plan_only && (saving_check(saving, runner_has_all_variables(r), err) ||
                                  (saving->options->path && !saving->to_store &&
                                   record_file_probe(saving->options->path, err))))
        return err->code;
    return (r->worker ? open_worker : open_alone)(r, err);
}

void runner_close(struct runner *r)
{
    if (!r)
        return;
    shard_free(r->shard);
    if (r->worker)
        worker_close(r->worker);
    else
        session_free(r->options.driver->session);
    device_set_release(&r->devices);
    mem_free(r->worker);
    mem_free(r);
}

bool runner_saves(const struct runner *r)
{
    return !r->worker || worker_writes(r->worker);
}

/* ---- starting ---- */

/* Gives variables their values; skips the feeds of steps that already count. */
static int start_alone(struct runner *r, const struct runner_origin *origin, struct error *err)
{
    struct saving *saving = r->options.saving;
    int64_t step = 0;
    if (origin->reader)
        return variables_restore(saving->variables, r->options.joined->graph, &r->devices,
                                 origin->reader, &step, err);
    if (!origin->is_restored) {
        /* An entry that only reads variables needs their trained values, which must come from
         * somewhere. */
        struct driver *driver = r->options.driver;
        int variable = request_only_reads(&driver->request, driver->feeds.edges.items,
                                          (int)driver->feeds.edges.n);
        if (variable >= 0)
            tool_say(r->options.tool,
                     "%s: %s %s reads '%s' as it is initialized; --restore reads what was trained",
                     driver->name, driver->option, driver->what,
                     graph_node(driver->graph, variable)->name);
        return driver_initialize(driver, err);
    }
    return saving->resumed ? saving_pass_over(saving, saving->resumed, err) : 0;
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

static int start_worker(struct runner *r, const struct runner_origin *begin, struct error *err)
{
    int64_t counted;
    struct saving *saving = r->options.saving;
    struct worker_origin origin = {
        .reader = begin->reader, .is_restored = begin->is_restored, .step = saving->resumed};
    int code = saving_newest(saving, &origin.seen, err);
    if (!code)
        code = worker_start(r->worker, r->options.driver, &origin, &counted, err);
    if (r->shard)
        shard_go_on_with(r->shard, &saving->writer);
    if (!code && counted)
        code = rejoin(r, counted, err);
    return code ? code : worker_moment(r->worker, r->options.driver, MOMENT_STARTED, err);
}

/* Gives the variables their first values. */
static int begin(struct runner *r, struct error *err)
{
    struct runner_origin origin = {.reader = NULL};
    struct saving *saving = r->options.saving;
    bool reads = runner_saves(r);
    saving->takes_over = !reads;
    int code = reads ? saving_restore(saving, &origin.is_restored, err) : 0;
    if (code)
        return code;
    if (saving->options->partial && !origin.is_restored)
        return driver_initialize(r->options.driver, err) ? err->code
                                                         : saving_restore_partial(saving, err);
    bool from_reader = reads && saving->options->restore && !origin.is_restored;
    if (from_reader && saving_open_reader(saving, &origin.reader, err))
        return err->code;
    bool is_file = from_reader && !origin.reader;
    if (is_file && tool_open_reader(r->options.tool, saving->options->restore, &origin.reader, err))
        return err->code;
    code = (r->worker ? start_worker : start_alone)(r, &origin, err);
    if (is_file)
        tool_close_reader(origin.reader);
    else if (from_reader)
        stream_reader_free(origin.reader);
    return code;
}

int runner_start(struct runner *r, struct error *err)
{
    int code = begin(r, err);
    if (!code)
        code = (runner_saves(r) ? saving_open : saving_await_turn)(r->options.saving, err);
    r->first = code ? INT64_MAX : r->options.driver->step;
    return code;
}

/* ---- running ---- */

bool runner_goes_together(const struct runner *r)
{
    return r->worker && r->worker->collective;
}

bool runner_begins(struct runner *r)
{
    return r->worker ? worker_begins(r->worker, r->options.driver, tool_signal(), r->ends)
                     : !runner_is_over(r);
}

bool runner_is_over(struct runner *r)
{
    /* workers that go on together end a step later, with all */
    bool asked = tool_signal() || (r->ends && !runner_goes_together(r));
    return r->worker ? worker_is_over(r->worker, r->options.driver, asked) : asked;
}

bool runner_saves_together(const struct runner *r)
{
    return r->worker && worker_shares_state(r->worker);
}

int runner_stepped(struct runner *r, bool is_last, struct error *err)
{
    enum worker_moment moment = is_last ? MOMENT_LAST : MOMENT_STEPPED;
    return r->worker ? worker_moment(r->worker, r->options.driver, moment, err) : 0;
}

bool runner_is_settled(const struct runner *r)
{
    return !r->worker || worker_is_settled(r->worker, r->options.driver->step);
}

int64_t runner_meets_at(const struct runner *r)
{
    int64_t step = r->options.driver->step;
    return r->worker ? worker_average_step(r->worker, step) : step;
}

int runner_step(struct runner *r, struct error *err)
{
    if (!runner_is_settled(r))
        return runner_saves(r) ? saving_step(r->options.saving, false, err) : 0;
    if (runner_saves_together(r)) {
        bool due, is_read, again = true;
        while (again) {
            due = false;
            is_read = runner_saves(r) && r->shard && shard_is_asked(r->shard);
            if ((runner_saves(r) && saving_is_due(r->options.saving, &due, err)) ||
                worker_gather_state(r->worker, runner_meets_at(r), due || is_read, &again, err))
                return err->code;
        }
        if (is_read)
            let_read(r);
        if (!due && !is_read)
            return 0;
        int code = saving_step(r->options.saving, true, err);
        return code ? code : worker_cut_parts(r->worker, err);
    }
    let_read(r);
    return runner_saves(r) ? saving_step(r->options.saving, true, err) : 0;
}

bool runner_was_stopped(struct runner *r)
{
    r->was_stopped = !tool_signal() && !r->ends && runner_is_over(r);
    return r->was_stopped;
}

bool runner_has_run(const struct runner *r)
{
    return r->options.driver->step > r->first;
}

/* ---- ending ---- */

/* Returns whether there is something to save. A process that was asked to end before its first step
 * has nothing: what it started from must neither be saved as another step nor replace a whole file.
 */
static bool has_to_save(const struct runner *r)
{
    bool asked = tool_signal() || r->was_stopped;
    return r->options.saving->options->path && (runner_has_run(r) || !asked) && runner_saves(r);
}

static int save(struct runner *r, bool has_values, struct error *err)
{
    struct record_file file;
    struct saving *saving = r->options.saving;
    const struct driver *driver = r->options.driver;
    error_clear(err); /* to be asked to end in a wait is no failure */
    if (!has_values || !has_to_save(r) || saving_open(saving, err))
        return err->code;
    if (saving->autosave)
        return saving_finish(saving, driver->step, err)
                   ? error_append(err, "; step %" PRId64 " is not saved", driver->step)
                   : 0;
    int code = record_file_open(&file, r->options.tool, saving->options->path, -1, err);
    if (code)
        return code;
    if (r->worker)
        code = worker_save(r->worker, driver->step, file.writer, err);
    else if (!(code = variables_check_all(saving->variables, driver->graph, err)))
        code = variables_save(saving->variables, driver->step, file.writer, err);
    if (!code)
        return record_file_commit(&file, err);
    record_file_discard(&file);
    return code;
}

/* Leaves, also when asked to end, so that the others go on without this worker. It does not leave
 * if all end because the job's supervisor died: steps of the last few would then be saved as if all
 * had taken part. */
static int leave(struct runner *r, int code, struct error *err)
{
    struct worker *worker = r->worker;
    struct error left = ERROR_INIT;
    if (!worker)
        return code;
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

int runner_end(struct runner *r, bool has_values, int code, struct error *err)
{
    bool asked = code;
    if (r->shard)
        shard_steps_end(r->shard);
    if (has_values && runner_saves_together(r) &&
        worker_gather_last(r->worker, runner_meets_at(r), has_to_save(r), err))
        return leave(r, err->code, err);
    if (runner_goes_together(r))
        return leave(r, save(r, has_values, err), err);
    code = leave(r, code, err);
    return !code || asked ? save(r, has_values, err) : code;
}
