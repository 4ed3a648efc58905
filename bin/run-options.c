/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of tf-run, a shell script that calls this program (bin/script_options.h). It also
 * assigns wants_shards, verb, graph_file and task, and sets the words of the feed command as the
 * script's arguments. It runs `status` and `stop` itself, so that their errors are tf-run's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "bin/script_options.h"
#include "checkpoint/formats/source.h"
#include "checkpoint/job/autosave.h"
#include "checkpoint/store/store.h"
#include "cli/tool.h"
#include "pass/grid/grid.h"
#include "pass/replicate/replicate.h"
#include "resource/policy.h"
#include "show/columns.h"
#include "supervise/job_state.h"
#include "supervise/supervise.h"

#define UNSET SCRIPT_UNSET

static struct {
    int64_t shards, workers, replica_tasks, accumulate, fetch_every, fetch_limit, steps, seed, keep,
        threads;
    const char *cluster, *mode, *grid, *compress, *run, *save, *save_every, *save_best, *run_name,
        *restore, *job;
    const char *key_file, *ops, *max_restarts;
    struct option_list fetch;
    double lease, timeout;
    const char *trace;
    bool resume, no_key, deterministic, exact, check, dry_run, json, follow;
} options = {.shards = UNSET,
             .workers = 1,
             .replica_tasks = UNSET,
             .accumulate = UNSET,
             .fetch_every = UNSET,
             .fetch_limit = UNSET,
             .steps = UNSET,
             .seed = UNSET,
             .keep = UNSET,
             .threads = UNSET,
             .lease = 3,
             .timeout = 30};

static struct {
    const char *entry, *feed, *every, *stop, *reduce;
    bool split;
} evaluation_options;    /* of bin/evaluation_rows.def */
static int feed_command; /* the index of its first word */
static struct replicate_options parsed_mode;
static char mode_help[1280];
static const char *const mode_words[] = {
#define WORD(key, takers, usage, read, field, help) usage,
#include "pass/replicate/mode_words.def"
#undef WORD
};

static const struct option_row rows[] = {
    {0, "ps", OPTION_NATURAL, &options.shards, "K",
     "parameter shards to start on this machine (1; with --grid one a tile, with --mode allreduce "
     "none)"},
    {0, "workers", OPTION_NATURAL, &options.workers, "N", "workers to start on this machine (1)"},
    {0, "replica-tasks", OPTION_NATURAL, &options.replica_tasks, "G",
     "tasks of each worker: the first drives, the others serve it; see tf-replicate"},
    {0, "grid", OPTION_TEXT, &options.grid, "ROWSxCOLUMNS",
     "images in as many tiles, each on a shard; one worker drives them; see tf-replicate"},
    {'c', "cluster", OPTION_TEXT, &options.cluster, "FILE",
     "the cluster, instead: its tasks and their addresses; other hosts by ssh"},
    {0, "mode", OPTION_TEXT, &options.mode, "MODE", mode_help},
    {0, "accumulate", OPTION_NATURAL, &options.accumulate, "N",
     "a worker's gradients are summed over N steps before they are pushed"},
    {0, "compress", OPTION_TEXT, &options.compress, "TYPE",
     "bf16 or fp16: gradients cross in 16 bits"},
    {0, "run", OPTION_TEXT, &options.run, "ENTRY", "what a worker runs in each step (train)"},
    {0, "fetch", OPTION_LIST, &options.fetch, "A,B",
     "tensors that workers write in each step, to JOB/worker-N.rec"},
    {0, "fetch-every", OPTION_NATURAL, &options.fetch_every, "N",
     "write them after every N steps only: worker-N.rec of a long job grows"},
    {0, "fetch-limit", OPTION_BYTES, &options.fetch_limit, "BYTES",
     "begin worker-N.rec anew when it has as many, as 100M; one older is kept"},
#include "bin/evaluation_rows.def"
    {0, "steps", OPTION_NATURAL, &options.steps, "N", "steps of each worker (until its feed ends)"},
    {0, "seed", OPTION_INT, &options.seed, "N", "seed of the random ops (0)"},
    {0, "save", OPTION_TEXT, &options.save, "DIR/", "a store for checkpoints, see tf-ckpt"},
    {0, "save-every", OPTION_TEXT, &options.save_every, "N|TIME",
     "a checkpoint every N rounds, or steps, or every 30s"},
    {0, "save-best", OPTION_TEXT, &options.save_best, "METRIC",
     "the best by this fetch is DIR@best, and stays, too; METRIC:min, METRIC:max; of shards the "
     "best that --save-every makes, else of all steps"},
    {0, "keep", OPTION_NATURAL, &options.keep, "N",
     "checkpoints to keep (5; where workers update: all)"},
    {0, "run-name", OPTION_TEXT, &options.run_name, "NAME",
     "of this run, by which a store tells it from others"},
    {0, "resume", OPTION_FLAG, &options.resume, NULL,
     "go on from the newest checkpoint in --save, if there is one"},
    {0, "restore", OPTION_TEXT, &options.restore, "CKPT",
     "begin with these values, of a store or a file"},
    {0, "job", OPTION_TEXT, &options.job, "DIR", "the directory of the job (a temporary one)"},
    {0, "key-file", OPTION_TEXT, &options.key_file, "FILE",
     "the key of the cluster, for TCP (one is made for the job)"},
    {0, "no-key", OPTION_FLAG, &options.no_key, NULL, "TCP without a key, on loopback only"},
    {0, "check", OPTION_FLAG, &options.check, NULL,
     "workers stop at the first NaN or infinite value, and name the op"},
    {0, "trace", OPTION_TEXT, &options.trace, "DIR", "a file of what ran when, of each worker"},
    {0, "ops", OPTION_TEXT, &options.ops, "FILE.so",
     "ops of your own, for all tasks; on other hosts, too, by this name"},
    {0, "threads", OPTION_NATURAL, &options.threads, "N",
     "threads of each worker (cores over workers)"},
    {0, "deterministic", OPTION_FLAG, &options.deterministic, NULL,
     "the same bits whatever the number of threads"},
    {0, "exact", OPTION_FLAG, &options.exact, NULL, "no Winograd, no FFT, see tf-exec"},
    {0, "max-restarts", OPTION_TEXT, &options.max_restarts, "N[/TIME]",
     "how often what died is started again, or how often in a time (5)"},
    {0, "lease", OPTION_SECONDS, &options.lease, "TIME", "how long a task may be silent (3s)"},
    {0, "timeout", OPTION_SECONDS, &options.timeout, "TIME",
     "how long to wait for tasks, and for what others have to send (30s)"},
    {0, "dry-run", OPTION_FLAG, &options.dry_run, NULL,
     "print the commands instead of running them"},
    {0, "json", OPTION_FLAG, &options.json, NULL, "as JSON"},
    {0, "follow", OPTION_FLAG, &options.follow, NULL, "go on until the job ends"},
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_verb verbs[] = {
    {"", "[GRAPH] [-- FEED COMMAND...]", "train a graph, a file or stdin",
     "ps workers replica-tasks grid cluster mode accumulate compress run fetch fetch-every "
     "fetch-limit eval eval-feed eval-every eval-split stop-when reduce check trace steps seed "
     "save save-every save-best keep run-name resume restore key-file no-key ops threads "
     "deterministic exact max-restarts lease timeout dry-run"},
    {"status", "", "the state of the job in --job DIR", "json"},
    {"logs", "[TASK]", "what its tasks have said, by time; or one, as worker:0", "follow"},
    {"stop", "", "end it, as TERM does, and wait for its end", NULL},
    {NULL, NULL, NULL, NULL}};

static const struct option_need needs[] = {
    {"save-every save-best keep run-name resume", "save"},
    {"save-best", "fetch eval"},
    {"eval-feed eval-every eval-split stop-when reduce", "eval"},
    {"reduce", "eval-split"},
    {"stop-when reduce", "eval-every"},
    {"fetch-every fetch-limit", "fetch"},
    {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-run",
    .summary = "run a distributed training job",
    .operands = "[GRAPH | status | logs [TASK] | stop] [-- FEED COMMAND...]",
    .description =
        "Trains a graph (a file, or stdin) on parameter shards and workers. The feed command runs "
        "for each worker, with TF_SHARD=0/2 and so on, and writes what the worker is fed.\n"
        "\n"
        "INT, TERM and stop end the job, after a checkpoint if --save; two signals kill it. The "
        "exit status is 0, or that of the first task that failed for good, as of tf-exec(1).",
    .examples =
        "tf-graph m.lua | tf-opt | tf-run --ps 2 --workers 2 --save ckpt/ -- ./feed --batch 32\n"
        "tf-run -c lab.cluster --key-file lab.key --mode async --resume --save ckpt/ m.tfg -- "
        "./feed\n"
        "tf-run stop --job run",
    .rows = rows,
    .verbs = verbs,
    .needs = needs,
    .operands_max = 2,
    .command = &feed_command,
};

/* ---- checks ---- */

static const struct {
    const char *name;
    const int64_t *value, least, most;
} bounds[] = {
    {"ps", &options.shards, 0, REPLICATE_WORKERS_MAX},
    {"workers", &options.workers, 1, REPLICATE_WORKERS_MAX},
    {"replica-tasks", &options.replica_tasks, 1, DEVICE_GROUP_MAX},
    {"threads", &options.threads, 0, TOOL_THREADS_MOST},
    {"fetch-every", &options.fetch_every, 1, INT64_MAX},
};

/* Sets a default. An empty text counts as none: it may be an unset variable of a script. */
static void set_default(const char **text, const char *otherwise)
{
    if (!*text || !**text)
        *text = otherwise;
}

/* Returns the number of tiles of --grid; 0: the text is no grid. */
static int64_t tile_count(void)
{
    struct grid_options grid;
    return grid_parse(&grid, options.grid) ? (int64_t)grid.rows * grid.columns : 0;
}

static int check_options(const char *graph, struct error *err)
{
    int64_t max;
    double within;
    struct interval every;
    if (parsed_mode.mode == REPLICATE_AUTO)
        return error_set(err, ERR_USAGE,
                         "--mode auto is tf-replicate's; its --explain says which mode is taken");
    if (!(options.lease > 0))
        return error_set(err, ERR_USAGE, "--lease %gs: above 0", options.lease);
    if (options.key_file && *options.key_file && access(options.key_file, R_OK))
        return error_set_errno(err, file_error_code(), "--key-file %s", options.key_file);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        int64_t n = *bounds[i].value, least = bounds[i].least, most = bounds[i].most;
        if (n != UNSET && (n < least || n > most))
            return error_set(err, ERR_USAGE, "--%s %" PRId64 ": at %s %" PRId64, bounds[i].name, n,
                             n < least ? "least" : "most", n < least ? least : most);
    }
    if (options.fetch_limit > 0 && options.fetch_limit < TOOL_LIMIT_LEAST)
        return error_set(err, ERR_USAGE, "--fetch-limit %" PRId64 ": at least %d",
                         options.fetch_limit, TOOL_LIMIT_LEAST);
    if (options.steps > 0 && options.accumulate > options.steps)
        return error_set(err, ERR_USAGE,
                         "--accumulate %" PRId64 ": --steps %" PRId64 " make no push: nothing "
                         "would be trained",
                         options.accumulate, options.steps);
    if (!str_to_budget(options.max_restarts, &max, &within) || max > SUPERVISE_RESTARTS_MAX)
        return error_set(err, ERR_USAGE,
                         "--max-restarts %s: a number up to %d, or one a time, as in 5/1h",
                         options.max_restarts, SUPERVISE_RESTARTS_MAX);
    if (options.save_every && *options.save_every &&
        interval_parse(options.save_every, &every, err))
        return error_prefix(err, "--save-every: ");
    if (options.save && !str_ends(options.save, "/"))
        return error_set(err, ERR_USAGE, "--save %s: a folder is wanted, as in %s/", options.save,
                         options.save);
    bool is_here = !options.cluster && !getenv("TF_CONFIG") && !getenv("SLURM_JOB_NODELIST");
    if (options.save && is_here && store_check_place(options.save, err))
        return error_prefix(err, "--save %s: ", options.save);
    struct source source;
    if (options.restore && *options.restore && is_here &&
        !(options.resume && options.save && store_exists(options.save))) {
        if (source_open(options.restore, &source, err))
            return error_prefix(err, "--restore ");
        source_close(&source);
    }
    /* Tiles run on the shards, which thus save the tiles' variables. tf-replicate refuses the other
     * options that a grid does not support. */
    if (options.grid) {
        if (!tile_count())
            return error_set(err, ERR_USAGE, "--grid is ROWSxCOLUMNS of 2 to %d tiles, not '%s'",
                             GRID_CELLS_MAX, options.grid);
        if (options.workers != 1)
            return error_set(err, ERR_USAGE, "--grid has one worker, which drives all tiles");
        if (!options.cluster && options.shards < tile_count())
            return error_set(err, ERR_USAGE,
                             "--grid %s: %" PRId64 " tiles want as many shards, not %" PRId64,
                             options.grid, tile_count(), options.shards);
    }
    if (!graph && isatty(STDIN_FILENO))
        return error_set(err, ERR_USAGE,
                         "no graph: name a file, or pipe one in: tf-graph m.lua | tf-opt | "
                         "tf-run ...");
    if (!graph || !strcmp(graph, "-"))
        return 0;
    if (access(graph, R_OK))
        return error_set(err, file_error_code(), "%s: %s%s", graph, strerror(errno),
                         str_hint(graph, (const char *[]){"status", "logs", "stop", NULL}));
    struct stat status;
    bool is_folder = !stat(graph, &status) && S_ISDIR(status.st_mode);
    return is_folder ? error_set(err, ERR_DATA, "%s: is a directory", graph) : 0;
}

/* ---- the verbs that ask the supervisor ---- */

static void print_tasks(json_t *tasks, struct str *out)
{
    struct columns columns = {.n = 5};
    size_t i;
    json_t *task;
    const char *const heads[] = {"TASK", "PID", "STATE", "RESTARTS", "LAST"};
    for (i = 0; i < sizeof heads / sizeof *heads; i++)
        columns_add(&columns, "%s", heads[i]);
    json_array_foreach(tasks, i, task)
    {
        const char *name = "?", *state = "?", *ended = "";
        json_int_t pid = 0, restarts = 0;
        json_unpack(task, "{s:s, s:I, s:s, s:I, s:s}", "task", &name, "pid", &pid, "state", &state,
                    "restarts", &restarts, "ended", &ended);
        columns_add(&columns, "%s", name);
        columns_add(&columns, pid ? "%lld" : "-", (long long)pid);
        columns_add(&columns, "%s", state);
        columns_add(&columns, "%lld", (long long)restarts);
        columns_add(&columns, "%s", *ended ? ended : "-");
    }
    columns_print(&columns, out);
}

/* Prints the state of a job (supervise/job_state.h), a line for the job and one per task. Text that
 * is no state is printed unchanged. */
static void print_job(const struct str *state, struct str *out)
{
    json_t *all = json_loads(str_text(state), 0, NULL);
    const char *phase, *why = "", *most = "?";
    json_int_t step = 0, restarts = 0, result = 0;
    json_t *tasks = NULL;
    if (json_unpack(all, "{s:s, s:s, s:I, s:I, s:s, s:I, s:o}", "state", &phase, "why", &why,
                    "step", &step, "restarts", &restarts, "max_restarts", &most, "result", &result,
                    "tasks", &tasks)) {
        str_append(out, str_text(state));
    } else {
        str_printf(out, "job %s: %s%s%s%s, step %lld, %lld of %s restarts", options.job, phase,
                   *why ? " (" : "", why, *why ? ")" : "", (long long)step, (long long)restarts,
                   most);
        if (!strcmp(phase, "over") || result)
            str_printf(out, ", exit %lld", (long long)result);
        str_append_char(out, '\n');
        print_tasks(tasks, out);
    }
    json_decref(all);
}

static int ask_job(bool is_stop, struct error *err)
{
    struct str state = STR_INIT, text = STR_INIT;
    if (!job_state_ask(options.job, is_stop, &state, err) && !is_stop) {
        if (!options.json)
            print_job(&state, &text);
        fputs(str_text(options.json ? &state : &text), stdout);
    }
    str_release(&state);
    str_release(&text);
    return err->code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    const char *operand = n ? operands[0] : NULL;
    bool is_logs = n && !strcmp(operand, "logs");
    bool is_verb = is_logs || (n && (!strcmp(operand, "status") || !strcmp(operand, "stop")));
    const char *verb = is_verb ? operand : NULL, *graph = is_verb ? NULL : operand;
    if (n > 1 && !is_logs)
        return error_set(err, ERR_USAGE, "extra operand '%s'", operands[1]);
    set_default(&options.mode, "sync");
    set_default(&options.run, "train");
    set_default(&options.max_restarts, "5");
    set_default(&options.save, NULL);
    set_default(&options.grid, NULL);
    if (!is_verb && replicate_parse(&parsed_mode, options.mode, err))
        return err->code;
    bool wants_shards = parsed_mode.mode != REPLICATE_ALLREDUCE || parsed_mode.by_servers;
    if (options.shards == UNSET)
        options.shards = options.grid ? tile_count() : wants_shards;
    if (is_verb && (!options.job || !*options.job))
        return error_set(err, ERR_USAGE, "%s: which job? --job DIR", verb);
    if (!is_verb && check_options(graph, err))
        return err->code;
    if (is_verb && !is_logs) /* the script closes the descriptor when it wants the reply */
        return fcntl(SCRIPT_FD, F_GETFD) < 0 ? ask_job(!strcmp(verb, "stop"), err) : 0;
    struct str out = STR_INIT;
    script_assign_options(&out, rows);
    script_assign(&out, "wants_shards", wants_shards ? "1" : "");
    script_assign(&out, "verb", verb);
    script_assign(&out, "graph_file", graph);
    script_assign(&out, "task", is_logs && n > 1 ? operands[1] : NULL);
    script_assign_words(&out, operands + feed_command, tool->argc - feed_command);
    return script_write(&out, err);
}

int main(int argc, char **argv)
{
    /* A policy's line comes from its row; the other modes have none. */
    struct str text = STR_INIT;
    str_append(&text,
               "how workers work together (sync); with words, MODE,WORD,..., see tf-replicate "
               "--man:");
    for (size_t i = 0; i < sizeof mode_words / sizeof *mode_words; i++)
        if (*mode_words[i])
            str_printf(&text, "%s %s", text.data[text.n - 1] == ':' ? "" : ",", mode_words[i]);
    for (const struct policy_kind *const *kind = policy_kinds; *kind; kind++)
        str_printf(&text, "\n  %-23s  %s", (*kind)->usage, (*kind)->doc);
    str_printf(&text, "\n  %-23s  %s", "sync,update=worker",
               "as allreduce; shards add, and pass on, what workers have");
    str_printf(&text, "\n  %-23s  %s\n  %-23s  %s", "downpour,fetch=N,push=M",
               "async, with a fetch every N steps and a push every M", "allreduce",
               "the workers sum among themselves, without shards");
    BUG_ON(text.n >= sizeof mode_help);
    memcpy(mode_help, text.data, text.n + 1);
    str_release(&text);
    return tool_main(&table, run, argc, argv);
}
