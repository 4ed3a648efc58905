/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/time.h"
#include "bin/ops_option.h"
#include "bin/prep_file.h"
#include "bin/show_arrays.h"
#include "bin/show_table.h"
#include "cli/progress.h"
#include "cli/tool.h"
#include "ops/ops.h"
#include "show/show.h"

#define FOLLOW_EVERY_SECONDS 1.0 /* without a terminal */

static bool follow, npy, csv, tsv;
static const char *prep_path;
static struct prep prep;
static struct show_table show_table;
static struct show show;

static const struct option_row rows[] = {
    {'f', "follow", OPTION_FLAG, &follow, NULL,
     "one live line with rate and time left; without a terminal a line a second; waits\n"
     "for a FILE that is still being written, and goes on when it is begun anew"},
    {0, "json", OPTION_FLAG, &show.json, NULL, "an object a line, numbers exact"},
    {0, "text", OPTION_FLAG, &show.text, NULL, "a graph, a node a line; tf-graph --text reads it"},
    {0, "no-places", OPTION_FLAG, &show.no_places, NULL,
     "with --text: not where in the script a node comes from, so that diff(1) finds what\n"
     "has changed in a graph, not in the lines of its script"},
    {0, "dot", OPTION_FLAG, &show.dot, NULL, "a graph for dot(1)"},
    {0, "depth", OPTION_NATURAL, &show.depth, "N", "with --dot: scopes N deep are one box"},
    {0, "elide", OPTION_FLAG, &show.elide, NULL, "cut long constants of a graph"},
    {0, "costs", OPTION_FLAG, &show.costs, NULL,
     "a trace, the time of each node and op, for tf-place --costs"},
    {0, "npy", OPTION_FLAG, &npy, NULL,
     "the tensor NAME in NumPy's format: rows of all records, numbers as a vector"},
    {0, "csv", OPTION_FLAG, &csv, NULL,
     "rows of tensors as a table with a header; NAME=FEED shows a tensor as what was fed so"},
    {0, "tsv", OPTION_FLAG, &tsv, NULL, "the same with tabs"},
    {0, "prep", OPTION_TEXT, &prep_path, "FILE",
     "turn ids back into categories and values into those of the file, by what tf-data --fit\n"
     "wrote, for tensors that are called as their feed"},
    {0, "columns", OPTION_TEXT, &show_table.choice, "LIST",
     "only these columns of the table: names and patterns, as id,p*"},
    {0, "matrix", OPTION_FLAG, &show_table.matrix, NULL,
     "rows are of categories, too, and have their names: a confusion matrix"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_need needs[] = {{"depth", "dot"},
                                           {"no-places", "text"},
                                           {"elide", "text json"},
                                           {"prep columns matrix", "csv tsv"},
                                           {NULL, NULL}};

#define FORMS "follow npy csv tsv text dot json costs"
static const struct option_clash clashes[] = {{FORMS, FORMS}, {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-show",
    .summary = "look into any stream",
    .operands = "[FILE [NAME]...]",
    .description =
        "Without an option each record is a line or a few: types, ranges, values where there are "
        "few. NAMEs select tensors. -v shows all elements. FILE may also be a .npy or a .npz. Of a "
        "trace, times of an op are without its first step, which does once what it needs, unless "
        "there is no other.",
    .examples = "tf-show train.rec\n"
                "tf-show --text digits.tfg | grep MatMul\n"
                "diff <(tf-show --text --no-places a.tfg) <(tf-show --text --no-places b.tfg)\n"
                "tf-show --dot --depth 1 digits.tfg | dot -Tsvg > digits.svg\n"
                "tf-show --npy train.rec x > x.npy\n"
                "tf-show --csv --prep prep.json predictions.rec label=y > answers.csv\n"
                "tf-show --costs trace.rec > digits.costs\n"
                "tf-exec -g m.tfg --run train --feed train.rec --fetch loss | tf-show --follow",
    .rows = rows,
    .needs = needs,
    .clashes = clashes,
    .operands_max = -1,
};

/* ---- --npy ---- */

static int write_npy(struct tensor_source *from, struct record *record, const char *name,
                     struct error *err)
{
    struct array_gather gathering = {.source = stream_reader_name(from->reader), .wanted = name};
    bool more = true;
    int code = 0;
    while (!code && !(code = tensor_source_read(from, record, &more, err)) && more)
        code = array_gather_add(&gathering, record, err);
    if (!code)
        code = array_gather_write(&gathering, show.out, err);
    array_gather_release(&gathering);
    return code;
}

/* ---- --csv ---- */

static int write_table(struct tensor_source *from, struct record *record, struct error *err)
{
    const char *name = stream_reader_name(from->reader);
    bool more = true;
    show_table.out = show.out;
    show_table.separator = tsv ? '\t' : ',';
    show_table.wanted = show.names;
    show_table.n_wanted = show.n_names;
    show_table.prep = prep_path ? &prep : NULL;
    if (prep_path && prep_read(&prep, prep_path, err))
        return err->code;
    while (!tensor_source_read(from, record, &more, err) && more)
        if (show_table_add(&show_table, record, err))
            return error_prefix(err, "%s: ", name);
    if (!err->code && show_table_end(&show_table, err))
        error_prefix(err, "%s: ", name);
    return err->code;
}

/* ---- --follow ---- */

struct follower {
    struct progress progress;
    bool terminal;
    double began, printed; /* seconds */
    int64_t done, done_printed;
    struct str detail;
};

static void print_line(struct follower *f)
{
    struct str line = STR_INIT;
    f->printed = time_now();
    f->done_printed = f->done;
    progress_format(&f->progress, f->done, f->printed - f->began, str_text(&f->detail), &line);
    fprintf(show.out, "%s\n", str_text(&line));
    fflush(show.out);
    str_release(&line);
}

/* Prints the line of the last second while a file does not grow. */
static void idle(void *context)
{
    struct follower *f = context;
    if (!f->terminal && f->done != f->done_printed &&
        time_now() - f->printed >= FOLLOW_EVERY_SECONDS)
        print_line(f);
}

static int follow_file(struct follower *f, struct tensor_source *from, struct record *record,
                       struct error *err)
{
    bool more = true;
    int code;
    while (!(code = tensor_source_read(from, record, &more, err)) && more)
        if (record->kind == RECORD_FETCH || record->kind == RECORD_FEED) {
            /* A step may emit its fetches in several records: the count is that of steps. */
            int64_t expected = stream_reader_expected(from->reader);
            int64_t step = f->done + 1;
            record_get_int(&record->header, "step", &step);
            if (f->began == 0) {
                progress_start(&f->progress, f->terminal, show.out, "step", step - 1,
                               expected < 0 ? -1 : step - 1 + expected);
                f->began = f->printed = time_now();
            }
            f->done = step;
            str_clear(&f->detail);
            show_scalars(&show, &f->detail, record);
            if (f->terminal)
                progress_update(&f->progress, f->done, str_text(&f->detail));
            else if (time_now() - f->printed >= FOLLOW_EVERY_SECONDS)
                print_line(f);
        }
    return code;
}

static int follow_all(struct tensor_source *from, struct record *record, struct error *err)
{
    struct follower f = {.terminal = isatty(fileno(show.out))};
    int code;
    tool_follow(from->reader, idle, &f);
    do {
        code = follow_file(&f, from, record, err);
    } while (!tool_signal() && tool_follow_on(from->reader));
    if (f.began != 0 && f.terminal)
        progress_end(&f.progress, f.done, str_text(&f.detail));
    else if (f.began != 0 && f.done != f.done_printed)
        print_line(&f);
    str_release(&f.detail);
    if (code == ERR_CANCELLED && tool_signal()) { /* the usual way to end --follow */
        error_clear(err);
        code = 0;
    }
    return code;
}

/* ---- everything ---- */

static const char *output_name(void)
{
    return tool_output && strcmp(tool_output, "-") ? tool_output : "stdout";
}

static int show_all(struct tensor_source *from, struct record *record, struct error *err)
{
    const char *name = stream_reader_name(from->reader);
    bool more = true, has_graph = false, has_trace = false;
    int code;
    while (!(code = tensor_source_read(from, record, &more, err)) && more) {
        if ((code = show_record(&show, record, err)))
            return error_prefix(err, "%s: ", code == ERR_IO ? output_name() : name);
        has_graph |= record->kind == RECORD_GRAPH;
        has_trace |= record->kind == RECORD_TRACE;
    }
    if (code)
        return code;
    if (show_end(&show, err))
        return error_prefix(err, "%s: ", output_name());
    /* The input must have what the options are about. */
    bool elides = show.elide && show.json;
    if ((show.text || show.dot || elides) && !has_graph)
        return error_set(err, ERR_DATA, "%s: no graph, which %s", name,
                         show.text  ? "--text shows"
                         : show.dot ? "--dot shows"
                                    : "--elide is for");
    if (show.costs && !has_trace)
        return error_set(err, ERR_DATA, "%s: no trace, as tf-exec --trace writes, for --costs",
                         name);
    return 0;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct tensor_source from = {0};
    struct record record = {0};
    show.registry = ops_registry();
    show.verbose = tool->verbose;
    show.names = (const char *const *)operands + 1;
    show.n_names = n > 1 ? n - 1 : 0;
    if (npy && show.n_names > 1)
        return error_set(err, ERR_USAGE, "--npy writes one tensor");
    int code = tool_open_text(tool, &show.out, err);
    if (!code && npy && isatty(fileno(show.out)))
        code = error_set(err, ERR_USAGE, "will not write .npy to a terminal");
    if (code)
        return code;
    show.trace = trace_summary_new();
    show.found = mem_array((size_t)show.n_names + 1, sizeof *show.found);
    if (follow && n && strcmp(operands[0], "-"))
        tool_catch_signals();
    code = tool_open_reader(tool, n ? operands[0] : NULL, &from.reader, err);
    from.wanted = show.names;
    from.n_wanted = csv || tsv ? 0 : show.n_names;
    from.is_begun = follow;
    if (!code && !follow) /* what feeds it may write the file of --prep first */
        code = tensor_source_begin(&from, &record, err);
    if (!code && npy) {
        code = write_npy(&from, &record, show.n_names ? show.names[0] : NULL, err);
    } else if (!code && (csv || tsv)) {
        code = write_table(&from, &record, err);
    } else if (!code) {
        code = follow ? follow_all(&from, &record, err) : show_all(&from, &record, err);
        for (int i = 0; !code && !tool_signal() && i < show.n_names; i++)
            if (!show.found[i])
                code = error_set(err, ERR_DATA, "%s: no tensor '%s'",
                                 stream_reader_name(from.reader), show.names[i]);
    }
    if (!code && from.unread.code) {
        *err = from.unread;
        code = err->code;
    }
    record_release(&record);
    if (from.reader)
        tool_close_reader(from.reader);
    mem_free(show.found);
    show_table_release(&show_table);
    prep_release(&prep);
    trace_summary_free(show.trace);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
