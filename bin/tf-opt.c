/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-opt: simplifies a graph.
 */
#include <string.h>

#include "base/memory.h"
#include "bin/filter.h"
#include "bin/ops_option.h"
#include "exec/plan/fuse.h"
#include "exec/session/evaluate.h"
#include "ops/ops.h"
#include "pass/half/half.h"
#include "pass/simplify/simplify.h"

#define PASSES_MAX 16

static struct option_list passes, keep;
static bool report;
static const char *device, *half, *loss_scale;

static const struct option_row rows[] = {
    {0, "passes", OPTION_LIST, &passes, "PASS,...",
     "only these, in this order: prune, arith, fold, cse\n"
     "(all, until nothing changes)"},
    {0, "keep", OPTION_LIST, &keep, "NAME,...",
     "leave these tensors as they are, to be fetched or fed"},
    {0, "for", OPTION_TEXT, &device, "DEVICE",
     "then also what plans for it do: pools, updates, sums, products, chains"},
    {0, "half", OPTION_TEXT, &half, "TYPE", "bf16 or fp16: first, compute products in 16 bits"},
    {0, "loss-scale", OPTION_TEXT, &loss_scale, "SCALE",
     "with --half: dynamic, none, or a number\n(dynamic for fp16, none for bf16)"},
    {0, "report", OPTION_FLAG, &report, NULL,
     "say on stderr what each pass changed; with -v, which nodes"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_need needs[] = {{"loss-scale", "half"}, {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-opt",
    .summary = "simplify a graph",
    .operands = "[FILE]",
    .description =
        "Reads a graph and writes one that computes the same, to the bit (but for --half), with "
        "fewer nodes. The passes run in turn until none changes anything, ten rounds at most:\n"
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
        "With --for DEVICE follows what a plan for that type of device does with its own copy of a "
        "graph; so it can be looked at, and --passes can name some of it:\n"
        "\n"
        "updates makes a FusedApply of an update whose gradient is cast from 16 bits for it alone, "
        "and one of updates of variables by one rule with the same scalars, if the device wants "
        "that (CUDA does), where nothing waits for one of them alone, nothing "
        "else of the same entry writes the variables, and gradients have no more than 2 MiB.\n"
        "\n"
        "products makes one FusedMatMul or FusedConv2D of a product or convolution and the bias "
        "and activation behind it, of which each is for nobody else.\n"
        "\n"
        "chains makes one FusedElementwise of element-wise ops of which each takes what the one "
        "before has made for nobody else, where types and shapes are alike.\n"
        "\n"
        "With --half TYPE products (MatMul, BatchMatMul, Conv2D, LocallyConnected2D and their "
        "gradients) are computed in floats of 16 bits, before all else, and so is what lies "
        "between them and only hands values on, adds or multiplies them. Variables, updates, "
        "losses, sums and exponentials "
        "stay float32, and so do feeds, fetches and what has a name. For fp16 the loss is scaled, "
        "so that small gradients are not lost: dynamic starts at 32768, doubles after 2000 steps, "
        "and halves when a gradient is not finite, in which case the step changes no variable. The "
        "scale is in the variable loss_scale, its counters beside it.\n"
        "\n"
        "What stays keeps its name, its seeds and its device. When a node that was given a name "
        "goes, since another tensor equals it, the name becomes an alias and can still be "
        "fetched. A tensor that is to be fetched though no entry needs it, or to be fed though it "
        "is not a Placeholder, must be named with --keep. The graph keeps the names that went, so "
        "that who asks for one is told.",
    .examples = "tf-graph digits.lua | tf-opt | tf-place > digits.tfg\n"
                "tf-opt --report -v digits.tfg -o small.tfg\n"
                "tf-opt --passes prune --keep logits digits.tfg | tf-show\n"
                "tf-opt --for CPU digits.tfg | tf-show --text\n"
                "tf-graph digits.lua | tf-opt --half fp16 | tf-place > half.tfg",
    .rows = rows,
    .needs = needs,
    .operands_max = 1,
    .writes_stream = true,
};

/* The passes to run, in their order, and the device passes to leave out. */
static struct chosen_passes {
    const struct pass *passes[PASSES_MAX];
    int n;
    unsigned without; /* fuse_options */
} choice;

static void print_note(void *tool, const char *node, const char *what)
{
    tool_say(tool, "'%s': %s", node, what);
}

static int fuse(struct filter *f, struct error *err)
{
    int n_gone[N_DEVICE_PASSES], code = 0;
    struct graph *graph = filter_last(f);
    struct edge *kept = mem_array(keep.n + 1, sizeof *kept);
    struct fuse_options options = {
        .kernels = ops_kernels(), .device = device, .keep = kept, .without = choice.without};
    struct fusion fused = {0};
    for (size_t i = 0; i < keep.n && !code; i++)
        code = graph_parse_edge(graph, keep.items[i], &kept[options.n_keep++], err);
    if (!code) {
        fuse_graph(graph, &options, &fused, n_gone);
        fusion_add_history(&fused, graph);
    }
    if (!code && report)
        for (int i = 0; i < N_DEVICE_PASSES; i++)
            if (!(choice.without >> i & 1) && device_passes[i].find)
                tool_say(f->tool, "%s: %d %s", device_passes[i].name, n_gone[i],
                         device_passes[i].verb);
    vec_each(made, &fused.graphs) {
        filter_add(f, *made);
    }
    vec_release(&fused.graphs);
    mem_free(fused.node_of);
    mem_free(kept);
    return code;
}

/* Gives the filter the graphs that a pass has made. */
static void take_graphs(struct filter *f, struct pass_result *result)
{
    for (size_t i = 0; i < result->graphs.n; i++)
        filter_add(f, result->graphs.items[i]);
    vec_release(&result->graphs);
}

static int optimize(struct filter *f, struct error *err)
{
    const struct tool *tool = f->tool;
    struct evaluator evaluator = {.kernels = ops_kernels()};
    struct fold_evaluator fold = {evaluator_run, &evaluator};
    struct pass_options options = {.keep = keep.items,
                                   .n_keep = (int)keep.n,
                                   .evaluator = &fold,
                                   .note = report && tool->verbose ? print_note : NULL,
                                   .context = f->tool};
    struct half_options wanted = {.pass = &options};
    struct pass_result result = {0};
    int code = half ? half_parse(&wanted, half, loss_scale, err) : 0;
    if (!code && half)
        code = half_rewrite(f->graph, &wanted, &result, err);
    if (!code && half && report)
        tool_say(tool, "half: %d computed in 16 bits, %d gradients of a scaled loss",
                 result.n_changes[HALF_HALVED], result.n_changes[HALF_SCALED]);
    take_graphs(f, &result);
    size_t n_before = filter_last(f)->nodes.n;
    if (!code)
        code = pass_optimize(filter_last(f), choice.passes, choice.n, &options, &result, err);
    take_graphs(f, &result);
    for (int i = 0; i < choice.n && !code && report; i++)
        tool_say(tool, "%s: %d %s", choice.passes[i]->name, result.n_changes[i],
                 choice.passes[i]->verb);
    if (!code && report)
        tool_say(tool, "%zu of %zu nodes stay, after %d round%s", filter_last(f)->nodes.n, n_before,
                 result.n_rounds, result.n_rounds == 1 ? "" : "s");
    if (!code && device)
        code = fuse(f, err);
    evaluator_release(&evaluator);
    return code;
}

static int choose_passes(struct filter *f, struct error *err)
{
    const struct kernel_table *kernels = ops_kernels();
    bool known = !device;
    (void)f;
    for (size_t i = 0; i < kernels->n && !known; i++)
        known = !strcmp(kernels->rows[i].device, device);
    if (!known)
        return error_set(err, ERR_USAGE, "--for: no kernels are known of a device '%s'", device);
    struct half_options ignored;
    if (half && half_parse(&ignored, half, loss_scale, err))
        return err->code;
    choice.without = passes.n || !device ? DEVICE_PASSES_ALL : 0;
    for (int i = 0; !passes.n && i < pass_count; i++)
        choice.passes[choice.n++] = &pass_list[i];
    for (size_t i = 0; i < passes.n; i++) {
        const char *name = passes.items[i];
        const struct pass *pass = pass_find(name);
        int own = device ? device_pass_find(name) : -1;
        if (choice.n == PASSES_MAX)
            return error_set(err, ERR_USAGE, "--passes names more than %d", PASSES_MAX);
        if (pass)
            choice.passes[choice.n++] = pass;
        else if (own >= 0 && device_passes[own].find)
            choice.without &= ~(1u << own);
        else
            return error_set(err, ERR_USAGE, "there is no pass '%s': prune, arith, fold%s", name,
                             device ? ", cse, updates, sums, products or chains" : " or cse");
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct filter filter = {.check = choose_passes, .rewrite = optimize};
    return filter_main(&filter, &table, argc, argv);
}
