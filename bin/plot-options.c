/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of tf-plot, a shell script that calls this program (bin/script_options.h). It also
 * assigns `verb`, and sets files and a tensor's name as the script's arguments.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bin/script_options.h"
#include "cli/tool.h"

static struct {
    struct option_list fetch;
    double smooth;
    int64_t bins, step;
    const char *shape, *size, *terminal, *title;
    bool log, follow;
} options = {.bins = 30, .step = SCRIPT_UNSET};

static const struct option_row rows[] = {
    {0, "fetch", OPTION_LIST, &options.fetch, "NAME,...",
     "only these curves: names and patterns, as loss,eval/*"},
    {0, "smooth", OPTION_FLOAT, &options.smooth, "SHARE",
     "a point is this share of the last and the rest of the new value (0): a line above the "
     "values"},
    {0, "log", OPTION_FLAG, &options.log, NULL, "values, or counts, on a logarithmic axis"},
    {0, "bins", OPTION_NATURAL, &options.bins, "N", "of a histogram (30)"},
    {0, "shape", OPTION_TEXT, &options.shape, "HxW[xC]",
     "of an image, where a row of the tensor is one (that of the tensor, or a square)"},
    {0, "step", OPTION_NATURAL, &options.step, "N", "of a trace (the last)"},
    {'f', "follow", OPTION_FLAG, &options.follow, NULL,
     "draw anew each second, until the stream has ended"},
    {0, "terminal", OPTION_TEXT, &options.terminal, "NAME",
     "dumb (text), sixel, svg or png (dumb; of FILE by the end of its name)"},
    {0, "size", OPTION_TEXT, &options.size, "WxH",
     "in characters of text (the terminal's), else in pixels (900x600)"},
    {0, "title", OPTION_TEXT, &options.title, "TEXT", "above the picture"},
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_verb verbs[] = {
    {"", "[FILE|JOB]...", "curves of the scalars by step, of several runs in one picture",
     "fetch smooth log follow terminal size title output"},
    {"histogram", "FILE NAME", "how the elements of a tensor are spread",
     "bins log follow terminal size title output"},
    {"images", "FILE NAME", "each row of a tensor as an image, in a grid",
     "shape follow terminal size title output"},
    {"timeline", "FILE...", "what ran when in a step, of traces",
     "step terminal size title output"},
    {NULL, NULL, NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-plot",
    .summary = "pictures of what a stream holds",
    .operands = "[VERB] [FILE]...",
    .description =
        "Draws with gnuplot, as text on the terminal, or to an SVG or PNG file. FILE is a stream, "
        "stdin, or for histogram and images a checkpoint, too (STORE, STORE@STEP); JOB is the "
        "directory of a job, whose workers' streams are drawn. Names with the same last part, as "
        "loss and eval/loss, share axes.",
    .examples = "tf-plot train.rec\n"
                "tf-plot --fetch loss --smooth 0.9 -o loss.svg a.rec b.rec\n"
                "tf-plot --follow run\n"
                "tf-plot histogram ckpt@400 hidden/W\n"
                "tf-data csv digits.csv.gz x=1-64 --batch 25 --steps 1 | tf-plot images - x\n"
                "tf-plot timeline -o step.svg trace.rec",
    .rows = rows,
    .verbs = verbs,
    .operands_max = -1,
};

/* Terminals with gnuplot's names for them, and the default of --size; 0: the terminal's size. */
static const struct terminal {
    const char *name, *called;
    int64_t width, height;
} terminals[] = {{"dumb", "dumb", 0, 0},
                 {"sixel", "sixelgd", 900, 600},
                 {"svg", "svg", 900, 600},
                 {"png", "pngcairo", 900, 600}};
enum { N_TERMINALS = sizeof terminals / sizeof *terminals };

/* Finds a terminal by its name, else by the end of a file's name; NULL if there is none. */
static const struct terminal *find_terminal(const char *name, const char *file)
{
    for (int i = 0; i < N_TERMINALS; i++) {
        const char *end = file ? strrchr(file, '.') : NULL;
        if (name ? !strcmp(name, terminals[i].name) : end && !strcmp(end + 1, terminals[i].name))
            return &terminals[i];
    }
    return name || file ? NULL : &terminals[0];
}

/* Parses two or three numbers joined by x; returns how many, 0 if the text is something else. */
static int parse_extents(const char *text, int64_t extents[3])
{
    for (int n = 0; n < 3; n++) {
        char *end;
        if (*text < '1' || *text > '9')
            return 0;
        extents[n] = strtol(text, &end, 10);
        if (extents[n] > 100000 || (*end && *end != 'x'))
            return 0;
        if (!*end)
            return n + 1;
        text = end + 1;
    }
    return 0;
}

static int check(const char *verb, int n, const struct terminal *terminal, int64_t size[3],
                 struct error *err)
{
    bool of_tensor = !strcmp(verb, "histogram") || !strcmp(verb, "images");
    int64_t shape[3];
    if (of_tensor && n != 2)
        return error_set(err, ERR_USAGE, "%s: a file and the name of a tensor in it are wanted",
                         verb);
    if (!(options.smooth >= 0 && options.smooth < 1))
        return error_set(err, ERR_USAGE, "--smooth %g: a share from 0 to less than 1 is wanted",
                         options.smooth);
    if (options.bins < 1 || options.bins > 1000)
        return error_set(err, ERR_USAGE, "--bins %" PRId64 ": 1 to 1000 are wanted", options.bins);
    if (options.shape && parse_extents(options.shape, shape) < 2)
        return error_set(err, ERR_USAGE,
                         "--shape %s: height and width are wanted, as 28x28, or "
                         "28x28x3 of colours",
                         options.shape);
    if (options.size && parse_extents(options.size, size) != 2)
        return error_set(err, ERR_USAGE, "--size %s: width and height are wanted, as 900x600",
                         options.size);
    if (!terminal && options.terminal)
        return error_set(err, ERR_USAGE, "--terminal %s: dumb, sixel, svg or png is wanted",
                         options.terminal);
    if (!terminal)
        return error_set(err, ERR_USAGE, "-o %s: name it .svg or .png, or give --terminal",
                         tool_output);
    if (!tool_output && !strcmp(terminal->name, "png") && isatty(STDOUT_FILENO))
        return error_set(err, ERR_USAGE, "a PNG is not for a terminal: -o FILE.png");
    return 0;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    const char *verb = "";
    (void)tool;
    if (tool_output && !strcmp(tool_output, "-"))
        tool_output = NULL;
    for (const struct option_verb *v = verbs; n && v->name; v++)
        if (*v->name && !strcmp(operands[0], v->name))
            verb = v->name;
    const struct terminal *terminal = find_terminal(options.terminal, tool_output);
    int64_t size[3] = {terminal ? terminal->width : 0, terminal ? terminal->height : 0, 0};
    n -= !!*verb;
    operands += !!*verb;
    if (check(verb, n, terminal, size, err))
        return err->code;
    struct str out = STR_INIT;
    script_assign_options(&out, rows);
    script_assign(&out, "verb", verb);
    script_assign(&out, "terminal", terminal->called);
    str_printf(&out, "width=%" PRId64 " height=%" PRId64 "\n", size[0], size[1]);
    script_assign_words(&out, operands, n);
    return script_write(&out, err);
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
