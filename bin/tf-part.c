/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-part: partitions a placed graph into one graph per device.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "bin/filter.h"
#include "bin/ops_option.h"
#include "cli/record_file.h"
#include "pass/part/part.h"
#include "show/show.h"

static struct filter filter;
static struct parts parts;
static bool report;

static const struct option_row rows[] = {
    {'c', "cluster", OPTION_TEXT, &filter.cluster_path, "FILE", "how fast devices and links are"},
    {0, "costs", OPTION_TEXT, &filter.costs_path, "FILE", "measured times, from tf-show --costs"},
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

static void print_crossing(const struct graph *graph, const struct part_crossing *crossing)
{
    const bool is_order = crossing->edge.slot == CONTROL_SLOT, is_unknown = crossing->bytes < 0;
    struct str name = STR_INIT;
    graph_print_edge(&name, graph, crossing->edge);
    for (int i = 0; i < crossing->n_also; i++)
        str_printf(&name, ", ^%s", graph_node(graph, crossing->also[i])->name);
    fprintf(stderr, "%s  %s -> %s  %s\n", str_text(&name),
            short_device(parts.parts.items[crossing->from].device),
            short_device(parts.parts.items[crossing->to].device),
            is_order     ? "order only"
            : is_unknown ? "? bytes"
                         : show_bytes(crossing->bytes).s);
    str_release(&name);
}

/* ---- writing ---- */

static int write_file(const struct tool *tool, const struct graph_part *part, struct error *err)
{
    struct str path = STR_INIT;
    struct record_file file;
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
    if (!record_file_open(&file, tool, str_text(&path), 1, err)) {
        if (!graph_write(file.writer, part->graph, err))
            record_file_commit(&file, err);
        else
            record_file_discard(&file);
    }
    str_release(&path);
    return err->code;
}

static bool to_folder(void)
{
    return tool_output && str_ends(tool_output, "/");
}

static int cut(struct filter *f, struct error *err)
{
    const struct part_estimates estimates = {.cluster = f->cluster_path ? &f->cluster : NULL,
                                             .costs = f->costs_path ? &f->costs : NULL};
    return part_graph(f->graph, &estimates, &parts, err);
}

static void print_report(const struct filter *f)
{
    struct str order = STR_INIT;
    int64_t bytes = 0;
    size_t n_tensors = 0;
    bool known = true;
    vec_each(crossing, &parts.crossings) {
        print_crossing(f->graph, crossing);
        n_tensors += crossing->edge.slot != CONTROL_SLOT;
        known = known && crossing->bytes >= 0;
        bytes += crossing->bytes > 0 ? crossing->bytes : 0;
    }
    size_t n_orders = parts.crossings.n - n_tensors;
    if (n_orders)
        str_printf(&order, "; %zu time%s order only", n_orders, n_orders == 1 ? "" : "s");
    tool_say(f->tool, "%zu graph%s, %zu tensor%s cross%s, %s%s a step%s", parts.parts.n,
             parts.parts.n == 1 ? "" : "s", n_tensors, n_tensors == 1 ? "" : "s",
             n_tensors == 1 ? "es" : "", known ? "" : "at least ", show_bytes(bytes).s,
             str_text(&order));
    str_release(&order);
}

static int write_parts(struct filter *f, struct error *err)
{
    if (!to_folder())
        tool_open_writer(f->tool, (int64_t)parts.parts.n, err);
    else if (mkdir(tool_output, 0777) && errno != EEXIST)
        error_set_errno(err, ERR_IO, "%s", tool_output);
    for (size_t i = 0; !err->code && i < parts.parts.n; i++) {
        const struct graph_part *part = &parts.parts.items[i];
        graph_add_made(part->graph, tool_provenance(f->tool));
        if (to_folder())
            write_file(f->tool, part, err);
        else
            graph_write(f->tool->writer, part->graph, err);
    }
    if (!err->code && report)
        print_report(f);
    return err->code;
}

int main(int argc, char **argv)
{
    filter.check = filter_read_model;
    filter.rewrite = cut;
    filter.write = write_parts;
    int status = filter_main(&filter, &table, argc, argv);
    parts_release(&parts);
    return status;
}
