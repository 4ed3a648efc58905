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

int filter_read_model(struct filter *f, struct error *err)
{
    if ((f->cluster_path && cluster_read(&f->cluster, f->cluster_path, err)) ||
        (f->costs_path && costs_read(&f->costs, f->costs_path, err)))
        return err->code;
    return 0;
}

static int write_last(struct filter *f, struct error *err)
{
    graph_add_made(filter_last(f), tool_provenance(f->tool));
    return graph_write(f->tool->writer, filter_last(f), err);
}

static int read_and_rewrite(struct filter *f, const char *file, struct error *err)
{
    struct stream_reader *reader;
    if ((!f->write && tool_open_writer(f->tool, 1, err)) ||
        tool_open_reader(f->tool, file, &reader, err))
        return err->code;
    if (!graph_read_whole(reader, ops_registry(), &f->graph, err) && f->rewrite(f, err))
        error_prefix(err, "%s: ", stream_reader_name(reader));
    tool_close_reader(reader);
    return err->code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    filter->tool = tool;
    if (!filter->check(filter, err) && !read_and_rewrite(filter, n ? operands[0] : NULL, err))
        filter->write ? filter->write(filter, err) : write_last(filter, err);
    while (filter->made.n)
        graph_free(vec_pop(&filter->made));
    vec_release(&filter->made);
    graph_free(filter->graph);
    cluster_release(&filter->cluster);
    costs_release(&filter->costs);
    return err->code;
}

int filter_main(struct filter *f, const struct option_table *table, int argc, char **argv)
{
    filter = f;
    return ops_tool_main(table, run, argc, argv);
}
