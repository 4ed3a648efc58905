/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-part: partitions a placed graph into one graph per device.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "bin/ops_option.h"
#include "cli/output.h"
#include "cli/tool.h"
#include "graph/graph_io.h"
#include "ops/ops.h"
#include "pass/part/part.h"
#include "show/show.h"

static const char *cluster_file, *costs_file;
static bool report;

static const struct option_row rows[] = {
    {'c', "cluster", OPTION_TEXT, &cluster_file, "FILE", "how fast devices and links are"},
    {0, "costs", OPTION_TEXT, &costs_file, "FILE", "measured times, from tf-show --costs"},
    {0, "report", OPTION_FLAG, &report, NULL, "list on stderr what crosses, and how large it is"},
    {'o', "output", OPTION_TEXT, &tool_output, "FILE|DIR/",
     "write to FILE instead of stdout; DIR/: a file for each device in it"},
    OPS_OPTION_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_table table = {
    .tool = "tf-part",
    .summary = "cut a placed graph into one graph for each device",
    .operands = "[FILE]",
    .description =
        "Reads a graph in which every node has a device and writes a stream with a graph for each "
        "device. A value that another device needs is sent to it once, whatever needs it there, by "
        "a Send and a Recv; control edges from one device to a node become a pair, too. Constants "
        "are made where they are needed. Loops and conditionals may be on several devices.\n"
        "\n"
        "A large value is received no earlier than the step needs it, as far as the times of nodes "
        "and links are known: give it the cluster and the costs that tf-place was given.\n"
        "\n"
        "tf-exec runs the parts together, each on its device.",
    .examples = "tf-place --devices CPU:0,CPU:1 m.tfg | tf-part --report > parts.tfg\n"
                "tf-place -c digits.cluster m.tfg | tf-part -c digits.cluster > parts.tfg\n"
                "tf-part -o parts/ placed.tfg; tf-show parts/*.tfg",
    .rows = rows,
    .operands_max = 1,
    .writes_stream = true,
};

/* ---- the report ---- */

static const char *short_device(const char *device)
{
    const char *last = strstr(device, "device:");
    return str_starts(device, "/job:localhost/task:0/") && last ? last + strlen("device:") : device;
}

static void print_crossing(const struct graph *graph, const struct parts *parts,
                           const struct part_crossing *crossing)
{
    struct str name = STR_INIT, bytes = STR_INIT;
    graph_print_edge(&name, graph, crossing->edge);
    for (int i = 0; i < crossing->n_also; i++)
        str_printf(&name, ", ^%s", graph_node(graph, crossing->also[i])->name);
    if (crossing->edge.slot == CONTROL_SLOT)
        str_append(&bytes, "order only");
    else if (crossing->bytes < 0)
        str_append(&bytes, "? bytes");
    else
        show_bytes(&bytes, crossing->bytes);
    fprintf(stderr, "%s  %s -> %s  %s\n", str_text(&name),
            short_device(parts->parts.items[crossing->from].device),
            short_device(parts->parts.items[crossing->to].device), str_text(&bytes));
    str_release(&name);
    str_release(&bytes);
}

/* ---- writing ---- */

static int write_file(const struct tool *tool, const struct graph_part *part, struct error *err)
{
    struct str path = STR_INIT;
    struct output *output;
    int fd;
    /* "/job:ps/task:1/device:CPU:0" is written to ps-1-CPU-0.tfg. */
    str_append(&path, tool_output);
    for (const char *p = part->device; *p;) {
        const char *colon = strchr(p, ':');
        size_t n = colon ? strcspn(colon + 1, "/") : 0;
        if (p != part->device)
            str_append(&path, "-");
        for (size_t i = 0; i < n; i++)
            str_printf(&path, "%c", colon[1 + i] == ':' ? '-' : colon[1 + i]);
        p = colon ? colon + 1 + n : p + strlen(p);
    }
    str_append(&path, ".tfg");
    int code = output_open(str_text(&path), &output, &fd, err);
    if (!code) {
        struct stream_writer *writer =
            stream_writer_new(fd, str_text(&path), tool_provenance(tool), 1);
        code = graph_write(writer, part->graph, err);
        if (!code)
            code = stream_finish(writer, err);
        stream_writer_free(writer);
        if (!code)
            code = output_commit(output, err);
        else
            output_discard(output);
    }
    str_release(&path);
    return code;
}

static bool to_folder(void)
{
    return tool_output && str_ends(tool_output, "/");
}

/* The source of the graph and its parts. */
struct part_source {
    struct graph *graph;
    struct cluster cluster;
    struct costs costs;
};

static int cut(struct tool *tool, const char *file, struct part_source *source, struct parts *parts,
               struct error *err)
{
    const struct part_estimates estimates = {.cluster = cluster_file ? &source->cluster : NULL,
                                             .costs = costs_file ? &source->costs : NULL};
    struct stream_reader *reader;
    if ((cluster_file && cluster_read(&source->cluster, cluster_file, err)) ||
        (costs_file && costs_read(&source->costs, costs_file, err)) ||
        tool_open_reader(tool, file, &reader, err))
        return err->code;
    int code = graph_read_whole(reader, ops_registry(), &source->graph, err);
    if (!code && (code = part_graph(source->graph, &estimates, parts, err)))
        error_prefix(err, "%s: ", stream_reader_name(reader));
    tool_close_reader(reader);
    return code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct part_source source = {0};
    struct parts parts = {0};
    int code = cut(tool, n ? operands[0] : NULL, &source, &parts, err);
    if (!code) {
        if (!to_folder())
            code = tool_open_writer(tool, (int64_t)parts.parts.n, err);
        else if (mkdir(tool_output, 0777) && errno != EEXIST)
            code = error_set_errno(err, ERR_IO, "%s", tool_output);
        for (size_t i = 0; !code && i < parts.parts.n; i++) {
            const struct graph_part *part = &parts.parts.items[i];
            graph_add_made(part->graph, tool_provenance(tool));
            code = to_folder() ? write_file(tool, part, err)
                               : graph_write(tool->writer, part->graph, err);
        }
    }
    if (!code && report) {
        struct str total = STR_INIT, order = STR_INIT;
        int64_t bytes = 0;
        size_t n_tensors = 0;
        bool known = true;
        for (size_t i = 0; i < parts.crossings.n; i++) {
            const struct part_crossing *crossing = &parts.crossings.items[i];
            print_crossing(source.graph, &parts, crossing);
            n_tensors += crossing->edge.slot != CONTROL_SLOT;
            known = known && crossing->bytes >= 0;
            bytes += crossing->bytes > 0 ? crossing->bytes : 0;
        }
        show_bytes(&total, bytes);
        size_t n_orders = parts.crossings.n - n_tensors;
        if (n_orders)
            str_printf(&order, "; %zu time%s order only", n_orders, n_orders == 1 ? "" : "s");
        tool_say(tool, "%zu graph%s, %zu tensor%s cross%s, %s%s a step%s", parts.parts.n,
                 parts.parts.n == 1 ? "" : "s", n_tensors, n_tensors == 1 ? "" : "s",
                 n_tensors == 1 ? "es" : "", known ? "" : "at least ", str_text(&total),
                 str_text(&order));
        str_release(&order);
        str_release(&total);
    }
    parts_release(&parts);
    graph_free(source.graph);
    cluster_release(&source.cluster);
    costs_release(&source.costs);
    return code;
}

int main(int argc, char **argv)
{
    return ops_tool_main(&table, run, argc, argv);
}
