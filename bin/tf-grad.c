/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-grad: adds gradients, and an optimizer's updates, to a graph.
 */
#include <stdio.h>

#include "bin/filter.h"
#include "bin/ops_option.h"
#include "ops/script/script.h"

static const char *loss, *optimizer = "sgd", *of;
static struct option_list wrt;
static int64_t seed;

static const struct option_row rows[] = {
    {0, "minimize", OPTION_TEXT, &loss, "LOSS",
     "add the entry train, which does a step to less LOSS"},
    {0, "optimizer", OPTION_TEXT, &optimizer, "NAME[,KEY=VALUE...]",
     "how: sgd, momentum, adam, adamw, or another of docs/language.md (sgd)"},
    {0, "of", OPTION_TEXT, &of, "Y", "add the gradients of Y"},
    {0, "wrt", OPTION_LIST, &wrt, "X,...", "with respect to these; fetched as grad/X"},
    {0, "seed", OPTION_INT, &seed, "N", "seed of random ops that are added (0)"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_need needs[] = {{"optimizer", "minimize"}, {"wrt", "of"}, {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-grad",
    .summary = "add gradients and training to a graph",
    .operands = "[FILE]",
    .description =
        "Reads a graph and writes it with more nodes: with --minimize the gradients of LOSS with "
        "respect to all trained variables, an optimizer's updates and the entry train; with --of "
        "and "
        "--wrt gradients only, which can be fetched as grad/X, all of them by the entry grad.\n"
        "\n"
        "A path from Y to an X that is cut, by an op without a gradient or because there is none, "
        "is "
        "an error that names the node. Variables that the loss does not depend on are left alone.",
    .examples = "tf-grad --minimize loss --optimizer adam,rate=0.001 fwd.tfg > train.tfg\n"
                "tf-grad --of loss --wrt hidden/W,x fwd.tfg | tf-exec --fetch grad/x",
    .rows = rows,
    .needs = needs,
    .operands_max = 1,
    .writes_stream = true,
};

static int extend(struct filter *filter, struct error *err)
{
    struct graph *graph = filter->graph;
    struct script_options options = {.seed = seed, .print = filter_print_line};
    struct script *script = script_new(graph, &options, err);
    if (!script)
        return err->code;
    const char *entry = loss ? "train" : "grad";
    int code = graph_entry(graph, entry)
                   ? error_set(err, ERR_DATA, "there is an entry '%s' already: %s", entry,
                               loss ? "it trains; minimize() of a script can have several"
                                    : "gradients of one kind can be added once")
               : loss ? script_minimize(script, loss, optimizer, err)
                      : script_gradients(script, of, wrt.items, (int)wrt.n, err);
    if (!code)
        code = script_finish(script, err);
    script_free(script);
    return code;
}

static int check_loss(struct filter *filter, struct error *err)
{
    (void)filter;
    if (!loss == !of)
        return error_set(err, ERR_USAGE, "either --minimize LOSS or --of Y --wrt X is needed");
    return of && !wrt.n ? error_set(err, ERR_USAGE, "--of '%s' needs --wrt X,...", of) : 0;
}

int main(int argc, char **argv)
{
    static struct filter filter = {.check = check_loss, .rewrite = extend};
    return filter_main(&filter, &table, argc, argv);
}
