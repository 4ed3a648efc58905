/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints facts of all tasks' graphs that tf-run needs, as shell assignments on stdout: `holders`,
 * which tasks have the variables; `stray`, a variable because of which nobody can save them all;
 * `served`, 1 if the shards have anything to do. Fails if shards are to resume a store whose newest
 * checkpoint lacks a variable: all would get initial values.
 */
#include <string.h>

#include "bin/ops_option.h"
#include "checkpoint/variables/slices.h"
#include "exec/step/collective_kernel.h"
#include "graph/cluster.h"
#include "graph/holders.h"
#include "graph/join.h"
#include "ops/ops.h"

static const struct option_row rows[] = {OPS_OPTION_ROW, TOOL_COMMON_ROWS, {0}};

static const struct option_table table = {
    .tool = "tf-run",
    .summary = "what there is to know of the parts of a job",
    .operands = "PARTS [STORE]",
    .description = "Prints who has the variables, for tf-run.",
    .examples = "parts JOB/parts.tfg",
    .rows = rows,
    .operands_max = 2,
};

/* Returns whether any node runs on a shard of the cluster, or sums go through the shards. */
static bool uses_shards(const struct graph *graph)
{
    graph_each(node, graph) {
        struct device_name name;
        struct error ignored = ERROR_INIT;
        if ((!device_name_parse(&name, node->assigned, &ignored) && !strcmp(name.job, SHARD_JOB)) ||
            (node_round(node) == ROUND_REDUCE && collective_by_servers(node)))
            return true;
    }
    return false;
}

static bool may_lack(void *context, const struct node *node)
{
    (void)context;
    return !holders_must_save(node);
}

static int check_resumed(const char *path, const struct graph *graph, struct error *err)
{
    const struct load_request wanted = {.graph = graph, .may_lack = may_lack};
    struct store *store;
    struct checkpoint *newest;
    if (!store_exists(path) || store_open(path, NULL, &store, err))
        return err->code;
    if (!checkpoint_open(store, CHECKPOINT_NEWEST, &newest, NULL, err)) {
        checkpoint_load_variables(newest, &wanted, NULL, err);
        checkpoint_close(newest);
    }
    store_close(store);
    return err->code;
}

static int run(struct tool *tool, int n_operands, char **operands, struct error *err)
{
    struct stream_reader *reader;
    struct stream_graph joined = {.graph = NULL};
    if (tool_open_reader(tool, n_operands ? operands[0] : NULL, &reader, err))
        return err->code;
    if (!stream_graph_read(reader, ops_registry(), &joined, err)) {
        const struct node *one;
        const enum holders holders = holders_of(joined.graph, &one);
        struct str stray = STR_INIT, quoted = STR_INIT;
        FILE *out;
        if (n_operands > 1 && holders == HOLDERS_SHARDS &&
            check_resumed(operands[1], joined.graph, err) == ERR_NOINPUT)
            error_clear(err); /* nothing was saved */
        if (!err->code && !tool_open_text(tool, &out, err)) {
            if (one)
                str_printf(&stray, "%s is on %s", node_text(one), one->assigned);
            str_append_quoted(&quoted, str_text(&stray));
            fprintf(out, "holders=%s\nserved=%s\nstray=%s\n", holders_words[holders],
                    uses_shards(joined.graph) ? "1" : "", quoted.data);
            str_release(&stray);
            str_release(&quoted);
        }
    }
    stream_graph_release(&joined);
    tool_close_reader(reader);
    return err->code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
