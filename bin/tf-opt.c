/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-opt: simplifies a graph.
 */
#include "bin/ops_option.h"
#include "cli/tool.h"
#include "exec/session/evaluate.h"
#include "graph/graph_io.h"
#include "ops/ops.h"
#include "pass/pass.h"

#define PASSES_MAX 16

static struct option_list passes, keep;
static bool report;

static const struct option_row rows[] = {
    {0, "passes", OPTION_LIST, &passes, "PASS,...",
     "only these, in this order: prune, arith, fold, cse\n"
     "(all, until nothing changes)"},
    {0, "keep", OPTION_LIST, &keep, "NAME,...",
     "leave these tensors as they are, to be fetched or fed"},
    {0, "report", OPTION_FLAG, &report, NULL,
     "say on stderr what each pass changed; with -v, which nodes"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_table table = {
    .tool = "tf-opt",
    .summary = "simplify a graph",
    .operands = "[FILE]",
    .description =
        "Reads a graph and writes one that computes the same, to the bit, with fewer nodes. The "
        "passes run in turn until none changes anything, ten rounds at most:\n"
        "\n"
        "prune removes what no entry needs. A graph without an entry of its own, besides init and "
        "ready, stays whole. Aliases stay.\n"
        "\n"
        "arith removes nodes whose result is one of their inputs (x * 1, x - 0, Neg of Neg, a "
        "Cast to the same type), joins chains of Reshape or Transpose, and multiplies instead of "
        "dividing by powers of two.\n"
        "\n"
        "fold computes what depends on constants only, with the kernels of the CPU, and what is "
        "known of shapes. Results that would make the graph much larger are left to the step, "
        "and so is what fails.\n"
        "\n"
        "cse keeps the first of the nodes that compute the same of the same. Nodes with state, "
        "random ones among them, are never merged.\n"
        "\n"
        "What stays keeps its name, its seeds and its device. When a node that was given a name "
        "goes, since another tensor equals it, the name becomes an alias and can still be "
        "fetched. A tensor that is to be fetched though no entry needs it, or to be fed though it "
        "is not a Placeholder, must be named with --keep. The graph keeps the names that went, so "
        "that who asks for one is told.",
    .examples = "tf-graph digits.lua | tf-opt | tf-place > digits.tfg\n"
                "tf-opt --report -v digits.tfg -o small.tfg\n"
                "tf-opt --passes prune --keep logits digits.tfg | tf-show",
    .rows = rows,
    .operands_max = 1,
    .writes_stream = true,
};

static int choose_passes(const struct pass **chosen, int *n, struct error *err)
{
    *n = passes.n ? (int)passes.n : pass_count;
    if (*n > PASSES_MAX)
        return error_set(err, ERR_USAGE, "--passes names more than %d", PASSES_MAX);
    for (int i = 0; i < *n; i++) {
        chosen[i] = passes.n ? pass_find(passes.items[i]) : &pass_list[i];
        if (!chosen[i])
            return error_set(err, ERR_USAGE, "there is no pass '%s': prune, arith, fold or cse",
                             passes.items[i]);
    }
    return 0;
}

static void note(void *tool, const char *node, const char *what)
{
    tool_say(tool, "'%s': %s", node, what);
}

static void say_changes(const struct tool *tool, const struct graph *before,
                        const struct optimized *result, const struct pass *const *chosen, int n)
{
    for (int i = 0; i < n; i++)
        tool_say(tool, "%s: %d %s", chosen[i]->name, result->n_changes[i], chosen[i]->verb);
    tool_say(tool, "%zu of %zu nodes stay, after %d round%s", result->graph->nodes.n,
             before->nodes.n, result->n_rounds, result->n_rounds == 1 ? "" : "s");
}

static int optimize(struct tool *tool, struct graph *graph, struct error *err)
{
    const struct pass *chosen[PASSES_MAX];
    struct evaluator evaluator = {.kernels = ops_kernels()};
    struct fold_evaluator fold = {evaluator_run, &evaluator};
    struct pass_options options = {.keep = keep.items,
                                   .n_keep = (int)keep.n,
                                   .evaluator = &fold,
                                   .note = report && tool->verbose ? note : NULL,
                                   .context = tool};
    struct optimized result;
    int n, code = choose_passes(chosen, &n, err);
    if (!code)
        code = pass_optimize(graph, chosen, n, &options, &result, err);
    if (!code) {
        if (report)
            say_changes(tool, graph, &result, chosen, n);
        graph_add_made(result.graph, tool_provenance(tool));
        code = graph_write(tool->writer, result.graph, err);
        optimized_release(&result);
    }
    evaluator_release(&evaluator);
    return code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    const struct pass *chosen[PASSES_MAX];
    struct stream_reader *reader;
    struct graph *graph = NULL;
    int n_passes;
    if (choose_passes(chosen, &n_passes, err) || tool_open_writer(tool, 1, err) ||
        tool_open_reader(tool, n ? operands[0] : NULL, &reader, err))
        return err->code;
    int code = graph_read_whole(reader, ops_registry(), &graph, err);
    if (!code && (code = optimize(tool, graph, err)))
        error_prefix(err, "%s: ", stream_reader_name(reader));
    graph_free(graph);
    tool_close_reader(reader);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
