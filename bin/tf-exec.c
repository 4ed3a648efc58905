/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-exec: runs steps of a graph. Feeds come from records, files or options; fetches are written as
 * records. It runs alone, as a task that drives the others of a cluster, or serves other drivers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bin/cluster_options.h"
#include "bin/evaluation.h"
#include "bin/exec_life.h"
#include "bin/exec_request.h"
#include "bin/ops_option.h"
#include "bin/runner.h"
#include "bin/scores.h"
#include "cli/progress.h"
#include "cli/record_file.h"
#include "exec/plan/fuse.h"

static const char *trace_path;
static int64_t steps = INT64_MIN; /* as many as there are feed records */
static int64_t first_step = 1, seed, threads, fetch_every = 1, fetch_limit, gpu_memory;
static double grace = 5;
static bool dump_plan, check, deterministic, exact, needs, tf32, fast;
static struct save_options save_options;
static struct option_list restore_as, without;

static const struct option_row rows[] = {
    {'g', "graph", OPTION_TEXT, &request_options.graph, "FILE",
     "the graph, if stdin carries something else"},
    {0, "run", OPTION_LIST, &request_options.runs, "ENTRY",
     "entry points (or nodes) to run in each step"},
    {0, "fetch", OPTION_LIST, &request_options.fetches, "NAME", "tensors to write in each step"},
    {0, "fetch-every", OPTION_NATURAL, &fetch_every, "N", "write them after every N steps only"},
    {0, "fetch-limit", OPTION_BYTES, &fetch_limit, "BYTES",
     "begin the file that stdout is anew when it has as many, as 100M; one older is kept"},
    {0, "feed", OPTION_REPEAT, &request_options.feeds, "FILE|NAME=VALUE",
     "feed records, a step each (-: stdin; with a = in the path ./ before it); or one tensor for "
     "all steps, a .npy (a pipe of one: its path from / or ./) or a literal"},
    {'n', "steps", OPTION_NATURAL, &steps, "N",
     "steps to run (as many as there are feed records, or 1)"},
    {0, "first-step", OPTION_NATURAL, &first_step, "N",
     "what the first of them counts as (1): with --restore DIR@N-1 and tf-data cut N as it was"},
#include "bin/evaluation_rows.def"
#include "bin/save_rows.def"
    {0, "seed", OPTION_INT, &seed, "N", "seed of the random ops (0)"},
    {0, "threads", OPTION_NATURAL, &threads, "N", "threads to compute with (as many as cores)"},
    {0, "deterministic", OPTION_FLAG, &deterministic, NULL,
     "the same bits whatever the number of threads"},
    {0, "exact", OPTION_FLAG, &exact, NULL, "outputs depend on what they see alone: no Winograd"},
    {0, "gpu-memory", OPTION_BYTES, &gpu_memory, "BYTES",
     "memory of each GPU that may be used, as 8G (all that it has)"},
    {0, "tf32", OPTION_FLAG, &tf32, NULL,
     "let GPUs round what products of float32 multiply to TF32, which is faster"},
    {0, "fast", OPTION_FLAG, &fast, NULL,
     "let GPUs add in any order: bits of convolutions may differ from run to run"},
    {0, "grace", OPTION_SECONDS, &grace, "TIME",
     "how long a step may go on after SIGINT or SIGTERM before it is cancelled (5s)"},
    {0, "check", OPTION_FLAG, &check, NULL, "stop at the first NaN or infinite value; is exact"},
    {0, "without", OPTION_LIST, &without, "PASS,...",
     "device passes that plans leave out: pools, updates, sums, products, chains, views, or all"},
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

static const struct option_verb verbs[] = {
    {"", "", "run steps",
     "graph run fetch fetch-every fetch-limit feed steps save save-every save-best keep save-rate "
     "run-name resume restore restore-partial restore-as eval eval-feed eval-every eval-split "
     "stop-when reduce seed first-step fast grace check without "
     "needs dump-plan trace output"},
    {"serve", "", "wait for other drivers, and run what is on the devices of this task", NULL},
    {NULL, NULL, NULL, NULL}};

static const struct option_need conditions[] = {
    {"save-every save-best keep save-rate run-name resume", "save"},
    {"restore-partial", "restore"},
    {"restore-as", "restore resume"},
    {"fetch-every fetch-limit", "fetch"},
    {"eval-feed eval-every eval-split stop-when reduce", "eval"},
    {"stop-when reduce", "eval-every"},
    {"cluster job", "task"},
    {"key-file no-key timeout lease", "cluster job"},
    {NULL, NULL}};

static const struct option_clash clashes[] = {{"needs dump-plan trace", "needs dump-plan"},
                                              {"first-step", "resume task"},
                                              {"dump-plan restore-partial", "task"},
                                              {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-exec",
    .summary = "run steps of a graph",
    .operands = "[serve]",
    .description =
        "Runs a graph: once for each feed record, or N times. The graph is the first record of "
        "stdin unless -g names a file; feed records follow it there, or come from --feed.\n"
        "\n"
        "The entry init runs first, to give the variables their values, unless --restore reads "
        "them; a run that only reads them says so. What the entries and fetches of a step depend "
        "on runs, and nothing else; any tensor of the graph can be fed and fetched. A step may "
        "take its feeds from several records. Scores (metric...) that a run does nothing but "
        "fetch are of all steps, in one record at the end.\n"
        "\n"
        "The parts of a graph that tf-part has cut run together, each on its device of this "
        "process. SIGINT, SIGTERM and SIGHUP end the run after the step at hand; --save still "
        "writes. A step that does not end in the time of --grace is cancelled; then nothing is "
        "saved, as half of its changes may have been made.\n"
        "\n"
        "With --task it is that task of the cluster: it runs what is on its own devices and drives "
        "the other tasks, which serve. The first worker gives the variables their values, the "
        "others wait for them. --save gathers, --restore spreads. Workers of a graph that "
        "tf-replicate --mode allreduce made meet and go on together only; the first one restores "
        "for all, also with --resume, and saves; when its data has ended, the next one does.",
    .examples =
        "tf-exec -g m.tfg --run train --feed train.rec --fetch loss --save m.ckpt | tf-show\n"
        "tf-exec -g m.tfg --run eval --feed test.rec --restore m.ckpt | tf-show\n"
        "tf-exec -g m.tfg --fetch logits --feed x=x.npy | tf-show --npy - logits > y.npy\n"
        "tf-exec -g m.tfg --run train --feed train.rec --dump-plan | tf-show\n"
        "tf-exec -g parts.tfg -c my.cluster --task worker:0 --run train --feed train.rec\n"
        "tf-exec serve -c my.cluster --task worker:1",
    .rows = rows,
    .verbs = verbs,
    .needs = conditions,
    .clashes = clashes,
    .operands_max = 1,
    .writes_stream = true,
};

struct graph_execution {
    struct tool *tool;
    enum exec_life life;
    struct exec_request request;
    struct driver driver;
    struct record_file trace;
    struct runner *runner; /* from LIFE_OPENS on */
    struct saving saving;
    struct scores scores; /* over all steps, if the steps only compute scores */
    bool is_scoring;
    struct evaluation evaluation;
    struct progress progress;
    int64_t limit; /* steps to run; -1: until the feeds end */
};

/* ---- setting up ---- */

static int check_numbers(struct error *err)
{
    if (threads > TOOL_THREADS_MOST)
        return error_set(err, ERR_USAGE, "--threads %" PRId64 ": at most %d", threads,
                         TOOL_THREADS_MOST);
    if (first_step < 1)
        return error_set(err, ERR_USAGE, "--first-step %" PRId64 ": at least 1", first_step);
    if (first_step > INT64_MAX / 2 || steps > INT64_MAX / 2)
        return error_set(err, ERR_USAGE, "--first-step and --steps: below 2^62");
    if (fetch_every < 1)
        return error_set(err, ERR_USAGE, "--fetch-every %" PRId64 ": at least 1", fetch_every);
    if (fetch_limit && fetch_limit < TOOL_LIMIT_LEAST)
        return error_set(err, ERR_USAGE, "--fetch-limit %" PRId64 ": at least %d", fetch_limit,
                         TOOL_LIMIT_LEAST);
    if (fetch_limit && tool_limit_check(err))
        return error_prefix(err, "--fetch-limit: ");
    if (!(grace > 0 && grace < 1e9))
        return error_set(err, ERR_USAGE, "--grace %gs: above 0, and at most 1e9", grace);
    return 0;
}

static struct device_options device_wanted(void)
{
    return (struct device_options){.threads = (int)threads,
                                   .deterministic = deterministic,
                                   .memory = (size_t)gpu_memory,
                                   .tf32 = tf32,
                                   .fast = fast,
                                   .exact = exact};
}

/* Parses --without into the form of plan_options.without. */
static int read_without(unsigned *passes, struct error *err)
{
    for (size_t i = 0; i < without.n; i++) {
        bool is_all = !strcmp(without.items[i], "all");
        int pass = is_all ? 0 : device_pass_find(without.items[i]);
        if (pass < 0)
            return error_set(err, ERR_USAGE,
                             "--without: there is no device pass '%s': pools, updates, sums, "
                             "products, chains, views or all",
                             without.items[i]);
        *passes |= is_all ? DEVICE_PASSES_ALL : 1u << pass;
    }
    return 0;
}

static int set_up(struct graph_execution *job, struct error *err)
{
    unsigned passes = 0;
    tool_catch_signals();
    exec_life_go(&job->life, LIFE_READS);
    int code = check_numbers(err);
    if (!code)
        code = read_without(&passes, err);
    if (!code)
        code = tool_cancel_after(grace, &job->driver.at_hand.cancelled, err);
    if (!code)
        code = exec_request_read(&job->request, err);
    if (!code && !dump_plan)
        code = evaluation_check(&job->evaluation, err);
    if (!code && needs)
        code = saving_check_metric(&job->saving, err);
    if (code || needs)
        return code ? code : exec_request_print_needs(&job->request, err);
    job->is_scoring = !dump_plan && !save_options.path && !job->driver.request.targets.n &&
                      scores_are_fetched(&job->driver);
    if ((job->is_scoring && scores_begin(&job->scores, &job->driver, err)) ||
        exec_request_open_feeds(&job->request, err))
        return err->code;
    exec_life_go(&job->life, LIFE_OPENS);
    struct runner_options options = {.tool = job->tool,
                                     .joined = &job->request.joined,
                                     .driver = &job->driver,
                                     .saving = &job->saving,
                                     .device = device_wanted(),
                                     .seed = (uint64_t)seed,
                                     .check = check,
                                     .without = passes,
                                     .plan_only = dump_plan};
    job->runner = runner_new(&options);
    job->evaluation.runner = job->runner;
    if (runner_open(job->runner, err))
        return err->code;
    if (trace_path) {
        if (record_file_open_in(&job->trace, job->tool, trace_path, err))
            return err->code;
        job->driver.trace_writer = job->trace.writer;
        job->driver.trace = trace_new();
    }
    if (dump_plan)
        return 0;
    job->driver.step = first_step - 1;
    exec_life_go(&job->life, LIFE_STARTS);
    if (runner_start(job->runner, err))
        return err->code;
    exec_life_go(&job->life, LIFE_FEEDS);
    return evaluation_begin(&job->evaluation, err);
}

/* ---- running ---- */

static int await_feeds(void *context, int fd, struct error *err)
{
    return tool_await_input(context, fd, err);
}

/* Opens the output before the first step, when the number of feeds is known. */
static int open_writer(struct graph_execution *job, struct error *err)
{
    const struct driver *driver = &job->driver;
    int64_t before = first_step - 1, expected = job->limit < 0 ? -1 : job->limit - before;
    if (expected < 0 && driver->feed_reader)
        expected = stream_reader_expected(driver->feed_reader);
    progress_start(&job->progress, tool_shows_progress(job->tool), stderr, "step", driver->step,
                   expected < 0 ? -1 : before + expected);
    /* With nothing to fetch there is nothing to write, but a next stage of a pipe must be told. */
    struct stat out;
    bool piped = !fstat(STDOUT_FILENO, &out) && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode));
    bool fetched = driver->request.fetches.n > 0;
    bool is_told = evaluation_options.entry && isatty(STDOUT_FILENO); /* as lines of means */
    bool has_scores = evaluation_options.entry && (cluster_options.task || fetched);
    if ((!fetched && !has_scores && !dump_plan && !tool_output && !piped) ||
        (is_told && !tool_output))
        return 0;
    int code = tool_open_writer(job->tool,
                                job->is_scoring                           ? 1
                                : has_scores                              ? -1
                                : fetched && fetch_every == 1             ? expected
                                : fetched                                 ? -1
                                : dump_plan && job->request.joined.is_cut ? -1
                                                                          : dump_plan,
                                err);
    job->driver.writer = job->is_scoring ? NULL : job->tool->writer;
    job->driver.write_every = fetch_every;
    return code;
}

/* What follows a step, in the order in which all workers do it. `is_last`: once more after the last
 * step, if that is not settled. */
static int follow_step(struct graph_execution *job, bool is_last, struct error *err)
{
    struct runner *runner = job->runner;
    if (is_last && (!runner_has_run(runner) || runner_is_settled(runner)))
        return 0;
    int code = runner_stepped(runner, is_last, err);
    if (!code && evaluation_is_here(&job->evaluation))
        code = evaluation_step(&job->evaluation, runner_is_settled(runner), &runner->ends, err);
    return code ? code : runner_step(runner, err);
}

static int run_steps(struct graph_execution *job, struct error *err)
{
    struct driver *driver = &job->driver;
    struct runner *runner = job->runner;
    bool more = job->limit < 0 || driver->step < job->limit || dump_plan;
    int code = more ? driver_next_feeds(driver, &more, err) : 0;
    if (!code)
        code = open_writer(job, err);
    if (!code && !dump_plan && evaluation_is_here(&job->evaluation))
        code = evaluation_step(&job->evaluation, true, &runner->ends, err);
    while (!code && more && !dump_plan && runner_begins(runner)) {
        exec_life_go(&job->life, LIFE_STEPS);
        if (fetch_limit)
            code = tool_limit_output(job->tool, fetch_limit, err);
        if (!code)
            code = driver_run_step(driver, err);
        if (!code)
            exec_life_go(&job->life, LIFE_FEEDS);
        progress_update(&job->progress, driver->step, "");
        if (!code)
            code = follow_step(job, false, err);
        if (code || driver->step == job->limit || runner_is_over(runner))
            break;
        code = driver_next_feeds(driver, &more, err);
    }
    if (!code && job->is_scoring && !tool_signal()) {
        exec_life_go(&job->life, LIFE_STEPS);
        code = scores_end(&job->scores, err);
        if (!code)
            code = scores_write(&job->scores, job->tool->writer, driver->step, -1, err);
    }
    if (!code && dump_plan) {
        exec_life_go(&job->life, LIFE_STEPS);
        code = driver_write_plan(driver, err);
    }
    progress_end(&job->progress, driver->step, "");
    if (!code && !dump_plan)
        code = follow_step(job, true, err);
    if (!code && !dump_plan && evaluation_is_here(&job->evaluation))
        code = evaluation_end(&job->evaluation,
                              runner_saves(runner) && !runner_saves_together(runner), err);
    if (!code && !more && driver->step < job->limit)
        tool_say(job->tool, "%s: the feeds end after step %" PRId64 " of %" PRId64, driver->name,
                 driver->step, job->limit);
    if (!code && more && runner_was_stopped(runner))
        tool_say(job->tool, "%s: ends after step %" PRId64 ", as another worker was asked to",
                 driver->name, driver->step);
    return code;
}

static const char *graph_name(const struct graph_execution *job)
{
    return job->driver.name        ? job->driver.name
           : request_options.graph ? request_options.graph
                                   : "stdin";
}

/* Sets the last message of a run that a signal asked to end, perhaps before it knew its graph. */
static int interrupted(const struct graph_execution *job, struct error *err)
{
    const char *name = graph_name(job);
    if (job->runner && runner_has_run(job->runner))
        return error_set(err, ERR_CANCELLED, "%s: interrupted after step %" PRId64, name,
                         job->driver.step);
    return error_set(err, ERR_CANCELLED, "%s: interrupted before a step was run%s", name,
                     save_options.path ? "; nothing saved" : "");
}

static int serve_drivers(struct tool *tool, struct error *err)
{
    if (cluster_catch_signals(err))
        return err->code;
    const struct device_options device = device_wanted();
    const struct serve_options options = cluster_serving(tool, &device);
    return serve(&options, err);
}

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    static struct graph_execution job; /* the timer of --grace may outlive this function */
    job.tool = tool;
    int code = cluster_hold_parent_pipe(err);
    if (n_operands && strcmp(operands[0], "serve") != 0)
        return error_set(err, ERR_USAGE, "'%s' is not 'serve'; -g names a graph", operands[0]);
    if (code || n_operands)
        return code ? code : serve_drivers(tool, err);
    job.request = (struct exec_request){.tool = tool, .driver = &job.driver};
    save_options.names = (struct restore_names){restore_as.items, restore_as.n};
    job.saving = (struct saving){.options = &save_options,
                                 .owner = tool->table->tool,
                                 .producer = tool_provenance(tool),
                                 .say = tool_say_line,
                                 .context = tool,
                                 .driver = &job.driver};
    job.evaluation =
        (struct evaluation){.tool = tool, .training = &job.driver, .saving = &job.saving};
    code = set_up(&job, err);
    if (!code && !needs) {
        job.limit = steps >= 0 ? steps : job.driver.feed_reader ? -1 : 1;
        job.limit += job.limit > 0 ? first_step - 1 : 0;
        job.driver.steps_fed = job.limit;
        job.driver.await_feeds = await_feeds;
        job.driver.await_context = tool;
        code = run_steps(&job, err);
    }
    bool cancelled = code == ERR_CANCELLED && atomic_load(&job.driver.at_hand.cancelled);
    bool asked = code == ERR_CANCELLED && job.life != LIFE_STEPS && /* in a wait */
                 (!cancelled || (job.life == LIFE_FEEDS && !cluster_options.task));
    if ((cancelled && !asked) || (code && !asked && job.driver.step)) {
        /* Add what this means for --save, and what the user can do about a NaN. */
        char step[32];
        const char *doing = exec_life_rules[job.life].doing;
        snprintf(step, sizeof step, "step %" PRId64, job.driver.step + dump_plan);
        if (err->code == ERR_CANCELLED)
            error_set(err, ERR_CANCELLED, "%s: %s did not end within %g s of signal %d: cancelled",
                      graph_name(&job), doing ? doing : step, grace, tool_signal());
        error_append(err, "%s%s",
                     job.saving.autosave ? "; this step is not saved"
                     : save_options.path ? "; nothing saved"
                                         : "",
                     !check && err->reason == ERROR_NOT_FINITE ? "; --check finds the origin" : "");
    }
    if ((!code || asked) && !needs) {
        enum exec_end end = exec_life_rules[job.life].end;
        exec_life_go(&job.life, LIFE_ENDS);
        struct error unsettled = ERROR_INIT;
        if (end == END_AT_ONCE) { /* nobody relies on it: this is no failure */
            error_clear(err);
            code = 0;
        } else if (asked && follow_step(&job, true, &unsettled)) {
            *err = unsettled;
            code = err->code;
        } else {
            if (asked)
                evaluation_decline(&job.evaluation);
            code = runner_end(job.runner, end == END_SAVES, code, err);
        }
    }
    if (!code && !needs)
        evaluation_report(&job.evaluation);
    if (job.driver.trace) {
        struct error ignored = ERROR_INIT;
        int failed = record_file_commit(&job.trace, code ? &ignored : err);
        trace_free(job.driver.trace);
        code = code ? code : failed;
    }
    if (!code && tool_signal())
        code = interrupted(&job, err);
    evaluation_close(&job.evaluation);
    scores_release(&job.scores);
    saving_close(&job.saving);
    driver_release(&job.driver);
    runner_close(job.runner);
    exec_life_go(&job.life, LIFE_GONE);
    stream_graph_release(&job.request.joined);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
