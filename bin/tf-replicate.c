/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-replicate: turns a graph that trains into one that many workers train.
 */
#include <string.h>

#include "bin/filter.h"
#include "bin/ops_option.h"
#include "graph/device_name.h"
#include "pass/dense/dense.h"
#include "pass/grid/grid.h"
#include "pass/replicate/replicate.h"
#include "resource/policy.h"

static struct filter filter;
static const char *mode = "sync", *compress, *entry;
static const char *towers, *pipeline, *grid;
static struct replicate_options options;
static struct pass_options told;
static struct grid_options tiles;                                        /* with --grid */
static int64_t accumulate = 1, workers = -1, in_graph = -1, stages = -1; /* -1: not given */
static int64_t replica_tasks = 1, assume = 32;
static double timeout = 300;
static bool report, explain;

static const struct option_row rows[] = {
    {0, "mode", OPTION_TEXT, &mode, "MODE",
     "how workers' steps become updates (sync): sync; sync,backup=B; async;\n"
     "ssp,bound=S; downpour,fetch=N,push=M; sync,update=worker; allreduce; auto; all: --man"},
    {0, "accumulate", OPTION_NATURAL, &accumulate, "K",
     "push the mean gradient of K steps, every K steps"},
    {0, "compress", OPTION_TEXT, &compress, "TYPE",
     "bf16 or fp16: variables and gradients cross in 16 bits"},
    {0, "in-graph", OPTION_NATURAL, &in_graph, "N",
     "no workers: one graph with N towers that share what is fed"},
    {0, "grid", OPTION_TEXT, &grid, "ROWSxCOLUMNS",
     "no workers: one graph whose images are cut into so many tiles"},
    {0, "towers", OPTION_TEXT, &towers, "DEVICE",
     "of the towers or tiles, with a * for the number (/job:worker/task:*)"},
    {0, "pipeline", OPTION_TEXT, &pipeline, "ORDER",
     "towers are micro-batches, and stages the script's devices: 1f1b, 1f1b,flight=N, gpipe"},
    {0, "stages", OPTION_NATURAL, &stages, "N",
     "make N stages of a script without devices, the devices those of --towers"},
    {0, "entry", OPTION_TEXT, &entry, "NAME", "the entry that trains, if there are several"},
    {0, "workers", OPTION_NATURAL, &workers, "N",
     "that are expected; without it tf-place sets as many as the cluster has"},
    {0, "replica-tasks", OPTION_NATURAL, &replica_tasks, "G",
     "of each worker: the script's /job:worker/task:k is the k-th of each group of G tasks"},
    {'c', "cluster", OPTION_TEXT, &filter.cluster_path, "FILE",
     "the cluster, for what its workers and links decide"},
    {0, "costs", OPTION_TEXT, &filter.costs_path, "FILE", "measured times, from tf-show --costs"},
    {0, "assume", OPTION_NATURAL, &assume, "N", "what an unknown dimension counts as (32)"},
    {0, "timeout", OPTION_SECONDS, &timeout, "TIME",
     "that a worker waits for others before it fails (300s); 0: for ever"},
    {0, "report", OPTION_FLAG, &report, NULL, "list on stderr what is new or moved"},
    {0, "explain", OPTION_FLAG, &explain, NULL,
     "list on stderr what each gradient costs to exchange, in each way"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_table table = {
    .tool = "tf-replicate",
    .summary = "let many workers train a graph",
    .operands = "[FILE]",
    .description =
        "Reads a graph that trains and writes one for many workers. What a worker computes is "
        "there once, on /job:worker/task:*, for each of them; variables and their optimizer go to "
        "/job:ps, where tf-place spreads them over the shards. Gradients are cut where minimize() "
        "hands them over.\n"
        "\n"
        "MODE is one of\n"
        "    sync             every worker counts in every step: same seed, same bits\n"
        "    sync,backup=B    of n workers the first n-B count; what comes later is late, and "
        "counted\n"
        "    async            a push is applied when it comes\n"
        "    ssp,bound=S      as async, but nobody is more than S steps ahead of the slowest\n"
        "    downpour         as async; workers step by themselves between fetches and pushes\n"
        "    allreduce        the workers sum gradients among themselves; there are no shards\n"
        "    auto             sync, sync,update=worker or allreduce, each with factors=auto: what "
        "takes the least time in the cluster (-c), which --explain shows\n"
        "with words behind it, each after a comma:\n"
#define WORD(key, takers, usage, read, field, help) help
#include "pass/replicate/mode_words.def"
#undef WORD
        "\n"
        "The entry that trains keeps its name. New are update, which the first shard runs again "
        "and again; join and leave, which a worker runs at its start and at the end of its data; "
        "with codes rest, in which it gives shards what its codes have lost, for a checkpoint.\n"
        "\n"
        "With --in-graph N one driver runs all. What computes with fed rows is there N times, in "
        "towers; of a batch each gets as many rows as the others, or one more. Gradients and other "
        "means become the mean over all rows, what has a value for each row is put together, and "
        "updates are there once. So training alone, with the same batches, gives the same.\n"
        "\n"
        "With --pipeline a node stays where the script asked for, and so does its gradient: each "
        "device that forward nodes ask for is a stage, which takes one micro-batch after the "
        "other. With 1f1b stage s of S has at most S-s of them forward and not yet back (flight=N: "
        "and at most N), with gpipe all.\n"
        "\n"
        "With --grid 2x2 one driver runs all, too. Images are cut along height and width into "
        "tiles, each on a device of its own, from the first convolution or pooling to the last: "
        "devices send each other the halo, what windows see of the neighbours' tiles, and back "
        "what flows to it. Shared filters are there once; a filter for each position is with its "
        "tile. What has no tiles is with the first.",
    .examples =
        "tf-graph digits.lua | tf-opt | tf-replicate --mode sync | tf-place -c C | tf-part\n"
        "tf-replicate --mode ssp,bound=3 --compress bf16 digits.tfg -o many.tfg\n"
        "tf-replicate --mode allreduce,factors=auto -c C --explain digits.tfg | tf-place -c C\n"
        "tf-replicate --in-graph 2 --towers '/device:CPU:*' digits.tfg |\n"
        "  tf-place --devices CPU:0,CPU:1 | tf-part > towers.tfg\n"
        "tf-replicate --grid 2x2 cnn.tfg | tf-place -c C | tf-part --report > tiles.tfg",
    .rows = rows,
    .operands_max = 1,
    .writes_stream = true,
};

static void note(void *context, const char *node, const char *what)
{
    (void)context;
    fprintf(stderr, "%s  %s\n", node, what);
}

/* Checks a number. 0 is refused, so that from here on it stands for one that was not given. */
static int read_number(const char *name, const char *what, int most, int64_t *number,
                       struct error *err)
{
    if (*number != -1 && (*number < 1 || *number > most))
        return error_set(err, ERR_USAGE, "--%s is a number of %s, 1 to %d, not %lld", name, what,
                         most, (long long)*number);
    *number = *number == -1 ? 0 : *number;
    return 0;
}

static int read_options(struct error *err)
{
    if (replicate_parse(&options, mode, err) ||
        read_number("accumulate", "steps", INT32_MAX, &accumulate, err) ||
        read_number("workers", "workers", REPLICATE_WORKERS_MAX, &workers, err) ||
        read_number("in-graph", "towers", INT32_MAX, &in_graph, err) ||
        read_number("stages", "stages", REPLICATE_TOWERS_MAX, &stages, err))
        return err->code;
    if (compress && strcmp(compress, "bf16") != 0 && strcmp(compress, "fp16") != 0)
        return error_set(err, ERR_USAGE, "--compress is bf16 or fp16, not '%s'", compress);
    if (accumulate > 1 && options.mode == REPLICATE_DOWNPOUR)
        return error_set(err, ERR_USAGE, "--accumulate does what push=M of downpour does");
    if (replica_tasks < 1 || replica_tasks > DEVICE_GROUP_MAX)
        return error_set(err, ERR_USAGE, "--replica-tasks is a number of tasks, 1 to %d",
                         DEVICE_GROUP_MAX);
    if (in_graph && (in_graph < 2 || in_graph > REPLICATE_TOWERS_MAX))
        return error_set(err, ERR_USAGE, "--in-graph is a number of towers, 2 to %d",
                         REPLICATE_TOWERS_MAX);
    if (grid && !grid_parse(&tiles, grid))
        return error_set(err, ERR_USAGE, "--grid is ROWSxCOLUMNS of 2 to %d tiles, not '%s'",
                         GRID_CELLS_MAX, grid);
    const char *alone = grid ? "grid" : in_graph ? "in-graph" : NULL;
    const char *of_workers = grid && in_graph       ? "in-graph"
                             : accumulate > 1       ? "accumulate"
                             : workers              ? "workers"
                             : grid && compress     ? "compress"
                             : strcmp(mode, "sync") ? "mode"
                                                    : NULL;
    if (alone && explain)
        return error_set(err, ERR_USAGE,
                         "--explain compares what workers can send, and --%s has none", alone);
    if (alone && of_workers)
        return error_set(err, ERR_USAGE, "--%s has no workers, for whom --%s would be", alone,
                         of_workers);
    if (replica_tasks > 1 && (alone || options.mode == REPLICATE_ALLREDUCE))
        return error_set(err, ERR_USAGE, "--replica-tasks is about workers with shards, not --%s%s",
                         alone ? alone : "mode ", alone ? "" : replicate_mode_name(&options));
    if (towers && !alone)
        return error_set(
            err, ERR_USAGE,
            "--towers says where the towers of --in-graph are, or the tiles of --grid");
    if ((pipeline || stages) && !in_graph)
        return error_set(err, ERR_USAGE, "--%s is about the towers of --in-graph",
                         pipeline ? "pipeline" : "stages");
    if (stages && !pipeline)
        return error_set(err, ERR_USAGE, "--stages is about a --pipeline");
    if (pipeline && towers && !stages)
        return error_set(err, ERR_USAGE,
                         "--towers is, with --pipeline, for what --stages makes; without it the "
                         "script says where its stages are");
    if (pipeline && replicate_parse_pipeline(&options, pipeline, err))
        return err->code;
    tiles.device = options.tower_device = towers;
    told.note = report ? note : NULL;
    tiles.pass = options.pass = &told;
    options.towers = (int)in_graph;
    options.stages = (int)stages;
    options.replica_tasks = (int)replica_tasks;
    options.accumulate = (int)accumulate;
    options.workers = (int)workers;
    options.timeout = timeout;
    options.entry = entry;
    options.assume = assume;
    options.explain = explain ? filter_print_line : NULL;
    if (compress)
        options.wire = *compress == 'b' ? BFLOAT16 : FLOAT16;
    return 0;
}

static int check_model(struct filter *f, struct error *err)
{
    if (read_options(err) || filter_read_model(f, err))
        return err->code;
    options.cluster = f->cluster_path ? &f->cluster : NULL;
    options.measured = f->costs_path ? &f->costs : NULL;
    if (options.mode == REPLICATE_POLICY && replicate_workers(&options) > 0 &&
        policy_check_workers(options.policy, replicate_workers(&options), err))
        return err->code = ERR_USAGE;
    if (explain && !workers && !(f->cluster_path && cluster_count(&f->cluster, "worker")))
        return error_set(err, ERR_USAGE,
                         "--explain depends on the number of workers: give -c or --workers");
    return 0;
}

/* Schemes b and c have a pass for each worker. */
static int cut_dense(struct filter *f, struct error *err)
{
    int n = replicate_workers(&options);
    const struct dense_options dense = {.pass = options.pass,
                                        .passes = n,
                                        .by_worker = options.dense == 'b',
                                        .update_each = options.update_each};
    struct graph *passes, *cut;
    if (options.dense != 'a') {
        if (n < 1 || n > DENSE_PASSES_MAX)
            return error_set(err, ERR_USAGE,
                             "dense=%c has a pass for each worker, 1 to %d: give -c or --workers",
                             options.dense, DENSE_PASSES_MAX);
        if (dense_passes(f->graph, &dense, &passes, err))
            return err->code;
        filter_add(f, passes);
    }
    if (!dense_graph(filter_last(f), &dense, &cut, err))
        filter_add(f, cut);
    return err->code;
}

static int add_workers(struct filter *f, struct error *err)
{
    struct graph *made;
    bool by_factors = options.factors != FACTORS_NONE || options.mode == REPLICATE_AUTO;
    if (options.measured)
        cost_scale_cores(&f->cluster, f->graph, &f->costs, assume);
    if (grid) {
        if (grid_graph(f->graph, &tiles, &made, err))
            return err->code;
        filter_add(f, made);
        /* tiles are on shards, which make checkpoints of their variables */
        return towers && str_starts(towers, "/job:ps/")
                   ? replicate_grid_clock(made, entry, timeout, err)
                   : 0;
    }
    if (options.dense && cut_dense(f, err))
        return err->code;
    if (by_factors) {
        if (replicate_part_terms(filter_last(f), &made, err))
            return err->code;
        filter_add(f, made);
    }
    if (!replicate_graph(filter_last(f), &options, &made, err))
        filter_add(f, made);
    return err->code;
}

int main(int argc, char **argv)
{
    filter.check = check_model;
    filter.rewrite = add_workers;
    return filter_main(&filter, &table, argc, argv);
}
