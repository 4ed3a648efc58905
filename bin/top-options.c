/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of tf-top, a shell script that calls this program (bin/script_options.h).
 */
#include <inttypes.h>

#include "bin/script_options.h"
#include "cli/tool.h"

static struct {
    const char *job, *key_file, *prometheus, *listen;
    double interval;
    int64_t count;
} options = {.interval = 1, .count = SCRIPT_UNSET};

static const struct option_row rows[] = {
    {0, "job", OPTION_TEXT, &options.job, "DIR", "the directory of the job"},
    {0, "key-file", OPTION_TEXT, &options.key_file, "FILE", "the key of its links (the job's)"},
    {0, "prometheus", OPTION_TEXT, &options.prometheus, "FILE",
     "write the figures in its text form, instead"},
    {0, "listen", OPTION_TEXT, &options.listen, "ADDRESS",
     "answer with them whoever asks by HTTP there: HOST:PORT, unix:NAME"},
    {0, "interval", OPTION_SECONDS, &options.interval, "TIME", "between two pictures (1s)"},
    {0, "count", OPTION_NATURAL, &options.count, "N", "pictures (until the job ends)"},
    TOOL_COMMON_ROWS,
    {0}};

static const struct option_table table = {
    .tool = "tf-top",
    .summary = "who does what in a running job",
    .operands = "",
    .description =
        "A table of the job's tasks, drawn anew each second: their states and restarts, how many "
        "steps a second each worker makes, how many clocks it is behind the first, how much of its "
        "time it waits for the others, and the bytes that come and go; below it who waits for "
        "whom. Without a terminal the tables follow each other.\n"
        "\n"
        "--listen answers scrapes of Prometheus at 127.0.0.1:9500, say, or unix:NAME, a socket; "
        "--prometheus replaces FILE whole, for the folder that node exporter reads (its "
        "textfile collector): counters since the start in place of rates.",
    .examples = "tf-top --job run\n"
                "tf-top --job run --interval 10s --count 6 > minute.txt\n"
                "tf-top --job run --count 1 --prometheus run.prom\n"
                "tf-top --job run --listen 127.0.0.1:9500",
    .rows = rows,
};

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    (void)tool, (void)n, (void)operands;
    if (!options.job || !*options.job)
        return error_set(err, ERR_USAGE, "which job? --job DIR");
    if (!(options.interval >= 0.1 && options.interval <= 86400))
        return error_set(err, ERR_USAGE, "--interval %gs: from 0.1s to a day is wanted",
                         options.interval);
    if (options.count == 0)
        return error_set(err, ERR_USAGE, "--count 0: no picture would be drawn");
    struct str out = STR_INIT;
    script_assign_options(&out, rows);
    return script_write(&out, err);
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
