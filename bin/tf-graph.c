/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-graph: builds a graph from a model script, or reads one from its text form.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "bin/ops_option.h"
#include "bin/text_gradients.h"
#include "bin/topics.h"
#include "cli/tool.h"
#include "graph/graph_io.h"
#include "graph/text.h"
#include "ops/ops.h"
#include "ops/script/load.h"
#include "ops/script/script.h"

static struct option_list definitions;
static const char *program, *source; /* source: what messages call the script */
static bool is_text;
static int64_t seed, memory, instructions;
static double time_limit = 60;

static const struct option_row rows[] = {
    {'D', "define", OPTION_REPEAT, &definitions, "NAME=VALUE",
     "parameter that the script sees as D.NAME"},
    {'e', "execute", OPTION_TEXT, &program, "TEXT", "run TEXT instead of a file"},
    {0, "text", OPTION_FLAG, &is_text, NULL, "read a graph in the form that tf-show --text prints"},
    {0, "seed", OPTION_INT, &seed, "N", "seed of the random ops (0)"},
    {0, "memory", OPTION_BYTES, &memory, "BYTES", "memory that the script may use (2G)"},
    {0, "instructions", OPTION_NATURAL, &instructions, "N",
     "instructions that it may run (2000000000)"},
    {0, "time-limit", OPTION_SECONDS, &time_limit, "TIME", "computing time that it may take (60s)"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_clash clashes[] = {
    {"define execute seed memory instructions time-limit", "text"}, {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-graph",
    .summary = "build a graph from a model script",
    .operands = "[SCRIPT]",
    .description =
        "Runs a model script, which is Lua 5.4, and writes the graph that it builds. "
        "Shapes and types "
        "are inferred as each op is added; an error names the script's line and the op. "
        "The language "
        "is described in docs/language.md.\n"
        "\n"
        "A script sees the ops, the prelude (nn, init, optim, schedule, clip, ...) and "
        "the pure part "
        "of Lua's library; require finds modules in the script's folder only. --help nn, and "
        "so with the others, lists what is in them.\n"
        "\n"
        "The graph gets the entries init, which gives the variables their initial "
        "values, and ready, "
        "which says whether they have one.",
    .examples =
        "tf-graph digits.lua | tf-show\n"
        "tf-graph -D units=256 digits.lua -o digits.tfg\n"
        "tf-graph -e 'y = Sqrt(Placeholder{dtype = float32, name = \"x\"})' | tf-show --text\n"
        "tf-show --text fwd.tfg | sed 's/ = Relu(/ = Tanh(/' | tf-graph --text |\n"
        "    tf-grad --minimize loss --optimizer adam > tanh.tfg",
    .rows = rows,
    .clashes = clashes,
    .topics = script_topics,
    .operands_max = 1,
    .writes_stream = true,
};

/* Prints a script's line. A script may come from anywhere, and must not control the terminal. */
static void print_line(const char *line)
{
    struct str text = STR_INIT;
    for (bool more = true; more;) {
        size_t n = strcspn(line, "\t\n");
        char *part = mem_strndup(line, n);
        str_append_escaped(&text, part);
        mem_free(part);
        more = line[n];
        str_append_char(&text, more ? line[n] : '\n');
        line += n + 1;
    }
    fputs(str_text(&text), stderr);
    str_release(&text);
}

/* Limits a script. Instructions are counted, but one match of a pattern can run for hours. */
static int run_script(struct tool *tool, struct script *script, const char *path, struct error *err)
{
    struct error reason = ERROR_INIT;
    error_set(&reason, ERR_DATA,
              "%s: the script computes for more than %g s: is this an endless loop? (--time-limit)",
              source, time_limit);
    if (tool_limit_time(tool, time_limit, &reason, err))
        return err->code;
    int code = 0;
    for (size_t i = 0; i < definitions.n && !code; i++)
        code = script_define(script, definitions.items[i], err);
    if (!code)
        code = program ? script_run(script, program, strlen(program), "-e", "", err)
                       : script_run_file(script, path, err);
    if (!code)
        code = script_finish(script, err);
    tool_end_limit();
    return code;
}

static int build(struct tool *tool, const char *path, struct graph **graph, struct error *err)
{
    struct script_options options = {.seed = seed,
                                     .memory_bytes = memory > 0 ? (size_t)memory : 0,
                                     .instructions = instructions,
                                     .print = print_line};
    *graph = graph_new(ops_registry());
    graph_add_made(*graph, tool_provenance(tool));
    struct script *script = script_new(*graph, &options, err);
    int code = script ? run_script(tool, script, path, err) : err->code;
    script_free(script);
    return code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    const char *path = n ? operands[0] : "-";
    source = program ? "-e" : strcmp(path, "-") ? path : "stdin";
    if (program && n)
        return error_set(err, ERR_USAGE, "both -e and the file '%s' are given", path);
    if (!(time_limit > 0 && time_limit < 1e9))
        return error_set(err, ERR_USAGE, "--time-limit %gs: above 0, and at most 1e9", time_limit);
    if (!program && !strcmp(path, "-") && isatty(STDIN_FILENO))
        return error_set(err, ERR_USAGE,
                         "no script: name a file or use -e TEXT; see tf-graph --help");
    if (tool_open_writer(tool, 1, err))
        return err->code;
    struct graph *graph = NULL;
    size_t n_text;
    char *text = is_text ? load_file(path, LOAD_TEXT_BYTES, &n_text, err) : NULL;
    int code = text      ? graph_parse_text(text, n_text, source, ops_registry(), &graph, err)
               : is_text ? err->code
                         : build(tool, path, &graph, err);
    mem_free(text);
    if (!code && is_text)
        text_gradients_check(tool, graph, source);
    if (!code && !graph->nodes.n)
        tool_say(tool, "%s: makes no node: an empty graph", source);
    if (!code)
        code = graph_write(tool->writer, graph, err);
    graph_free(graph);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
