/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles on shards have a clock, whose one worker is the driver: each step is a round, so that
 * shards make checkpoints between two of them, and a driver that begins again is told how many of
 * its feed records count. Unlike a replicated graph's, the round is part of the driver's step: what
 * changes variables waits for it, and it ends when all that is over. Nobody else would begin the
 * round that a push of a driver waits for that has died: the next one pushes it again.
 */
#include <string.h>

#include "graph/walk.h"
#include "graph/worker_attr.h"
#include "pass/grid/grid.h"
#include "pass/part/part.h"

#define CLOCK_DEVICE "/job:ps/task:0"
#define DRIVER_DEVICE "/job:worker/task:*"
#define CLOCK_ATTRS_MAX 6

/* A node per device, which comes after some there, or before: few edges go from task to task. */
struct device_nodes {
    const char *device;
    VEC(int) nodes; /* those that it waits for, or that wait for it */
};
typedef VEC(struct device_nodes) device_nodes_vec;

struct grid_clock {
    struct graph *graph;
    const struct entry *entry;
    double timeout;
    size_t n_nodes;        /* without those that come now */
    const bool *is_needed; /* by node: of the entry */
    bool *changes;         /* by node: one that writes, or comes after it */
    int *order;
    device_nodes_vec computed, writers;
    int join, version, round, push, advance;
    struct arena arena;
    struct error *err;
};

/* ---- what the entry needs, and what of it writes ---- */

static void need(struct grid_clock *c, const struct entry *entry)
{
    struct graph_walk walk = graph_walk_new(&c->arena, c->graph);
    graph_walk_entry(&walk, entry);
    c->is_needed = graph_walk_end(&walk, c->graph);
}

static int find_entry(struct grid_clock *c, const char *wanted)
{
    vec_each(entry, &c->graph->entries) {
        if (wanted && strcmp(wanted, entry->name) != 0)
            continue;
        /* An entry that trains needs a gradient that minimize() has handed over. */
        bool found = false;
        need(c, entry);
        for (size_t j = 0; j < c->n_nodes && !found; j++)
            found = c->is_needed[j] && node_attr(graph_node(c->graph, (int)j), "_gradient");
        if (!found)
            continue;
        if (c->entry)
            return error_set(c->err, ERR_DATA,
                             "both '%s' and '%s' train: say with --entry which one counts steps",
                             c->entry->name, entry->name);
        c->entry = entry;
    }
    if (!c->entry && wanted)
        return error_set(c->err, ERR_DATA, "the entry '%s' does not exist or nothing of it trains",
                         wanted);
    if (c->entry)
        need(c, c->entry);
    return 0;
}

static void add_to_device(struct grid_clock *c, device_nodes_vec *list, const struct node *node)
{
    const char *device = *node->device ? node->device : CLOCK_DEVICE;
    size_t i = 0;
    while (i < list->n && strcmp(list->items[i].device, device) != 0)
        i++;
    if (i == list->n)
        vec_push_in(&c->arena, list, ((struct device_nodes){.device = device}));
    vec_push_in(&c->arena, &list->items[i].nodes, node->id);
}

/* Nobody would push for another entry that writes. */
static int check_entries(struct grid_clock *c)
{
    vec_each(entry, &c->graph->entries) {
        if (entry == c->entry)
            continue;
        need(c, entry);
        for (size_t k = 0; k < c->n_nodes; k++)
            if (c->is_needed[k] && c->changes[k])
                return error_set(c->err, ERR_DATA,
                                 "the entry '%s' needs %s, which changes in a step of '%s' only",
                                 entry->name, node_text(graph_node(c->graph, (int)k)),
                                 c->entry->name);
    }
    return 0;
}

/* ---- the clock ---- */

static int add(struct grid_clock *c, const char *device, const char *name, struct node_spec *spec)
{
    if (c->err->code)
        return -1;
    spec->name = graph_unique_name(c->graph, name);
    spec->device = device;
    const struct node *node = graph_add(c->graph, spec, c->err);
    return node ? node->id : -1;
}

static int add_clock(struct grid_clock *c, const char *op, const char *name, struct node_spec spec)
{
    const struct op *declared = registry_find(c->graph->registry, op);
    struct attr attrs[CLOCK_ATTRS_MAX] = {{"clock", attr_string(c->entry->name)},
                                          {"policy", attr_string("sync")},
                                          {"workers", attr_int(1)}};
    spec.n_attrs = 3;
    if (op_find_attr(declared, "timeout") >= 0)
        attrs[spec.n_attrs++] = (struct attr){"timeout", attr_float(c->timeout)};
    if (op_find_attr(declared, "entry") >= 0)
        attrs[spec.n_attrs++] = (struct attr){"entry", attr_string("")};
    if (op_find_attr(declared, "drives") >= 0)
        attrs[spec.n_attrs++] = (struct attr){"drives", attr_bool(true)};
    spec.op = op;
    spec.attrs = attrs;
    return add(c, CLOCK_DEVICE, name, &spec);
}

static int set_version(struct grid_clock *c, const char *name, int from)
{
    struct edge inputs[] = {{c->version, 0}, {from, 0}};
    struct node_spec spec = {.op = "Assign", .inputs = inputs, .n_inputs = 2};
    return add(c, DRIVER_DEVICE, name, &spec);
}

static int add_no_op(struct grid_clock *c, const char *device, const char *name,
                     const int *controls, int n)
{
    struct node_spec spec = {.op = "NoOp", .controls = controls, .n_controls = n};
    return add(c, device, name, &spec);
}

/* Adds on each device a node that comes after those there. */
static int *add_after(struct grid_clock *c, const device_nodes_vec *list, const char *name)
{
    int *nodes = arena_array(&c->arena, list->n + 1, sizeof *nodes);
    for (size_t i = 0; i < list->n; i++)
        nodes[i] = add_no_op(c, list->items[i].device, name, list->items[i].nodes.items,
                             (int)list->items[i].nodes.n);
    return nodes;
}

static int add_clocks(struct grid_clock *c)
{
    c->join = add_clock(c, "ClockJoin", "clock/join", (struct node_spec){0});
    struct attr attrs[] = {{"dtype", attr_type(INT64)},
                           {"shape", attr_shape(&SHAPE_SCALAR)},
                           {WORKER_LOCAL, attr_bool(true)},
                           {"_trainable", attr_bool(false)}};
    struct node_spec spec = {.op = "Variable", .attrs = attrs, .n_attrs = 4};
    c->version = add(c, DRIVER_DEVICE, WORKER_VERSION, &spec);
    if (c->err->code)
        return c->err->code;
    /* The push says that the step is computed. It is answered when the round is over. */
    int *computed = add_after(c, &c->computed, "clock/computed");
    struct edge version = {c->version, 0};
    struct node_spec push_spec = {
        .inputs = &version, .n_inputs = 1, .controls = computed, .n_controls = (int)c->computed.n};
    c->push = c->err->code ? -1 : add_clock(c, "ClockPush", "clock/push", push_spec);
    if (!c->err->code) {
        c->round = add_clock(c, "ClockRound", "clock/round", (struct node_spec){0});
        for (size_t i = 0; i < c->writers.n && !c->err->code; i++) {
            const struct device_nodes *there = &c->writers.items[i];
            int begun = add_no_op(c, there->device, "clock/begun", &c->round, 1);
            for (size_t k = 0; k < there->nodes.n && begun >= 0; k++)
                graph_add_control(c->graph, graph_node(c->graph, there->nodes.items[k]), begun);
        }
        int *updated = add_after(c, &c->writers, "clock/updated");
        struct edge input = {c->round, 0};
        c->advance = add_clock(c, "ClockAdvance", "clock/advance",
                               (struct node_spec){.inputs = &input,
                                                  .n_inputs = 1,
                                                  .controls = updated,
                                                  .n_controls = (int)c->writers.n});
    }
    int leave = add_clock(c, "ClockLeave", "clock/leave", (struct node_spec){0});
    int joined = set_version(c, "clock/join/version", c->join);
    int pushed = set_version(c, "clock/push/version", c->push);
    if (c->err->code)
        return c->err->code;
    const struct edge join[] = {{c->join, 0}, {c->join, 1}, {joined, CONTROL_SLOT}};
    int n = c->entry->n_edges;
    struct edge *edges = arena_array(&c->arena, (size_t)n + 2, sizeof *edges);
    memcpy(edges, c->entry->edges, (size_t)n * sizeof *edges);
    edges[n] = (struct edge){c->advance, CONTROL_SLOT};
    edges[n + 1] = (struct edge){pushed, CONTROL_SLOT};
    graph_add_entry(c->graph, c->entry->name, edges, n + 2);
    graph_add_entry(c->graph, "join", join, 3);
    graph_add_entry(c->graph, "leave", &(struct edge){leave, CONTROL_SLOT}, 1);
    return graph_check(c->graph, c->err);
}

int grid_clock(struct graph *graph, const char *entry, double timeout, struct error *err)
{
    size_t n = graph->nodes.n;
    struct grid_clock c = {.graph = graph, .timeout = timeout, .n_nodes = n, .err = err};
    c.changes = arena_alloc(&c.arena, n + 1);
    c.order = arena_array(&c.arena, n + 1, sizeof *c.order);
    int code = graph_order(graph, c.order, err);
    if (!code)
        code = find_entry(&c, entry);
    if (!code && c.entry) {
        graph_each_ordered(node, c.graph, c.order) {
            bool is_writer = c.is_needed[node->id] && part_written(c.graph, node);
            bool comes_after = false;
            for (int k = 0; k < node->n_inputs + node->n_controls; k++)
                comes_after |= c.changes[node_dependency(node, k).node];
            c.changes[node->id] = c.is_needed[node->id] && (is_writer || comes_after);
            if (is_writer)
                add_to_device(&c, &c.writers, node);
        }
        /* The round begins when all is there that writers, and what comes after them, need of the
         * rest of the step, the check of the loss among it. */
        bool *is_met = arena_alloc(&c.arena, c.n_nodes);
        graph_each_ordered(node, c.graph, c.order) {
            for (int k = 0; c.changes[node->id] && k < node->n_inputs + node->n_controls; k++) {
                int from = node_dependency(node, k).node;
                const struct node *needed = graph_node(c.graph, from);
                if (is_met[from] || c.changes[from] || !needed->n_inputs)
                    continue;
                is_met[from] = true;
                add_to_device(&c, &c.computed, needed);
            }
        }
        code = check_entries(&c);
        if (!code)
            code = add_clocks(&c);
    }
    arena_release(&c.arena);
    return code;
}
