/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-place: gives every node of a graph a device.
 */
#include <string.h>

#include "cli/tool.h"
#include "graph/graph_io.h"
#include "ops/ops.h"
#include "pass/place.h"

static struct option_list devices;
static bool report;

static const struct option_row rows[] = {
    {0, "devices", OPTION_LIST, &devices, "DEVICE,...",
     "what there is (CPU:0): CPU:1, /job:ps/task:0/device:CPU:0"},
    {0, "report", OPTION_FLAG, &report, NULL, "list on stderr each node's device, and why"},
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_table table = {
    .tool = "tf-place",
    .summary = "give every op of a graph a device",
    .operands = "[FILE]",
    .description =
        "Reads a graph and writes it with a device assigned to every node. What a node asked for, "
        "as much of a device's name as the script said, is a constraint; nodes share a device "
        "where the script put them together, and with the variable that they change. A device "
        "must have kernels for all that share it. A node that was placed before stays if it "
        "may.\n"
        "\n"
        "Without --devices there is CPU:0 of this process, /job:localhost/task:0/device:CPU:0.",
    .examples = "tf-graph digits.lua | tf-opt | tf-place > digits.tfg\n"
                "tf-place --devices CPU:0,CPU:1 --report digits.tfg > placed.tfg",
    .rows = rows,
    .operands_max = 1,
    .writes_stream = true,
};

struct line {
    const struct node *node;
    char *reason;
};

struct report {
    struct arena arena;
    VEC(struct line) lines;
};

static void note(void *context, const struct node *node, const char *reason)
{
    struct report *r = context;
    vec_push(&r->lines, ((struct line){node, arena_strdup(&r->arena, reason)}));
}

static void print_report(const struct report *r)
{
    size_t name = 0, device = 0;
    for (size_t i = 0; i < r->lines.n; i++) {
        const struct node *node = r->lines.items[i].node;
        name = strlen(node->name) > name ? strlen(node->name) : name;
        device = strlen(node->assigned) > device ? strlen(node->assigned) : device;
    }
    for (size_t i = 0; i < r->lines.n; i++) {
        const struct node *node = r->lines.items[i].node;
        fprintf(stderr, "%-*s  %-*s  %s\n", (int)(name > 40 ? 40 : name), node->name, (int)device,
                node->assigned, r->lines.items[i].reason);
    }
}

static int find_devices(struct placement *placement, struct error *err)
{
    if (!devices.n)
        return placement_add(placement, "CPU:0", err);
    for (size_t i = 0; i < devices.n; i++)
        if (placement_add(placement, devices.items[i], err)) {
            err->code = ERR_USAGE;
            return error_prefix(err, "--devices: ");
        }
    return 0;
}

static int place(struct tool *tool, struct stream_reader *reader, const struct placement *placement,
                 struct error *err)
{
    struct report r = {.arena = ARENA_INIT};
    struct place_options options = {.placement = placement,
                                    .kernels = ops_kernels(),
                                    .note = report && !tool->quiet ? note : NULL,
                                    .context = &r};
    struct graph *graph = NULL;
    int code = graph_read_whole(reader, ops_registry(), &graph, err);
    if (!code && (code = place_graph(graph, &options, err)))
        error_prefix(err, "%s: ", stream_reader_name(reader));
    if (!code) {
        print_report(&r);
        graph_add_made(graph, tool_provenance(tool));
        code = graph_write(tool->writer, graph, err);
    }
    vec_release(&r.lines);
    arena_release(&r.arena);
    graph_free(graph);
    return code;
}

static int run(struct tool *tool, int n, char **operands, struct error *err)
{
    struct placement placement = {.arena = ARENA_INIT};
    struct stream_reader *reader;
    int code = find_devices(&placement, err);
    if (!code)
        code = tool_open_writer(tool, 1, err);
    if (!code)
        code = tool_open_reader(tool, n ? operands[0] : NULL, &reader, err);
    if (!code) {
        code = place(tool, reader, &placement, err);
        tool_close_reader(reader);
    }
    placement_release(&placement);
    return code;
}

int main(int argc, char **argv)
{
    return tool_main(&table, run, argc, argv);
}
