/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/filter.h"

#include "bin/ops_option.h"
#include "ops/ops.h"

static struct filter *filter;

struct graph *filter_last(const struct filter *f)
{
    return f->made.n ? f->made.items[f->made.n - 1] : f->graph;
}

void filter_add(struct filter *f, struct graph *graph)
{
    if (graph)
        vec_push(&f->made, graph);
}

void filter_print_line(const char *line)
{
    fprintf(stderr, "%s\n", line);
}

int filter_read_model(struct filter *f, struct error *err)
{
    if ((f->cluster_path && cluster_read(&f->cluster, f->cluster_path, err)) ||
        (f->costs_path && costs_read(&f->costs, f->costs_path, err)))
        return err->code;
    return 0;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct filter *f = filter;
    struct stream_reader *reader;
    f->tool = tool;
    if (!f->check(f, err) && !(!f->write && tool_open_writer(tool, 1, err)) &&
        !tool_open_reader(tool, n ? operands[0] : NULL, &reader, err)) {
        if (!graph_read_whole(reader, ops_registry(), &f->graph, err) && f->rewrite(f, err))
            error_prefix(err, "%s: ", stream_reader_name(reader));
        tool_close_reader(reader);
        if (!err->code && f->write) {
            f->write(f, err);
        } else if (!err->code) {
            graph_add_made(filter_last(f), tool_provenance(tool));
            graph_write(tool->writer, filter_last(f), err);
        }
    }
    while (f->made.n)
        graph_free(vec_pop(&f->made));
    vec_release(&f->made);
    graph_free(f->graph);
    cluster_release(&f->cluster);
    costs_release(&f->costs);
    return err->code;
}

int filter_main(struct filter *f, const struct option_table *table, int argc, char **argv)
{
    filter = f;
    return ops_tool_main(table, run, argc, argv);
}
