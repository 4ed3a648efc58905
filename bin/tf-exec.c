/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-exec: runs steps of a graph. Feeds come from records, files or options, fetches go out as
 * records. Alone, as a task of a cluster that drives the others, or serving other drivers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "bin/cluster_options.h"
#include "bin/ops_option.h"
#include "bin/saving.h"
#include "checkpoint/variables/files.h"
#include "cli/lifeline.h"
#include "cli/progress.h"
#include "cli/record_file.h"
#include "exec/device/device_set.h"
#include "exec/session/driver.h"
#include "exec/state/saver.h"
#include "graph/join.h"
#include "ops/ops.h"
#include "transport/session/worker.h"

#define FETCH_LIMIT_LEAST 4096

static const char *graph_path, *trace_path;
static struct option_list runs, fetches, feed_options;
static int64_t steps = INT64_MIN; /* as many as there are feed records */
static int64_t seed, threads, fetch_every = 1, fetch_limit;
static double grace = 5;
static bool dump_plan, check, deterministic, needs;

static const struct option_row rows[] = {
    {'g', "graph", OPTION_TEXT, &graph_path, "FILE", "the graph, if stdin carries something else"},
    {0, "run", OPTION_LIST, &runs, "ENTRY", "entry points (or nodes) to run in each step"},
    {0, "fetch", OPTION_LIST, &fetches, "NAME", "tensors to write in each step"},
    {0, "fetch-every", OPTION_INT, &fetch_every, "N", "write them after every N steps only"},
    {0, "fetch-limit", OPTION_BYTES, &fetch_limit, "BYTES",
     "begin the file that stdout is anew when it has as many, as 100M; one older is kept"},
    {0, "feed", OPTION_REPEAT, &feed_options, "FILE|NAME=VALUE",
     "feed records, a step each (-: stdin); or one tensor for all steps, a .npy or a literal"},
    {'n', "steps", OPTION_INT, &steps, "N",
     "steps to run (as many as there are feed records, or 1)"},
#include "bin/save_rows.def"
    {0, "seed", OPTION_INT, &seed, "N", "seed of the random ops (0)"},
    {0, "threads", OPTION_INT, &threads, "N", "threads to compute with (as many as cores)"},
    {0, "deterministic", OPTION_FLAG, &deterministic, NULL,
     "the same bits whatever the number of threads"},
    {0, "grace", OPTION_SECONDS, &grace, "TIME",
     "how long a step may go on after SIGINT or SIGTERM before it is cancelled (5s)"},
    {0, "check", OPTION_FLAG, &check, NULL, "stop at the first value that is NaN or infinite"},
    {0, "needs", OPTION_FLAG, &needs, NULL,
     "print the names of what a step is to be fed; run nothing"},
    {0, "dump-plan", OPTION_FLAG, &dump_plan, NULL,
     "write the plan of the first step; run nothing"},
    {0, "trace", OPTION_TEXT, &trace_path, "FILE",
     "write what ran when; a directory: a file of this process in it"},
#include "bin/cluster_rows.def"
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_table table = {
    .tool = "tf-exec",
    .summary = "run steps of a graph",
    .operands = "[serve]",
    .description =
        "Runs a graph: once for each feed record, or N times. The graph is the first record of "
        "stdin unless -g names a file; feed records follow it there, or come from --feed.\n"
        "\n"
        "The entry init runs first, to give the variables their values, unless --restore reads "
        "them; a run that only reads them says so. A step needs what its entries and fetches "
        "depend "
        "on, and only that runs; any tensor of the graph can be fed and fetched. A step may take "
        "its feeds from several records.\n"
        "\n"
        "The parts of a graph that tf-part has cut run together, each on its device of this "
        "process. SIGINT and SIGTERM end the run after the step at hand; --save still writes. A "
        "step that does not end in the time of --grace is cancelled; then nothing is saved, as "
        "half of its changes may have been made.\n"
        "\n"
        "With --task it is that task of the cluster: it runs what is on its own devices and drives "
        "the other tasks, which serve. The first worker gives the variables their values, the "
        "others wait for them. --save gathers, --restore spreads. Workers of a graph that "
        "tf-replicate --mode allreduce made meet and go on together only; the first one restores "
        "for all, also with --resume, and saves; when its data has ended, the next one does.\n"
        "\n"
        "serve: waits for other drivers, and runs what is on the devices of this task.",
    .examples =
        "tf-exec -g m.tfg --run train --feed train.rec --fetch loss --save m.ckpt | tf-show\n"
        "tf-exec -g m.tfg --run eval --feed test.rec --restore m.ckpt | tf-show\n"
        "tf-exec -g m.tfg --fetch y --feed x=x.npy | tf-show --npy - y > y.npy\n"
        "tf-exec -g m.tfg --run train --feed train.rec --dump-plan | tf-show\n"
        "tf-exec -g parts.tfg -c my.cluster --task worker:0 --run train --feed train.rec\n"
        "tf-exec serve -c my.cluster --task worker:1",
    .rows = rows,
    .operands_max = 1,
    .writes_stream = true,
};

struct graph_execution {
    struct tool *tool;
    struct joined joined; /* the graph */
    struct device_set devices;
    struct driver driver;
    struct stream_reader *graph_reader; /* while feeds may follow the graph */
    struct record_file trace;
    struct worker worker; /* with --task */
    struct saving saving;
    struct progress progress;
    int64_t limit;    /* steps to run; -1: until the feeds end */
    bool is_set_up;   /* the variables have their values, as of step `first` */
    int64_t first;    /* the step before the first that this process runs */
    bool in_step;     /* a step began, and did not end well */
    bool was_stopped; /* by another worker, which was asked to end */
};

static bool is_file_of_records(const char *feed)
{
    return !strchr(feed, '=');
}

/* ---- setting up ---- */

static int read_graph(struct graph_execution *job, struct error *err)
{
    int code = tool_open_reader(job->tool, graph_path, &job->graph_reader, err);
    if (code)
        return code;
    code = joined_read(job->graph_reader, ops_registry(), &job->joined, err);
    if (code)
        return code;
    bool from_file = graph_path && strcmp(graph_path, "-");
    driver_init(&job->driver, job->joined.graph, from_file ? graph_path : "stdin");
    if (from_file) {
        tool_close_reader(job->graph_reader);
        job->graph_reader = NULL;
    }
    return 0;
}

static int make_request(struct graph_execution *job, struct error *err)
{
    struct driver *driver = &job->driver;
    int code = 0;
    for (size_t i = 0; !code && i < runs.n; i++)
        code = request_run(&driver->request, runs.items[i], err);
    for (size_t i = 0; !code && i < fetches.n; i++)
        code = request_fetch(&driver->request, fetches.items[i], err);
    for (size_t i = 0; !code && i < feed_options.n; i++)
        if (!is_file_of_records(feed_options.items[i]))
            code = feeds_add_constant(&driver->feeds, feed_options.items[i], err);
    if (code)
        return error_prefix(err, "%s: ", driver->name);
    driver->option = runs.n ? "--run" : "--fetch";
    driver->what = runs.n ? runs.items[0] : fetches.n ? fetches.items[0] : "";
    if (driver_ready(driver, err))
        return err->code;
    for (size_t i = 0; i < driver->feeds.edges.n; i++) {
        int node = driver->feeds.edges.items[i].node;
        if (!request_uses(&driver->request, node))
            tool_say(job->tool, "%s: --feed %s: %s %s does not use it", driver->name,
                     graph_node(driver->graph, node)->name, driver->option, driver->what);
    }
    return 0;
}

static int print_needs(struct graph_execution *job, struct error *err)
{
    const struct driver *driver = &job->driver;
    FILE *out;
    if (tool_open_text(job->tool, &out, err))
        return err->code;
    for (size_t i = 0; i < driver->needs.n; i++)
        fprintf(out, "%s\n", graph_node(driver->graph, driver->needs.items[i])->name);
    return 0;
}

/* Where records come from: --feed FILE, what follows the graph on stdin, or stdin when -g named the
 * graph, the step needs something and no option feeds it. */
static int open_feeds(struct graph_execution *job, struct error *err)
{
    const char *path = NULL;
    for (size_t i = 0; i < feed_options.n; i++) {
        if (!is_file_of_records(feed_options.items[i]))
            continue;
        if (path)
            return error_set(err, ERR_USAGE,
                             "--feed names two files of records; join them with cat");
        path = feed_options.items[i];
    }
    if (!path && !job->driver.needs.n)
        return 0;
    if ((!path || !strcmp(path, "-")) && job->graph_reader) {
        job->driver.feed_reader = job->graph_reader;
        return 0;
    }
    if (!path && (job->driver.feeds.n_constant || isatty(STDIN_FILENO)))
        return 0;
    return tool_open_reader(job->tool, path, &job->driver.feed_reader, err);
}

static int check_numbers(struct error *err)
{
    if (threads < 0 || threads > 4096)
        return error_set(err, ERR_USAGE, "--threads %" PRId64 " makes no sense", threads);
    if (steps != INT64_MIN && steps < 0)
        return error_set(err, ERR_USAGE, "--steps %" PRId64 " makes no sense", steps);
    if (fetch_every < 1)
        return error_set(err, ERR_USAGE, "--fetch-every %" PRId64 " makes no sense", fetch_every);
    if (fetch_limit && fetch_limit < FETCH_LIMIT_LEAST)
        return error_set(err, ERR_USAGE, "--fetch-limit %" PRId64 " makes no sense", fetch_limit);
    if (fetch_limit && tool_limit_check(err))
        return error_prefix(err, "--fetch-limit: ");
    if (!(grace > 0 && grace < 1e9))
        return error_set(err, ERR_USAGE, "--grace %gs makes no sense", grace);
    return 0;
}

static int open_device(struct graph_execution *job, struct error *err)
{
    struct device_options options = {.threads = (int)threads, .deterministic = deterministic};
    if (device_set_open_for(&job->devices, job->joined.graph, job->joined.is_cut, &options, err))
        return job->joined.is_cut ? error_prefix(err, "%s: ", job->driver.name) : err->code;
    job->driver.device = job->devices.devices.items[0];
    struct session_options session = {.plan = {.kernels = ops_kernels(),
                                               .device = job->driver.device,
                                               .check_numerics = check,
                                               .no_layouts = check},
                                      .devices = job->devices.devices.items,
                                      .n_devices =
                                          job->joined.is_cut ? (int)job->devices.devices.n : 0};
    job->driver.session = session_new(job->joined.graph, &session);
    job->driver.seed = (uint64_t)seed;
    job->saving.variables = session_variables(job->driver.session);
    job->saving.device = job->driver.device;
    variable_store_set_files(job->saving.variables,
                             checkpoint_files(saving_producer(&job->saving)));
    return 0;
}

static int open_trace(struct graph_execution *job, struct error *err)
{
    if (!trace_path)
        return 0;
    int code = record_file_open_in(&job->trace, job->tool, trace_path, err);
    if (code)
        return code;
    job->driver.trace_writer = job->trace.writer;
    job->driver.trace = trace_new();
    return 0;
}

static bool ends_wait(void *context)
{
    struct graph_execution *job = context;
    return worker_ends_wait(&job->worker, &job->driver);
}

static int open_worker(struct graph_execution *job, struct error *err)
{
    if (dump_plan)
        return error_set(err, ERR_USAGE, "--dump-plan shows plans of one process, without --task");
    struct worker_options options = {
        .member = cluster_member(job->tool),
        .graph = job->joined.graph,
        .plan = {.kernels = ops_kernels(), .check_numerics = check, .no_layouts = check},
        .device = {.threads = (int)threads, .deterministic = deterministic}};
    int code = worker_open(&job->worker, &options, err);
    if (code)
        return code;
    worker_bind_driver(&job->worker, &job->driver);
    job->driver.seed = (uint64_t)seed;
    job->saving.variables = worker_variables(&job->worker);
    job->saving.device = worker_device(&job->worker);
    if (job->worker.collective)
        tool_read_on(ends_wait, job); /* the others may wait for the step that is fed */
    return 0;
}

/* Whether every variable is on the task itself, or on every task of its job. */
static bool has_all_variables(const struct graph_execution *job)
{
    const struct graph *graph = job->joined.graph;
    struct device_name name;
    struct error ignored = ERROR_INIT;
    char own[DEVICE_WORD_BYTES];
    int index;
    if (!cluster_options.task)
        return true;
    bool all = !task_parse(cluster_options.task, own, &index, &ignored);
    for (size_t i = 0; all && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        all = !node_is(node, "Variable") ||
              (!device_name_parse(&name, node->assigned, &ignored) && !strcmp(name.job, own) &&
               (name.task < 0 || name.task == index));
    }
    return all;
}

/* Also when it was asked to end: the others go on without it. Not when all end at once because who
 * runs the job has died: what the last ones did without the others would be saved as if it were a
 * round of all. The code that it ends with. */
static int leave(struct graph_execution *job, int code, struct error *err)
{
    struct error left = ERROR_INIT;
    if (lifeline_has_ended() && !job->worker.collective)
        return err->code;
    if (worker_leave(&job->worker, &job->driver, &left) && !code)
        *err = left;
    return err->code;
}

/* Whether it is this process that saves. */
static bool writes(const struct graph_execution *job)
{
    return !cluster_options.task || worker_writes(&job->worker);
}

/* What was counted before this worker was started again is passed over. Of workers that go on
 * together one may have less data, and leaves. */
static int rejoin(struct graph_execution *job, int64_t counted, struct error *err)
{
    struct driver *driver = &job->driver;
    int code = driver_pass_over(driver, counted, err);
    if (code)
        return code;
    if (job->worker.collective && driver->step < counted)
        tool_say(job->tool, "%s: goes on after step %" PRId64 "; its feeds end after step %" PRId64,
                 driver->name, counted, driver->step);
    else
        tool_say(job->tool, "%s: joined again; %" PRId64 " feed records passed over", driver->name,
                 driver->step);
    if (job->worker.collective)
        driver->step = job->saving.resumed = counted;
    return 0;
}

static int start_worker(struct graph_execution *job, struct worker_origin *origin,
                        struct error *err)
{
    int64_t counted;
    origin->step = job->saving.resumed;
    int code = saving_newest(&job->saving, &origin->seen, err);
    if (!code)
        code = worker_start(&job->worker, &job->driver, origin, &counted, err);
    return code || !counted ? code : rejoin(job, counted, err);
}

static int restore_from_reader(struct graph_execution *job, struct error *err)
{
    struct worker_origin origin = {.reader = NULL};
    int64_t step = 0;
    int code = saving_open_reader(&job->saving, &origin.reader, err);
    if (code)
        return code;
    code = cluster_options.task ? start_worker(job, &origin, err)
                                : variables_restore(job->saving.variables, job->joined.graph,
                                                    &job->devices, origin.reader, &step, err);
    saving_close_reader(&job->saving, origin.reader);
    return code;
}

/* What only reads variables answers by what they were trained to, which must come from somewhere.
 */
static int initialize(struct graph_execution *job, struct error *err)
{
    const struct driver *driver = &job->driver;
    int variable =
        request_only_reads(&driver->request, driver->feeds.edges.items, (int)driver->feeds.edges.n);
    if (variable >= 0)
        tool_say(job->tool,
                 "%s: %s %s reads '%s' as it is initialized; --restore reads what was "
                 "trained",
                 driver->name, driver->option, driver->what,
                 graph_node(driver->graph, variable)->name);
    return driver_initialize(&job->driver, err);
}

/* The variables get their values; the feeds of steps that were run already are passed over. */
static int begin(struct graph_execution *job, struct error *err)
{
    struct worker_origin origin = {.is_restored = false};
    bool reads = writes(job);
    job->saving.takes_over = !reads;
    int code = reads ? saving_restore(&job->saving, &origin.is_restored, err) : 0;
    if (code)
        return code;
    if (save_options.partial && !origin.is_restored)
        return driver_initialize(&job->driver, err) ? err->code
                                                    : saving_restore_partial(&job->saving, err);
    if (reads && save_options.restore && !origin.is_restored)
        return restore_from_reader(job, err);
    if (cluster_options.task)
        return start_worker(job, &origin, err);
    if (!origin.is_restored)
        return initialize(job, err);
    return job->saving.resumed ? saving_pass_over(&job->saving, job->saving.resumed, err) : 0;
}

static int set_up(struct graph_execution *job, struct error *err)
{
    tool_catch_signals();
    int code = check_numbers(err);
    if (!code)
        code = tool_cancel_after(grace, &job->driver.at_hand.cancelled, err);
    if (!code)
        code = read_graph(job, err);
    if (!code)
        code = make_request(job, err);
    if (code || needs)
        return code ? code : print_needs(job, err);
    code = open_feeds(job, err);
    if (!code && !dump_plan)
        code = saving_check(&job->saving, has_all_variables(job), err);
    if (!code)
        code = cluster_options.task ? open_worker(job, err) : open_device(job, err);
    if (!code)
        code = open_trace(job, err);
    if (code || dump_plan)
        return code;
    return begin(job, err);
}

/* ---- running ---- */

/* Before the first step, when the feeds have told how many there will be. */
static int open_writer(struct graph_execution *job, struct error *err)
{
    const struct driver *driver = &job->driver;
    int64_t expected = job->limit;
    if (expected < 0 && driver->feed_reader)
        expected = stream_reader_expected(driver->feed_reader);
    progress_start(&job->progress, tool_shows_progress(job->tool), stderr, "step", driver->step,
                   expected);
    /* With nothing to fetch there is nothing to write; only a next stage wants to hear that. */
    struct stat out;
    bool piped = !fstat(STDOUT_FILENO, &out) && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode));
    bool fetched = driver->request.fetches.n > 0;
    if (!fetched && !dump_plan && !tool_output && !piped)
        return 0;
    int code = tool_open_writer(job->tool,
                                fetched && fetch_every == 1       ? expected
                                : fetched                         ? -1
                                : dump_plan && job->joined.is_cut ? -1
                                                                  : dump_plan,
                                err);
    job->driver.writer = job->tool->writer;
    job->driver.write_every = fetch_every;
    return code;
}

/* Asked to end, by a signal or by another worker. */
static bool is_over(struct graph_execution *job)
{
    return cluster_options.task ? worker_is_over(&job->worker, &job->driver, tool_signal())
                                : tool_signal();
}

static bool begins(struct graph_execution *job)
{
    return cluster_options.task ? worker_begins(&job->worker, &job->driver, tool_signal())
                                : !tool_signal();
}

static int run_steps(struct graph_execution *job, struct error *err)
{
    struct driver *driver = &job->driver;
    bool more = job->limit < 0 || driver->step < job->limit || dump_plan;
    int code = more ? driver_next_feeds(driver, &more, err) : 0;
    if (!code)
        code = open_writer(job, err);
    while (!code && more && !dump_plan && begins(job)) {
        job->in_step = true;
        if (fetch_limit)
            code = tool_limit_output(job->tool, fetch_limit, err);
        if (!code)
            code = driver_run_step(driver, err);
        job->in_step = code;
        progress_update(&job->progress, driver->step, "");
        if (!code && writes(job))
            code = saving_step(&job->saving, err);
        if (code || driver->step == job->limit || is_over(job))
            break;
        code = driver_next_feeds(driver, &more, err);
    }
    if (!code && dump_plan)
        code = driver_write_plan(driver, err);
    progress_end(&job->progress, driver->step, "");
    if (!code && !more && driver->step < job->limit)
        tool_say(job->tool, "%s: the feeds end after step %" PRId64 " of %" PRId64, driver->name,
                 driver->step, job->limit);
    job->was_stopped = !code && more && cluster_options.task && !tool_signal() && is_over(job);
    if (job->was_stopped)
        tool_say(job->tool, "%s: ends after step %" PRId64 ", as another worker was asked to",
                 driver->name, driver->step);
    return code;
}

/* Says what became of --save, and what the user can do about a NaN. */
static void add_advice(const struct graph_execution *job, struct error *err)
{
    char step[32] = "init";
    if (err->code == ERR_CANCELLED && job->driver.step)
        snprintf(step, sizeof step, "step %" PRId64, job->driver.step);
    if (err->code == ERR_CANCELLED)
        error_set(err, ERR_CANCELLED, "%s: %s did not end within %g s of signal %d: cancelled",
                  job->driver.name, step, grace, tool_signal());
    error_append(err, "%s%s",
                 job->saving.autosave ? "; this step is not saved"
                 : save_options.path  ? "; nothing saved"
                                      : "",
                 !check && err->reason == ERROR_NOT_FINITE ? "; --check finds the origin" : "");
}

static bool has_run(const struct graph_execution *job)
{
    return job->is_set_up && job->driver.step > job->first;
}

/* Who was asked to end before the first step has nothing of its own: what it was to go on from is
 * saved already, and must not be saved as another step, nor in the place of a file that is whole.
 */
static bool has_to_save(const struct graph_execution *job)
{
    bool asked = tool_signal() || job->was_stopped;
    return save_options.path && !dump_plan && job->is_set_up && (has_run(job) || !asked) &&
           writes(job);
}

static int save(struct graph_execution *job, struct error *err)
{
    struct record_file file;
    const struct driver *driver = &job->driver;
    error_clear(err); /* who was asked to end while it waited has not failed */
    if (!has_to_save(job) || saving_open(&job->saving, err))
        return err->code;
    if (job->saving.autosave)
        return saving_finish(&job->saving, driver->step, err);
    int code = record_file_open(&file, job->tool, save_options.path, err);
    if (code)
        return code;
    code = cluster_options.task
               ? worker_save(&job->worker, driver->step, file.writer, err)
               : variables_save(session_variables(driver->session), driver->step, file.writer, err);
    if (!code)
        return record_file_commit(&file, err);
    record_file_discard(&file);
    return code;
}

/* After the last step. Of workers without shards the next one saves as soon as this one has left:
 * what it saves must be the newer. With shards others go on while this one saves. The code is 0, or
 * that it was asked to end. */
static int end(struct graph_execution *job, int code, struct error *err)
{
    bool asked = code;
    if (job->worker.collective)
        return leave(job, save(job, err), err);
    if (cluster_options.task)
        code = leave(job, code, err);
    return !code || asked ? save(job, err) : code;
}

/* The last line of who was asked to end by a signal, perhaps before it knew its graph. */
static int interrupted(const struct graph_execution *job, struct error *err)
{
    const char *name = job->driver.name ? job->driver.name : graph_path ? graph_path : "stdin";
    if (has_run(job))
        return error_set(err, ERR_CANCELLED, "%s: interrupted after step %" PRId64, name,
                         job->driver.step);
    return error_set(err, ERR_CANCELLED, "%s: interrupted before a step was run%s", name,
                     save_options.path ? "; nothing saved" : "");
}

static int finish_trace(struct graph_execution *job, int code, struct error *err)
{
    struct error ignored = ERROR_INIT;
    if (!job->driver.trace)
        return code;
    int failed = record_file_commit(&job->trace, code ? &ignored : err);
    trace_free(job->driver.trace);
    return code ? code : failed;
}

static int serve_drivers(struct tool *tool, struct error *err)
{
    tool_catch_signals();
    struct serve_options options = cluster_serving(tool, (int)threads, deterministic);
    return serve(&options, err);
}

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    static struct graph_execution job; /* the timer of --grace may outlive this function */
    job.tool = tool;
    int code = cluster_hold_lifeline(err);
    if (n_operands && strcmp(operands[0], "serve") != 0)
        return error_set(err, ERR_USAGE, "'%s': expected 'serve' or nothing", operands[0]);
    if (code || n_operands)
        return code ? code : serve_drivers(tool, err);
    job.saving = (struct saving){.tool = tool, .driver = &job.driver};
    code = set_up(&job, err);
    if (!code && !dump_plan && !needs && writes(&job))
        code = saving_open(&job.saving, err);
    if (!code && !needs) {
        job.is_set_up = true;
        job.first = job.driver.step;
        job.limit = steps >= 0 ? steps : job.driver.feed_reader ? -1 : 1;
        code = run_steps(&job, err);
    }
    bool cancelled = code == ERR_CANCELLED && atomic_load(&job.driver.at_hand.cancelled);
    bool asked =
        code == ERR_CANCELLED && !cancelled && !job.in_step; /* while it waited for feeds */
    if (cancelled || (code && !asked && job.driver.step))
        add_advice(&job, err);
    if ((!code || asked) && !needs)
        code = end(&job, code, err);
    code = finish_trace(&job, code, err);
    if (!code && tool_signal())
        code = interrupted(&job, err);
    saving_close(&job.saving);
    worker_close(&job.worker);
    driver_release(&job.driver);
    session_free(job.driver.session);
    device_set_release(&job.devices);
    joined_release(&job.joined);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
