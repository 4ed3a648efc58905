/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-ps: a parameter shard, which keeps variables between steps, sessions and workers.
 */
#include <inttypes.h>
#include <string.h>

#include "bin/cluster_options.h"
#include "ops/ops.h"

static int64_t threads;
static bool deterministic;

static const struct option_row rows[] = {
#include "bin/cluster_rows.def"
    {0, "threads", OPTION_INT, &threads, "N", "threads to compute with (as many as cores)"},
    {0, "deterministic", OPTION_FLAG, &deterministic, NULL,
     "the same bits whatever the number of threads"},
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_table table = {
    .tool = "tf-ps",
    .summary = "a parameter shard",
    .operands = "serve",
    .description =
        "serve: waits for drivers (tf-exec), keeps the variables that they place on this task, and "
        "runs their updates. SIGTERM ends it.",
    .examples = "tf-ps serve -c my.cluster --task ps:0",
    .rows = rows,
    .operands_max = 1,
};

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    if (!n_operands || strcmp(operands[0], "serve") != 0)
        return error_set(err, ERR_USAGE, "what to do? tf-ps serve");
    if (threads < 0 || threads > 4096)
        return error_set(err, ERR_USAGE, "--threads %" PRId64 " makes no sense", threads);
    tool_catch_signals();
    struct serve_options options = cluster_serving(tool, (int)threads, deterministic);
    int code = cluster_hold_lifeline(err);
    return code ? code : serve(&options, err);
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
