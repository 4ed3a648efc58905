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
#include "pass/part/part.h"
#include "pass/replicate/replicate_plan.h"

/* Returns the node of that name on the node's device, which is added if it is new: few edges go
 * from task to task. */
static int beside(struct replicator *r, node_list *made, const struct node *node, const char *name)
{
    const char *device = *node->device ? node->device : CLOCK_DEVICE;
    const node_list none = VEC_INIT;
    if (r->err->code)
        return -1;
    vec_each(known, made) {
        if (!strcmp(graph_node(r->to, *known)->device, device))
            return *known;
    }
    vec_push_in(&r->arena, made, replicate_after(r, "NoOp", device, &none, name));
    return made->items[made->n - 1];
}

/* Adds on each device a node after those of the list there. */
static void add_after(struct replicator *r, const node_list *nodes, const char *name,
                      node_list *made)
{
    vec_each(node, nodes)
        replicate_wait(r, replicate_out(beside(r, made, graph_node(r->to, *node), name)), *node);
}

static int add_clock(struct replicator *r)
{
    const struct spread after = {FACT_WRITER, FACT_AFTER, .only = FACT_NEEDED, .controls = true};
    node_list computed = VEC_INIT, writers = VEC_INIT; /* what the round begins after, and is of */
    node_list before = VEC_INIT, begins = VEC_INIT, updated = VEC_INIT;
    bool *is_met = arena_alloc(&r->arena, r->from->nodes.n + 1);
    /* The round begins when all that the nodes that change variables, with what comes after them,
     * need of the rest of the step is there, also the check of the loss. */
    graph_each_ordered(node, r->from, r->order) {
        if (!has(r, node->id, FACT_NEEDED) || !part_written(r->from, node))
            continue;
        r->facts[node->id] |= FACT_WRITER | FACT_AFTER;
        vec_push_in(&r->arena, &writers, node->id);
    }
    spread_facts(r->from, r->order, r->facts, after);
    graph_each_ordered(node, r->from, r->order) {
        for (int k = 0; has(r, node->id, FACT_AFTER) && k < node->n_inputs + node->n_controls;
             k++) {
            const struct node *needed = graph_node(r->from, node_dependency(node, k).node);
            if (is_met[needed->id] || has(r, needed->id, FACT_AFTER) || !needed->n_inputs)
                continue;
            is_met[needed->id] = true;
            vec_push_in(&r->arena, &computed, needed->id);
        }
    }
    /* Nobody would push for another entry that writes. */
    vec_each(entry, &r->from->entries) {
        const bool *needed = graph_entry_needs(&r->arena, r->from, entry);
        graph_each(node, r->from) {
            if (entry != r->entry && needed[node->id] && has(r, node->id, FACT_AFTER))
                return error_set(r->err, ERR_DATA,
                                 "the entry '%s' needs %s, which changes in a step of '%s' only",
                                 entry->name, node_text(node), r->entry->name);
        }
    }
    if (replicate_add_join(r))
        return r->err->code;
    /* The push says that the step is computed. It is answered when the round is over. */
    add_after(r, &computed, "clock/computed", &before);
    struct edge version = replicate_out(r->version);
    struct node_spec spec = {.op = "ClockPush",
                             .inputs = &version,
                             .n_inputs = 1,
                             .controls = before.items,
                             .n_controls = (int)before.n};
    int push = replicate_clock(r, "clock/push", spec);
    r->round = replicate_clock(r, "clock/round", (struct node_spec){.op = "ClockRound"});
    vec_each(writer, &writers) {
        int begun = beside(r, &begins, graph_node(r->to, *writer), "clock/begun");
        replicate_wait(r, replicate_out(begun), r->round);
        replicate_wait(r, replicate_out(*writer), begun);
    }
    add_after(r, &writers, "clock/updated", &updated);
    struct edge round = replicate_out(r->round);
    spec = (struct node_spec){.op = "ClockAdvance",
                              .inputs = &round,
                              .n_inputs = 1,
                              .controls = updated.items,
                              .n_controls = (int)updated.n};
    int advance = replicate_clock(r, "clock/advance", spec);
    replicate_assign(r, &r->ends, version, replicate_out(push), "clock/push/version");
    if (r->err->code)
        return r->err->code;
    const struct edge join[] = {{r->join, 0}, {r->join, 1}, {r->joined.items[0], CONTROL_SLOT}};
    int n = r->entry->n_edges;
    struct edge *edges = arena_array(&r->arena, (size_t)n + 2, sizeof *edges);
    memcpy(edges, r->entry->edges, (size_t)n * sizeof *edges);
    edges[n] = (struct edge){advance, CONTROL_SLOT};
    edges[n + 1] = (struct edge){r->ends.items[0], CONTROL_SLOT};
    graph_add_entry(r->to, r->entry->name, edges, n + 2);
    return replicate_entry(r, "join", join, 3) ? r->err->code : graph_check(r->to, r->err);
}

int replicate_grid_clock(struct graph *graph, const char *entry, double timeout, struct error *err)
{
    const struct replicate_options options = {
        .policy = "sync", .workers = 1, .entry = entry, .timeout = timeout};
    struct replicator r = {.from = graph, .to = graph, .options = &options, .err = err};
    r.order = arena_array(&r.arena, graph->nodes.n + 1, sizeof *r.order);
    r.facts = arena_array(&r.arena, graph->nodes.n + 1, sizeof *r.facts);
    if (!graph_order(graph, r.order, err) && !replicate_find_entry(&r, "counts steps")) {
        if (r.entry)
            add_clock(&r);
        else if (entry)
            error_set(err, ERR_DATA, "the entry '%s' does not exist or nothing of it trains",
                      entry);
    }
    arena_release(&r.arena);
    return err->code;
}
