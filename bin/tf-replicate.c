/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-replicate: makes a graph that trains one that many workers train.
 */
#include <string.h>

#include "bin/ops_option.h"
#include "cli/tool.h"
#include "graph/graph_io.h"
#include "ops/ops.h"
#include "pass/replicate/replicate.h"

static const char *mode = "sync", *compress, *entry;
static const char *towers;
static int64_t accumulate = 1, workers, in_graph;
static double timeout = 300;
static bool report;

static const struct option_row rows[] = {
    {0, "mode", OPTION_TEXT, &mode, "MODE", "how workers' steps become updates (sync); see below"},
    {0, "accumulate", OPTION_INT, &accumulate, "K",
     "push the mean gradient of K steps, every K steps"},
    {0, "compress", OPTION_TEXT, &compress, "TYPE",
     "bf16 or fp16: variables and gradients cross in 16 bits"},
    {0, "in-graph", OPTION_INT, &in_graph, "N",
     "no workers: one graph with N towers that share what is fed; see below"},
    {0, "towers", OPTION_TEXT, &towers, "DEVICE",
     "of the towers, with a * for the tower's number (/job:worker/task:*)"},
    {0, "entry", OPTION_TEXT, &entry, "NAME", "the entry that trains, if there are several"},
    {0, "workers", OPTION_INT, &workers, "N",
     "that are expected; without it tf-place sets as many as the cluster has"},
    {0, "timeout", OPTION_SECONDS, &timeout, "TIME",
     "that a worker waits for others before it fails (300s); 0: for ever"},
    {0, "report", OPTION_FLAG, &report, NULL, "list on stderr what is new or moved"},
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
        "    downpour,fetch=N,push=M    as async; variables are fetched every N steps, and the sum "
        "of M gradients is pushed; rate=X: what the worker itself steps by in between\n"
        "    allreduce        the workers sum gradients among themselves; there are no shards\n"
        "\n"
        "The entry that trains keeps its name. New are update, which the first shard runs again "
        "and again; join and leave, which a worker runs at its start and at the end of its data.\n"
        "\n"
        "With --in-graph N one driver runs all. What computes with fed rows is there N times, in "
        "towers; of a batch each gets as many rows as the others, or one more. Gradients and other "
        "means become the mean over all rows, what has a value for each row is put together, and "
        "updates are there once. So training alone, with the same batches, gives the same.",
    .examples =
        "tf-graph digits.lua | tf-opt | tf-replicate --mode sync | tf-place -c C | tf-part\n"
        "tf-replicate --mode ssp,bound=3 --compress bf16 digits.tfg -o many.tfg\n"
        "tf-replicate --in-graph 2 --towers '/device:CPU:*' digits.tfg |\n"
        "  tf-place --devices CPU:0,CPU:1 | tf-part > towers.tfg",
    .rows = rows,
    .operands_max = 1,
    .writes_stream = true,
};

static void note(void *context, const char *node, const char *what)
{
    (void)context;
    fprintf(stderr, "%s  %s\n", node, what);
}

static int read_towers(struct replicate_options *options, struct error *err)
{
    if (towers && !in_graph)
        return error_set(err, ERR_USAGE, "--towers says where the towers of --in-graph are");
    if (!in_graph)
        return 0;
    if (in_graph < 2 || in_graph > REPLICATE_TOWERS_MAX)
        return error_set(err, ERR_USAGE, "--in-graph is a number of towers, 2 to %d",
                         REPLICATE_TOWERS_MAX);
    if (strcmp(mode, "sync") != 0 || accumulate > 1 || workers)
        return error_set(err, ERR_USAGE, "--in-graph has no workers, for whom --%s would be",
                         accumulate > 1 ? "accumulate"
                         : workers      ? "workers"
                                        : "mode");
    options->towers = (int)in_graph;
    options->tower_device = towers;
    return 0;
}

static int read_options(struct replicate_options *options, struct error *err)
{
    if (replicate_parse(options, mode, err))
        return err->code;
    if (accumulate < 1 || accumulate > INT32_MAX)
        return error_set(err, ERR_USAGE, "--accumulate is a number of steps");
    if (workers < 0 || workers > INT32_MAX)
        return error_set(err, ERR_USAGE, "--workers is a number of tasks");
    if (compress && strcmp(compress, "bf16") != 0 && strcmp(compress, "fp16") != 0)
        return error_set(err, ERR_USAGE, "--compress is bf16 or fp16, not '%s'", compress);
    if (accumulate > 1 && options->mode == REPLICATE_DOWNPOUR)
        return error_set(err, ERR_USAGE, "--accumulate does what push=M of downpour does");
    if (read_towers(options, err))
        return err->code;
    options->accumulate = (int)accumulate;
    options->workers = (int)workers;
    options->timeout = timeout;
    options->entry = entry;
    options->note = report ? note : NULL;
    if (compress)
        options->wire = *compress == 'b' ? BFLOAT16 : FLOAT16;
    return 0;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct replicate_options options = {0};
    struct stream_reader *reader;
    struct graph *graph = NULL, *replicated = NULL;
    if (read_options(&options, err) || tool_open_writer(tool, 1, err) ||
        tool_open_reader(tool, n ? operands[0] : NULL, &reader, err))
        return err->code;
    int code = graph_read_whole(reader, ops_registry(), &graph, err);
    if (!code && (code = replicate_graph(graph, &options, &replicated, err)))
        error_prefix(err, "%s: ", stream_reader_name(reader));
    if (!code) {
        graph_add_made(replicated, tool_provenance(tool));
        code = graph_write(tool->writer, replicated, err);
    }
    graph_free(replicated);
    graph_free(graph);
    tool_close_reader(reader);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
