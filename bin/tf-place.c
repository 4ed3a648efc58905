/* SPDX-License-Identifier: Apache-2.0
 *
 * tf-place: gives every node of a graph a device.
 */
#include <math.h>
#include <string.h>

#include "bin/filter.h"
#include "bin/ops_option.h"
#include "ops/ops.h"
#include "pass/place/place.h"
#include "pass/slice/slice.h"

static struct filter filter;
static struct option_list devices;
static struct placement placement;
static int64_t assume = 32, cut_above = SLICE_BALANCE_ABOVE;
static bool report, soft;

static const struct option_row rows[] = {
    {0, "devices", OPTION_LIST, &devices, "DEVICE,...",
     "what there is (CPU:0): CPU:1, /job:ps/task:0/device:CPU:0"},
    {'c', "cluster", OPTION_TEXT, &filter.cluster_path, "FILE",
     "what there is, and how fast: tasks, devices, memory, links"},
    {0, "costs", OPTION_TEXT, &filter.costs_path, "FILE", "measured times, from tf-show --costs"},
    {0, "assume", OPTION_NATURAL, &assume, "N", "what an unknown dimension counts as (32)"},
    {0, "cut-above", OPTION_NATURAL, &cut_above, "N",
     "elements that a variable has which may be cut to balance shards (1000000; 0: none is)"},
    {0, "soft", OPTION_FLAG, &soft, NULL,
     "what asked for a device without a kernel for it may go to another"},
    {0, "report", OPTION_FLAG, &report, NULL, "list on stderr each node's device, and why"},
    OPS_OPTION_ROW,
    TOOL_OUTPUT_ROW,
    TOOL_COMMON_ROWS,
    {0},
};

static const struct option_clash clashes[] = {{"cluster", "devices"}, {NULL, NULL}};

static const struct option_table table = {
    .tool = "tf-place",
    .summary = "give every op of a graph a device",
    .operands = "[FILE]",
    .description =
        "Reads a graph and writes it with a device assigned to every node. What a node asked for, "
        "as much of a device's name as the script said, is a constraint; nodes share a device "
        "where the script put them together, and with the variable that they change. A device "
        "must have kernels for all that share it. A node that was placed before stays if it "
        "may. With --soft a node whose device is not there, or has no kernel for it, goes to "
        "another of its task; a line for each op says so.\n"
        "\n"
        "Without --devices there is CPU:0 of this process, /job:localhost/task:0/device:CPU:0.\n"
        "\n"
        "With --cluster or --costs the devices are chosen by simulating a step. Nodes come in the "
        "order of their longest path to an end, each goes where it would finish first: when what "
        "it needs has arrived over the links and the device is free. A device computes one node "
        "at a time; its memory bounds what it holds. The result is compared with everything on "
        "one device and with all devices in turn, and the shortest step wins. The time of a node "
        "is the one in --costs, that of its op there, or estimated from its op and its shapes.\n"
        "\n"
        "If the cluster has a job ps, variables that asked for no other job go to its tasks, "
        "balanced by bytes, with what shares a device with them; what has no variable does not. "
        "A node that asks for task:* is one in each task of its job. A variable that no task has "
        "the "
        "memory for, or that asks for it, is cut into slices of rows, NAME/part_0 and so on; so "
        "are the largest of more than a million elements, as long as a task of ps has more than a "
        "tenth above the mean.\n"
        "\n"
        "A cluster file has a statement a line:\n"
        "    task NAME:N ADDRESS device=CPU:0,CPU:1 memory=1G speed=1.5\n"
        "    device TASK GPU:0 memory=80G operations=60e12 bandwidth=2T bus=24G\n"
        "    link A B bandwidth=2G latency=50us\n"
        "\n"
        "ADDRESS is HOST:PORT or unix:NAME; without device= there is CPU:0; memory is that of "
        "each device; speed compares devices of a type. A and B are tasks, ps:* or *; the last "
        "line about two tasks counts, for both directions. # starts a comment.",
    .examples = "tf-graph digits.lua | tf-opt | tf-place > digits.tfg\n"
                "tf-place --devices CPU:0,CPU:1 --report digits.tfg > placed.tfg\n"
                "tf-place -c digits.cluster --costs digits.costs --report digits.tfg > placed.tfg",
    .rows = rows,
    .clashes = clashes,
    .operands_max = 1,
    .writes_stream = true,
};

struct line {
    const struct node *node;
    char *reason;
};

/* Nodes of one op that were moved for the same reason. */
struct move {
    const struct op *op;
    const struct node *first;
    char *reason;
    int n;
};

struct report {
    struct arena arena;
    VEC(struct line) lines;
    VEC(struct move) moved;
};

static void print_note(void *context, const struct node *node, const char *reason)
{
    struct report *r = context;
    vec_push(&r->lines, ((struct line){node, arena_strdup(&r->arena, reason)}));
}

static void note_moved(void *context, const struct node *node, const char *reason)
{
    struct report *r = context;
    vec_each(moved, &r->moved) {
        if (moved->op == node->op && !strcmp(moved->reason, reason)) {
            moved->n++;
            return;
        }
    }
    vec_push(&r->moved, ((struct move){node->op, node, arena_strdup(&r->arena, reason), 1}));
}

static void say_time(struct str *line, double ns)
{
    if (isinf(ns))
        str_append(line, "too much for its memory");
    else
        str_printf(line, "%.1f us", ns / 1e3);
}

static int find_devices(struct filter *f, struct error *err)
{
    if (filter_read_model(f, err))
        return err->code;
    if (f->cluster_path && placement_add_cluster(&placement, &f->cluster, err))
        return err->code;
    if (!f->cluster_path && !devices.n && placement_add(&placement, "CPU:0", err))
        return err->code;
    for (size_t i = 0; !f->cluster_path && i < devices.n; i++)
        if (placement_add(&placement, devices.items[i], err)) {
            err->code = ERR_USAGE;
            return error_prefix(err, "--devices: ");
        }
    placement_take_facts(&placement, &f->costs);
    return 0;
}

static int place(struct filter *f, struct error *err)
{
    const struct tool *tool = f->tool;
    struct report r = {.arena = ARENA_INIT};
    bool reports = report && !tool->quiet, simulates = f->cluster_path || f->costs_path;
    struct place_costs model = {.measured = f->costs_path ? &f->costs : NULL, .assume = assume};
    struct place_result result;
    struct place_options options = {.placement = &placement,
                                    .kernels = ops_kernels(),
                                    .model = simulates ? &model : NULL,
                                    .result = &result,
                                    .soft = soft,
                                    .moved = note_moved,
                                    .note = reports ? print_note : NULL,
                                    .context = &r};
    struct graph *sliced = NULL;
    struct slice_options cuts = {&placement, cut_above};
    int code = placement_add_groups(&placement, f->graph, err);
    if (!code)
        code = slice_variables(f->graph, &cuts, &sliced, err);
    filter_add(f, sliced);
    struct graph *graph = filter_last(f);
    if (!code && f->costs_path)
        cost_scale_cores(&f->cluster, graph, &f->costs, assume);
    if (!code)
        code = place_graph(graph, &options, err);
    if (!code) {
        /* Costs measured for another graph would silently leave all times to estimates. */
        bool is_used = !f->costs_path || !graph->nodes.n;
        graph_each(node, graph) {
            double ns;
            for (size_t k = 0; k < placement.devices.n && !is_used; k++)
                is_used = costs_find(&f->costs, node, placement.devices.items[k].name.type, &ns);
        }
        if (!is_used)
            tool_say(tool, "%s: measures no node of the graph", f->costs_path);
        vec_each(moved, &r.moved) {
            if (moved->n == 1)
                tool_say(tool, "%s is on %s: %s", moved->first->name, moved->first->assigned,
                         moved->reason);
            else
                tool_say(tool, "%s and %d more %s are on %s: %s", moved->first->name, moved->n - 1,
                         moved->op->def->name, moved->first->assigned, moved->reason);
        }
        size_t name = 0, device = 0;
        for (size_t i = 0; i < r.lines.n; i++) {
            const struct node *node = r.lines.items[i].node;
            name = strlen(node->name) > name ? strlen(node->name) : name;
            device = strlen(node->assigned) > device ? strlen(node->assigned) : device;
        }
        for (size_t i = 0; i < r.lines.n; i++) {
            const struct node *node = r.lines.items[i].node;
            fprintf(stderr, "%-*s  %-*s  %s\n", (int)(name > 40 ? 40 : name), node->name,
                    (int)device, node->assigned, r.lines.items[i].reason);
        }
        if (reports && simulates) {
            struct str line = STR_INIT;
            str_append(&line, "a step takes ");
            say_time(&line, result.makespan);
            str_append(&line, "; on one device ");
            say_time(&line, result.one_device);
            str_append(&line, "; on all in turn ");
            say_time(&line, result.round_robin);
            tool_say(tool, "%s", str_text(&line));
            tool_say(tool, "%lld tensor%s cross%s, %.1f KiB a step", (long long)result.n_transfers,
                     result.n_transfers == 1 ? "" : "s", result.n_transfers == 1 ? "es" : "",
                     result.transfer_bytes / 1024);
            str_release(&line);
        }
    }
    vec_release(&r.lines);
    vec_release(&r.moved);
    arena_release(&r.arena);
    return code;
}

int main(int argc, char **argv)
{
    filter.check = find_devices;
    filter.rewrite = place;
    int status = filter_main(&filter, &table, argc, argv);
    placement_release(&placement);
    return status;
}
