/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/progress.h"
#include "cli/tool.h"
#include "ops/ops.h"
#include "show/show.h"
#include "wire/npy.h"

#define FOLLOW_EVERY_SECONDS 1.0 /* without a terminal */

static bool follow, npy;
static struct show show;

static const struct option_row rows[] = {
    {'f', "follow", OPTION_FLAG, &follow, NULL,
     "one live line with rate and time left; without a terminal a line a second"},
    {0, "json", OPTION_FLAG, &show.json, NULL, "an object a line, numbers exact"},
    {0, "text", OPTION_FLAG, &show.text, NULL, "a graph, a node a line; tf-graph --text reads it"},
    {0, "dot", OPTION_FLAG, &show.dot, NULL, "a graph for dot(1)"},
    {0, "depth", OPTION_INT, &show.depth, "N", "with --dot: scopes N deep are one box"},
    {0, "elide", OPTION_FLAG, &show.elide, NULL, "cut long constants of a graph"},
    {0, "costs", OPTION_FLAG, &show.costs, NULL,
     "a trace, the time of each node and op, for tf-place --costs"},
    {0, "npy", OPTION_FLAG, &npy, NULL, "the first tensor NAME, in NumPy's format"},
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_table table = {
    .tool = "tf-show",
    .summary = "look into any stream",
    .operands = "[FILE [NAME]...]",
    .description =
        "Without an option each record is a line or a few: types, ranges, values where there are "
        "few. NAMEs select tensors. -v shows all elements.",
    .examples = "tf-show train.rec\n"
                "tf-show --text digits.tfg | grep MatMul\n"
                "tf-show --dot --depth 1 digits.tfg | dot -Tsvg > digits.svg\n"
                "tf-show --npy train.rec x > x.npy\n"
                "tf-show --costs trace.rec > digits.costs\n"
                "tf-exec -g m.tfg --run train --feed train.rec --fetch loss | tf-show --follow",
    .rows = rows,
    .operands_max = -1,
};

/* ---- --npy ---- */

static int write_npy(struct stream_reader *reader, const char *name, struct error *err)
{
    struct record record = {0};
    bool more = true, found = false;
    int code = 0;
    while (!code && !found && !(code = stream_read(reader, &record, &more, err)) && more)
        for (int i = 0; i < record.n_tensors && !found && !code; i++) {
            found = !name || strcmp(record.tensors[i].name, name) == 0;
            if (found)
                code = npy_write(show.out, &record.tensors[i].tensor, err);
        }
    record_release(&record);
    if (code || found)
        return code;
    if (!name)
        return error_set(err, ERR_DATA, "%s: no tensor", stream_reader_name(reader));
    return error_set(err, ERR_DATA, "%s: no tensor '%s'", stream_reader_name(reader), name);
}

/* ---- --follow ---- */

struct follower {
    struct progress progress;
    bool terminal;
    double began, printed; /* seconds */
    int64_t done;
    struct str detail;
};

static void print_line(struct follower *f)
{
    struct str line = STR_INIT;
    f->printed = time_now();
    progress_format(&f->progress, f->done, f->printed - f->began, str_text(&f->detail), &line);
    fprintf(show.out, "%s\n", str_text(&line));
    fflush(show.out);
    str_release(&line);
}

/* A step may emit its fetches in several records: the count is that of steps. */
static void follow_record(struct follower *f, const struct record *record, int64_t expected)
{
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

static int follow_all(struct stream_reader *reader, struct error *err)
{
    struct follower f = {.terminal = isatty(fileno(show.out))};
    struct record record = {0};
    bool more = true;
    int code;
    while (!(code = stream_read(reader, &record, &more, err)) && more)
        if (record.kind == RECORD_FETCH || record.kind == RECORD_FEED)
            follow_record(&f, &record, stream_reader_expected(reader));
    if (f.began != 0 && f.terminal)
        progress_end(&f.progress, f.done, str_text(&f.detail));
    else if (f.began != 0)
        print_line(&f);
    str_release(&f.detail);
    record_release(&record);
    return code;
}

/* ---- everything ---- */

static const char *output_name(void)
{
    return tool_output && strcmp(tool_output, "-") ? tool_output : "stdout";
}

static int show_all(struct stream_reader *reader, struct error *err)
{
    struct record record = {0};
    bool more = true;
    int code;
    while (!(code = stream_read(reader, &record, &more, err)) && more) {
        if ((code = show_record(&show, &record, err))) {
            error_prefix(err, "%s: ", code == ERR_IO ? output_name() : stream_reader_name(reader));
            break;
        }
    }
    record_release(&record);
    if (code || !show_end(&show, err))
        return code;
    return error_prefix(err, "%s: ", output_name());
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct stream_reader *reader;
    show.trace = trace_summary_new();
    show.registry = ops_registry();
    show.verbose = tool->verbose;
    show.names = (const char *const *)operands + 1;
    show.n_names = n > 1 ? n - 1 : 0;
    if (npy && show.n_names > 1)
        return error_set(err, ERR_USAGE, "--npy writes one tensor");
    int code = tool_open_text(tool, &show.out, err);
    if (!code && npy && isatty(fileno(show.out)))
        code = error_set(err, ERR_USAGE, "will not write .npy to a terminal");
    if (!code)
        code = tool_open_reader(tool, n ? operands[0] : NULL, &reader, err);
    if (code)
        return code;
    if (npy)
        code = write_npy(reader, show.n_names ? show.names[0] : NULL, err);
    else
        code = follow ? follow_all(reader, err) : show_all(reader, err);
    tool_close_reader(reader);
    trace_summary_free(show.trace);
    return code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
