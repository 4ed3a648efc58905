/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles on shards have a clock, whose one worker is the driver: each step is a round, so that
 * shards make checkpoints between two of them, and a driver that begins again is told how many of
 * its feed records count. Unlike a replicated graph's, the round is part of the driver's step:
 * nodes that change variables wait for it, and it ends when all changes are over. Nobody else would
 * begin the round that a push of a driver waits for that has died: the next one pushes it again.
 */
#include <string.h>

#include "graph/walk.h"
#include "graph/worker_attr.h"
#include "pass/part/part.h"
#include "pass/replicate/replicate_push.h"

/* Nodes that a node of their device comes after, or before: few edges go from task to task. */
struct device_nodes {
    const char *device;
    node_list nodes;
};
typedef VEC(struct device_nodes) device_nodes_list;

static void add_to_device(struct replicator *r, device_nodes_list *list, const struct node *node)
{
    const char *device = *node->device ? node->device : CLOCK_DEVICE;
    size_t i = 0;
    while (i < list->n && strcmp(list->items[i].device, device) != 0)
        i++;
    if (i == list->n)
        vec_push_in(&r->arena, list, ((struct device_nodes){.device = device}));
    vec_push_in(&r->arena, &list->items[i].nodes, node->id);
}

/* Adds on each device a node after those there. */
static void add_after(struct replicator *r, const device_nodes_list *list, const char *name,
                      node_list *made)
{
    vec_each(there, list) {
        int node = replicate_after(r, "NoOp", there->device, &there->nodes, name);
        vec_push_in(&r->arena, made, node);
    }
}

/* Finds the nodes that change variables, with what comes after them. The round begins when all that
 * these need of the rest of the step is there, also the check of the loss. */
static void find_nodes(struct replicator *r, device_nodes_list *computed,
                       device_nodes_list *writers)
{
    const struct spread after = {FACT_WRITER, FACT_AFTER, .only = FACT_NEEDED, .controls = true};
    bool *is_met = arena_alloc(&r->arena, r->from->nodes.n + 1);
    graph_each_ordered(node, r->from, r->order) {
        if (!has(r, node->id, FACT_NEEDED) || !part_written(r->from, node))
            continue;
        r->facts[node->id] |= FACT_WRITER | FACT_AFTER;
        add_to_device(r, writers, node);
    }
    spread_facts(r->from, r->order, r->facts, after);
    graph_each_ordered(node, r->from, r->order) {
        for (int k = 0; has(r, node->id, FACT_AFTER) && k < node->n_inputs + node->n_controls;
             k++) {
            const struct node *needed = graph_node(r->from, node_dependency(node, k).node);
            if (is_met[needed->id] || has(r, needed->id, FACT_AFTER) || !needed->n_inputs)
                continue;
            is_met[needed->id] = true;
            add_to_device(r, computed, needed);
        }
    }
}

/* Nobody would push for another entry that writes. */
static int check_entries(struct replicator *r)
{
    vec_each(entry, &r->from->entries) {
        const bool *needed = graph_entry_needs(&r->arena, r->from, entry);
        graph_each(node, r->from) {
            if (entry != r->entry && needed[node->id] && has(r, node->id, FACT_AFTER))
                return error_set(r->err, ERR_DATA,
                                 "the entry '%s' needs %s, which changes in a step of '%s' only",
                                 entry->name, node_text(node), r->entry->name);
        }
    }
    return 0;
}

static int add_clock(struct replicator *r, const device_nodes_list *computed,
                     const device_nodes_list *writers)
{
    const struct attr drives = {"drives", attr_bool(true)}, entry = {"entry", attr_string("")};
    node_list before = VEC_INIT, begins = VEC_INIT, updated = VEC_INIT, set = VEC_INIT;
    r->join = replicate_clock(r, "clock/join", replicate_spec("ClockJoin", NULL, 0, &drives, 1));
    struct edge version = replicate_local(r, WORKER_VERSION, INT64, &SHAPE_SCALAR);
    /* The push says that the step is computed. It is answered when the round is over. */
    add_after(r, computed, "clock/computed", &before);
    struct node_spec spec = {.op = "ClockPush",
                             .inputs = &version,
                             .n_inputs = 1,
                             .controls = before.items,
                             .n_controls = (int)before.n};
    int push = replicate_clock(r, "clock/push", spec);
    r->round = replicate_clock(r, "clock/round", replicate_spec("ClockRound", NULL, 0, &entry, 1));
    vec_push_in(&r->arena, &begins, r->round);
    vec_each(there, writers) {
        int begun = replicate_after(r, "NoOp", there->device, &begins, "clock/begun");
        vec_each(writer, &there->nodes)
            replicate_wait(r, replicate_out(*writer), begun);
    }
    add_after(r, writers, "clock/updated", &updated);
    struct edge round = replicate_out(r->round);
    spec = (struct node_spec){.op = "ClockAdvance",
                              .inputs = &round,
                              .n_inputs = 1,
                              .controls = updated.items,
                              .n_controls = (int)updated.n};
    int advance = replicate_clock(r, "clock/advance", spec);
    r->leave = replicate_clock(r, "clock/leave", (struct node_spec){.op = "ClockLeave"});
    replicate_assign(r, &set, version, replicate_out(r->join), "clock/join/version");
    replicate_assign(r, &set, version, replicate_out(push), "clock/push/version");
    if (r->err->code)
        return r->err->code;
    const struct edge join[] = {{r->join, 0}, {r->join, 1}, {set.items[0], CONTROL_SLOT}};
    int n = r->entry->n_edges;
    struct edge *edges = arena_array(&r->arena, (size_t)n + 2, sizeof *edges);
    memcpy(edges, r->entry->edges, (size_t)n * sizeof *edges);
    edges[n] = (struct edge){advance, CONTROL_SLOT};
    edges[n + 1] = (struct edge){set.items[1], CONTROL_SLOT};
    graph_add_entry(r->to, r->entry->name, edges, n + 2);
    graph_add_entry(r->to, "join", join, 3);
    graph_add_entry(r->to, "leave", &(struct edge){r->leave, CONTROL_SLOT}, 1);
    return graph_check(r->to, r->err);
}

int replicate_grid_clock(struct graph *graph, const char *entry, double timeout, struct error *err)
{
    const struct replicate_options options = {
        .policy = "sync", .workers = 1, .entry = entry, .timeout = timeout};
    struct replicator r = {.from = graph, .to = graph, .options = &options, .err = err};
    device_nodes_list computed = VEC_INIT, writers = VEC_INIT;
    r.order = arena_array(&r.arena, graph->nodes.n + 1, sizeof *r.order);
    r.facts = arena_array(&r.arena, graph->nodes.n + 1, sizeof *r.facts);
    if (!graph_order(graph, r.order, err) && !replicate_find_entry(&r, "counts steps")) {
        if (r.entry)
            find_nodes(&r, &computed, &writers);
        else if (entry)
            error_set(err, ERR_DATA, "the entry '%s' does not exist or nothing of it trains",
                      entry);
        if (r.entry && !check_entries(&r))
            add_clock(&r, &computed, &writers);
    }
    arena_release(&r.arena);
    return err->code;
}
