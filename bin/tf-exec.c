/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-exec: runs steps of a graph. Feeds come from records, files or options, fetches go out as
 * records.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/tool.h"
#include "exec/feeds.h"
#include "exec/plan_io.h"
#include "exec/saver.h"
#include "exec/session.h"
#include "exec/trace.h"
#include "graph/graph_io.h"
#include "ops/ops.h"

static const char *graph_path, *save_path, *restore_path, *trace_path;
static struct option_list runs, fetches, feed_options;
static int64_t steps, seed, threads;
static bool dump_plan, check, deterministic;

static const struct option_row rows[] = {
    {'g', "graph", OPTION_TEXT, &graph_path, "FILE", "the graph, if stdin carries something else"},
    {0, "run", OPTION_LIST, &runs, "ENTRY", "entry points (or nodes) to run in each step"},
    {0, "fetch", OPTION_LIST, &fetches, "NAME", "tensors to write in each step"},
    {0, "feed", OPTION_REPEAT, &feed_options, "FILE|NAME=VALUE",
     "feed records, a step each (-: stdin); or one tensor for all steps, a .npy or a literal"},
    {'n', "steps", OPTION_INT, &steps, "N",
     "steps to run (as many as there are feed records, or 1)"},
    {0, "save", OPTION_TEXT, &save_path, "FILE", "write the variables at the end"},
    {0, "restore", OPTION_TEXT, &restore_path, "FILE",
     "read the variables instead of running init"},
    {0, "seed", OPTION_INT, &seed, "N", "seed of the random ops (0)"},
    {0, "threads", OPTION_INT, &threads, "N", "threads to compute with (as many as cores)"},
    {0, "deterministic", OPTION_FLAG, &deterministic, NULL,
     "the same bits whatever the number of threads"},
    {0, "check", OPTION_FLAG, &check, NULL, "stop at the first value that is NaN or infinite"},
    {0, "dump-plan", OPTION_FLAG, &dump_plan, NULL,
     "write the plan of the first step; run nothing"},
    {0, "trace", OPTION_TEXT, &trace_path, "FILE",
     "write what ran when; a directory: a file of this process in it"},
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_table table = {
    .tool = "tf-exec",
    .summary = "run steps of a graph",
    .operands = "",
    .description = "Runs a graph: once for each feed record, or N times. The graph is the first "
                   "record of stdin "
                   "unless -g names a file; feed records follow it there, or come from --feed.\n"
                   "\n"
                   "The entry init runs first, to give the variables their values, unless "
                   "--restore reads them. "
                   "A step needs what its entries and fetches depend on, and only that runs; any "
                   "tensor of the "
                   "graph can be fed and fetched. A step may take its feeds from several records.\n"
                   "\n"
                   "SIGINT and SIGTERM end the run after the step at hand; --save still writes.",
    .examples =
        "tf-exec -g m.tfg --run train --feed train.rec --fetch loss --save m.ckpt | tf-show\n"
        "tf-exec -g m.tfg --run eval --feed test.rec --restore m.ckpt | tf-show\n"
        "tf-exec -g m.tfg --fetch y --feed x=x.npy | tf-show --npy - y > y.npy\n"
        "tf-exec -g m.tfg --run train --feed train.rec --dump-plan | tf-show",
    .rows = rows,
    .operands_max = 0,
    .writes_stream = true,
};

struct job {
    struct tool *tool;
    const char *name; /* of the graph, for messages */
    struct graph *graph;
    struct device *device;
    struct session *session;
    struct request request;
    struct feeds feeds;
    struct node_list needs; /* what a step must be given besides constants */
    struct stream_reader *graph_reader, *feed_reader;
    struct trace *trace;
    struct output *trace_output;
    struct stream_writer *trace_writer;
    struct progress progress;
    int64_t step;  /* the last that was run */
    int64_t limit; /* steps to run; -1: until the feeds end */
};

static bool is_file_of_records(const char *feed)
{
    return !strchr(feed, '=');
}

/* ---- setting up ---- */

static int read_graph(struct job *job, struct error *err)
{
    int code = tool_open_reader(job->tool, graph_path, &job->graph_reader, err);
    if (code)
        return code;
    job->name = stream_reader_name(job->graph_reader);
    code = graph_read(job->graph_reader, ops_registry(), &job->graph, err);
    if (!code && graph_path && strcmp(graph_path, "-")) {
        tool_close_reader(job->graph_reader);
        job->graph_reader = NULL;
        job->name = graph_path;
    }
    return code;
}

static int make_request(struct job *job, struct error *err)
{
    job->request.graph = job->feeds.graph = job->graph;
    for (size_t i = 0; i < runs.n; i++)
        if (request_run(&job->request, runs.items[i], err))
            return error_prefix(err, "%s: ", job->name);
    for (size_t i = 0; i < fetches.n; i++)
        if (request_fetch(&job->request, fetches.items[i], err))
            return error_prefix(err, "%s: ", job->name);
    if (!job->request.fetches.n && !job->request.targets.n)
        return error_set(err, ERR_USAGE,
                         "nothing to do: name an entry with --run or a tensor with "
                         "--fetch");
    for (size_t i = 0; i < feed_options.n; i++)
        if (!is_file_of_records(feed_options.items[i]) &&
            feeds_add_constant(&job->feeds, feed_options.items[i], err))
            return error_prefix(err, "%s: ", job->name);
    request_needs(&job->request, job->feeds.edges.items, (int)job->feeds.edges.n, &job->needs);
    return 0;
}

/* Where records come from: --feed FILE, what follows the graph on stdin, or stdin when -g named the
 * graph, the step needs something and no option feeds it. */
static int open_feeds(struct job *job, struct error *err)
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
    if (!path && !job->needs.n)
        return 0;
    if ((!path || !strcmp(path, "-")) && job->graph_reader) {
        job->feed_reader = job->graph_reader;
        job->graph_reader = NULL;
        return 0;
    }
    if (!path && (job->feeds.n_constant || isatty(STDIN_FILENO)))
        return 0;
    return tool_open_reader(job->tool, path, &job->feed_reader, err);
}

static int open_device(struct job *job, struct error *err)
{
    struct device_options options = {.threads = (int)threads, .deterministic = deterministic};
    if (threads < 0 || threads > 4096)
        return error_set(err, ERR_USAGE, "--threads %" PRId64 " makes no sense", threads);
    job->device = device_open("CPU", 0, &options, err);
    if (!job->device)
        return err->code;
    struct session_options session = {.plan = {.kernels = ops_kernels(),
                                               .device = job->device,
                                               .threads = (int)threads,
                                               .check_numerics = check,
                                               .no_layouts = check}};
    job->session = session_new(job->graph, &session);
    return 0;
}

static int open_trace(struct job *job, struct error *err)
{
    struct stat status;
    char path[4096];
    int fd;
    if (!trace_path)
        return 0;
    bool is_folder =
        str_ends(trace_path, "/") || (!stat(trace_path, &status) && S_ISDIR(status.st_mode));
    if (str_ends(trace_path, "/") && stat(trace_path, &status) && mkdir(trace_path, 0777))
        return error_set_errno(err, ERR_IO, "%s", trace_path);
    if (is_folder)
        snprintf(path, sizeof path, "%s/tf-exec-%ld.rec", trace_path, (long)getpid());
    else
        snprintf(path, sizeof path, "%s", trace_path);
    int code = output_open(path, &job->trace_output, &fd, err);
    if (code)
        return code;
    job->trace_writer = stream_writer_new(fd, trace_path, tool_provenance(job->tool), -1);
    job->trace = trace_new();
    return 0;
}

static int initialize(struct job *job, struct error *err)
{
    struct step step = {.number = 0, .seed = (uint64_t)seed};
    struct request init = {.graph = job->graph};
    if (!graph_entry(job->graph, "init"))
        return 0;
    int code = request_run(&init, "init", err);
    struct session_call call = {.targets = init.targets.items, .n_targets = (int)init.targets.n};
    if (!code)
        code = session_run(job->session, &call, &step, NULL, err);
    request_release(&init);
    return code ? error_prefix(err, "%s: init: ", job->name) : 0;
}

static int restore(struct job *job, struct error *err)
{
    struct stream_reader *reader;
    int64_t step = 0;
    int code = tool_open_reader(job->tool, restore_path, &reader, err);
    if (code)
        return code;
    code = variables_restore(session_variables(job->session), job->graph, job->device, reader,
                             &step, err);
    tool_close_reader(reader);
    return code;
}

/* ---- feeding ---- */

static int not_fed(struct job *job, struct error *err)
{
    struct str needs = STR_INIT;
    const struct node *missing = NULL;
    struct node_list one = {0};
    for (size_t i = 0; i < job->needs.n && !missing; i++) {
        one.items = &job->needs.items[i];
        one.n = 1;
        if (!feeds_complete(&job->feeds, &one))
            missing = graph_node(job->graph, job->needs.items[i]);
    }
    struct node_list all = {0};
    request_needs(&job->request, NULL, 0, &all);
    request_print_needs(&needs, job->graph, &all);
    int code = error_set(err, ERR_NOINPUT, "%s: %s: not fed; %s%s needs %s", job->name,
                         node_text(missing), runs.n ? "--run " : "--fetch ",
                         runs.n ? runs.items[0] : fetches.items[0], str_text(&needs));
    str_release(&needs);
    vec_release(&all);
    return code;
}

/* Gathers what the next step needs. *more is false at the end of the feeds. */
static int next_feeds(struct job *job, struct record *record, bool *more, struct error *err)
{
    *more = true;
    feeds_clear(&job->feeds);
    if (!job->feed_reader)
        return feeds_complete(&job->feeds, &job->needs) ? 0 : not_fed(job, err);
    do {
        int code = stream_read(job->feed_reader, record, more, err);
        if (code)
            return code;
        if (!*more)
            return feeds_started(&job->feeds)   ? not_fed(job, err)
                   : job->step || !job->needs.n ? 0
                                                : not_fed(job, err);
        if (record->kind != RECORD_FEED && record->kind != RECORD_FETCH &&
            record->kind != RECORD_TENSOR)
            return error_set(err, ERR_DATA, "%s: a %s record where feeds are expected",
                             stream_reader_name(job->feed_reader), record_kind_name(record->kind));
        if (feeds_add_record(&job->feeds, record, err))
            return error_prefix(err, "%s: step %" PRId64 ": ", stream_reader_name(job->feed_reader),
                                job->step + 1);
    } while (!feeds_complete(&job->feeds, &job->needs));
    return 0;
}

/* ---- running ---- */

static struct session_call make_call(const struct job *job)
{
    return (struct session_call){.feeds = job->feeds.edges.items,
                                 .feed_values = job->feeds.values.items,
                                 .n_feeds = (int)job->feeds.edges.n,
                                 .fetches = job->request.fetches.items,
                                 .n_fetches = (int)job->request.fetches.n,
                                 .targets = job->request.targets.items,
                                 .n_targets = (int)job->request.targets.n};
}

static int open_writer(struct job *job, struct error *err)
{
    if (job->tool->writer)
        return 0;
    int64_t expected = job->limit;
    if (expected < 0 && job->feed_reader)
        expected = stream_reader_expected(job->feed_reader);
    progress_start(&job->progress, tool_shows_progress(job->tool), stderr, "step", 0, expected);
    /* With nothing to fetch there is nothing to write; only a next stage wants to hear that. */
    struct stat out;
    bool piped = !fstat(STDOUT_FILENO, &out) && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode));
    if (!job->request.fetches.n && !dump_plan && !tool_output && !piped)
        return 0;
    return tool_open_writer(job->tool, job->request.fetches.n ? expected : dump_plan ? 1 : 0, err);
}

static int write_fetches(struct job *job, struct tensor *values, struct error *err)
{
    int n = (int)job->request.fetches.n;
    struct named_tensor *named = mem_array((size_t)n + 1, sizeof *named);
    for (int i = 0; i < n; i++)
        named[i] = (struct named_tensor){job->request.names.items[i], values[i]};
    int code = stream_write_feed(job->tool->writer, RECORD_FETCH, job->step, NULL, named, n, err);
    mem_free(named);
    return code;
}

/* Says which step it was, and what the user can do about a NaN. */
static int step_failed(struct job *job, struct error *err)
{
    char rest[128] = "";
    if (save_path)
        strcat(rest, "; nothing saved");
    if (!check && strstr(err->text, "CheckNumerics: "))
        strcat(rest, "; --check finds the origin");
    error_prefix(err, "%s: step %" PRId64 ": ", job->name, job->step);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "%s", rest);
    return err->code;
}

static int run_step(struct job *job, struct error *err)
{
    struct step step = {.number = ++job->step, .seed = (uint64_t)seed, .trace = job->trace};
    struct session_call call = make_call(job);
    struct tensor *values = mem_array(job->request.fetches.n + 1, sizeof *values);
    int64_t start = job->trace ? trace_now() : 0;
    int code = session_run(job->session, &call, &step, values, err);
    if (code)
        step_failed(job, err);
    if (!code && job->trace) {
        trace_step(job->trace, job->step, start, trace_now());
        code = trace_flush(job->trace, job->trace_writer, err);
    }
    if (!code && job->request.fetches.n)
        code = write_fetches(job, values, err);
    for (size_t i = 0; i < job->request.fetches.n; i++)
        tensor_release(&values[i]);
    mem_free(values);
    progress_update(&job->progress, job->step, "");
    return code;
}

static int write_plan(struct job *job, struct error *err)
{
    struct session_call call = make_call(job);
    struct plan *plan;
    int code = session_plan(job->session, &call, &plan, err);
    if (code)
        return error_prefix(err, "%s: ", job->name);
    return plan_write(job->tool->writer, plan, runs.n ? runs.items[0] : fetches.items[0], err);
}

static int run_steps(struct job *job, struct error *err)
{
    struct record record = {0};
    bool more = true;
    int code = 0;
    while (!code && !tool_signal() && (job->limit < 0 || job->step < job->limit)) {
        code = next_feeds(job, &record, &more, err);
        if (!code)
            code = open_writer(job, err);
        if (code || !more)
            break;
        if (dump_plan) {
            code = write_plan(job, err);
            break;
        }
        code = run_step(job, err);
    }
    record_release(&record);
    progress_end(&job->progress, job->step, "");
    return code;
}

/* ---- ending ---- */

static int save(struct job *job, struct error *err)
{
    struct output *output;
    int fd;
    if (!save_path || dump_plan)
        return 0;
    int code = output_open(save_path, &output, &fd, err);
    if (code)
        return code;
    struct stream_writer *writer = stream_writer_new(fd, save_path, tool_provenance(job->tool), -1);
    code = variables_save(session_variables(job->session), job->step, writer, err);
    if (!code)
        code = stream_finish(writer, err);
    stream_writer_free(writer);
    if (!code)
        return output_commit(output, err);
    output_discard(output);
    return code;
}

static int finish_trace(struct job *job, int code, struct error *err)
{
    struct error ignored = ERROR_INIT;
    if (!job->trace)
        return code;
    struct error *where = code ? &ignored : err;
    int failed = stream_finish(job->trace_writer, where);
    if (!failed)
        failed = output_commit(job->trace_output, where);
    else
        output_discard(job->trace_output);
    stream_writer_free(job->trace_writer);
    trace_free(job->trace);
    return code ? code : failed;
}

static void job_release(struct job *job)
{
    session_free(job->session);
    if (job->device)
        device_free(job->device);
    request_release(&job->request);
    feeds_release(&job->feeds);
    vec_release(&job->needs);
    graph_free(job->graph);
}

static int work(struct job *job, struct error *err)
{
    int code = read_graph(job, err);
    if (!code)
        code = make_request(job, err);
    if (!code)
        code = open_feeds(job, err);
    if (!code)
        code = open_device(job, err);
    if (!code)
        code = open_trace(job, err);
    if (code)
        return code;
    job->limit = steps > 0 ? steps : job->feed_reader ? -1 : 1;
    if (!dump_plan)
        code = restore_path ? restore(job, err) : initialize(job, err);
    if (!code)
        code = run_steps(job, err);
    return code ? code : save(job, err);
}

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    struct job job = {.tool = tool};
    (void)n_operands, (void)operands;
    tool_catch_signals();
    int code = finish_trace(&job, work(&job, err), err);
    job_release(&job);
    if (!code && tool_signal())
        return error_set(err, ERR_CANCELLED, "%s: interrupted after step %" PRId64, job.name,
                         job.step);
    return code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
