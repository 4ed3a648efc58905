/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that replication adds: pushes, takes, and the clock between them.
 */
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"

int replicate_clock(struct replicator *r, const char *name, struct node_spec spec)
{
    /* The driver of tiles, whose graph is the source, drives the rounds within its steps. */
    bool drives = r->to == r->from;
    const struct attr attrs[] = {
        {"clock", attr_string(r->entry->name)},
        {"policy", attr_string(arena_strdup(&r->to->arena, r->options->policy))},
        {"workers", attr_int(r->options->workers)},
        {"timeout", attr_float(r->options->timeout)},
        {"keeps", attr_bool(replicate_has_states(r))},
        {"drives", attr_bool(drives)},
        {"entry", attr_string(drives ? "" : "update")}};
    spec = replicate_declared(r, spec, attrs, sizeof attrs / sizeof *attrs);
    spec.device = CLOCK_DEVICE;
    return replicate_add(r, spec, "%s", name).node;
}

/* ---- a worker joins ---- */

/* The version that a worker computes from is a variable of its own. */
int replicate_add_join(struct replicator *r)
{
    struct edge heads = replicate_journal_heads(r);
    r->leave = replicate_clock(r, "clock/leave", (struct node_spec){.op = "ClockLeave"});
    r->join = replicate_clock(
        r, "clock/join",
        (struct node_spec){.op = "ClockJoin", .inputs = &heads, .n_inputs = edge_exists(heads)});
    r->version = replicate_local(r, WORKER_VERSION, INT64, &SHAPE_SCALAR).node;
    replicate_assign(r, &r->joined, replicate_out(r->version), replicate_out(r->join),
                     "clock/join/version");
    return replicate_entry(r, "leave", &(struct edge){r->leave, CONTROL_SLOT}, 1);
}

/* ---- a worker pushes ---- */

static int add_push(struct replicator *r, struct push *push)
{
    vec_each(x, &push->exchanges) {
        (*x)->push = push;
        (*x)->technique->send(r, *x);
    }
    replicate_send_dues(r, push);
    struct attr unused;
    struct edge *edges = replicate_inputs(r, &push->sent, &unused);
    const struct node *variable = graph_find(r->from, push->variable);
    int n = (int)push->sent.values.n;
    for (int j = 0; j < n; j++)
        if (!r->err->code && !replicate_narrow(r, edges[j].node) && variable)
            replicate_hurry(r, edges[j].node, r->priority[variable->id]);
    const struct attr aggregator = {"aggregator", attr_string(push->variable)};
    struct node_spec spec = replicate_spec("AggregatorPush", edges, n, &aggregator, 1);
    push->token =
        replicate_add(r, replicate_beside(r, push->variable, spec), "%s/push", push->variable);
    replicate_wait_for_checks(r, push->token); /* the update waits for its own nodes */
    return r->err->code;
}

/* The step's push waits for those of its gradients. It takes the token of the first; the others are
 * control edges, which need only one message for all pushes on one shard. */
int replicate_add_pushes(struct replicator *r)
{
    node_list waits = VEC_INIT;
    if (replicate_sum_rows(r) || replicate_add_join(r) || replicate_add_dues(r))
        return r->err->code;
    struct edge inputs[2] = {replicate_out(r->version), EDGE_NONE};
    vec_each(push, &r->pushes) {
        if (add_push(r, push))
            return r->err->code;
        if (!replicate_is_steady(r, push))
            continue;
        if (edge_exists(inputs[1]))
            replicate_also(r, &waits, push->token);
        else
            inputs[1] = push->token;
    }
    struct node_spec spec = replicate_spec_of_two("ClockPush", inputs);
    spec.controls = waits.items;
    spec.n_controls = (int)waits.n;
    struct edge push = {replicate_clock(r, "clock/push", spec), 0};
    replicate_assign(r, &r->ends, replicate_out(r->version), push, "clock/push/version");
    if (r->err->code || replicate_end_local(r))
        return r->err->code;
    replicate_end_intervals(r, push);
    vec_each(x, &r->planned) {
        if ((*x)->technique->keep)
            (*x)->technique->keep(r, *x, build_slot(push, 1));
    }
    if (replicate_keep_states(r, push.node))
        return r->err->code;
    /* Also runs in steps that do not push, where a NoOp would be dead. */
    r->done = replicate_after(r, "ControlTrigger", WORKER_DEVICE, &r->ends, "clock/done");
    return r->err->code;
}

/* ---- the update ---- */

/* Adds the node that takes all workers' pushes on the shard, and the values made from them. */
static int add_take(struct replicator *r, struct push *push)
{
    int n = (int)push->sent.values.n;
    struct attr attrs[4] = {{"aggregator", attr_string(push->variable)}};
    const struct edge *sent = replicate_inputs(r, &push->sent, &attrs[1]);
    enum dtype *types = arena_array(&r->to->arena, (size_t)n + 1, sizeof *types);
    struct shape *shapes = arena_array(&r->to->arena, (size_t)n + 1, sizeof *shapes);
    for (int j = 0; j < n; j++) {
        const struct node_output *output = graph_output(r->to, sent[j]);
        types[j] = output->type;
        shapes[j] = output->shape;
        if (strstr(attrs[1].value.strings[j], "rows") && shapes[j].rank > 0)
            shapes[j].dims[0] = -1;
    }
    attrs[2] = (struct attr){"T", {.kind = ATTR_LIST_TYPE, .n = n, .types = types}};
    attrs[3] = (struct attr){"shapes", {.kind = ATTR_LIST_SHAPE, .n = n, .shapes = shapes}};
    const struct edge inputs[] = {replicate_members(r, push), {r->round, 2}};
    struct node_spec spec = replicate_spec("AggregatorTake", inputs, 2, attrs, 4);
    struct edge take =
        replicate_add(r, replicate_beside(r, push->variable, spec), "%s/take", push->variable);
    for (int j = 0; j < n; j++)
        *push->sent.values.items[j].got = build_slot(take, j);
    vec_each(x, &push->exchanges) {
        if ((*x)->technique->take && !r->err->code)
            (*x)->technique->take(r, *x);
    }
    return r->err->code;
}

int replicate_add_update(struct replicator *r)
{
    r->round = replicate_clock(r, "clock/round", (struct node_spec){.op = "ClockRound"});
    for (int pass = 0; pass < 2; pass++) { /* a steady one tells whether there are others */
        vec_each(push, &r->pushes) {
            if (replicate_is_steady(r, push) == !pass && add_take(r, push))
                return r->err->code;
        }
    }
    return 0;
}

int replicate_end_update(struct replicator *r)
{
    struct edge round = {r->round, 0};
    int advance =
        replicate_clock(r, "clock/advance",
                        (struct node_spec){.op = "ClockAdvance", .inputs = &round, .n_inputs = 1});
    node_list over = VEC_INIT;
    graph_each(node, r->from) {
        if (has(r, node->id, FACT_WRITER) || (has(r, node->id, FACT_UPDATE) && !node->n_outputs))
            vec_push_in(&r->arena, &over, r->updated[node->id]);
    }
    if (replicate_may_leave_out(r) || r->has_intervals) {
        /* Nodes that are left out are dead, and the clock continues. */
        over.items[0] = replicate_after(r, "ControlTrigger", CLOCK_DEVICE, &over, "clock/updated");
        over.n = 1;
    }
    vec_each(before, &over)
        replicate_wait(r, replicate_out(advance), *before);
    replicate_entry(r, "update", &(struct edge){advance, CONTROL_SLOT}, 1);
    /* Values from the journal are dead in a worker that begins with the shards' values, and the
     * reverse. */
    int joined = replicate_after(r, "ControlTrigger", WORKER_DEVICE, &r->joined, "clock/join/over");
    const struct edge edges[] = {{r->join, 0}, {r->join, 1}, {joined, CONTROL_SLOT}};
    return replicate_entry(r, "join", edges, 3);
}
