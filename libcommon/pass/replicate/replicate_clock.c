/* SPDX-License-Identifier: Apache-2.0
 *
 * What is new in the graph: pushes, takes, and the clock between them.
 */
#include <string.h>

#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"

#define CLOCK_ATTRS_MAX 6

static int add_clock(struct replicator *r, const char *op, const char *name,
                     const struct node_spec *more)
{
    struct attr attrs[CLOCK_ATTRS_MAX];
    const struct op *declared = registry_find(r->to->registry, op);
    struct node_spec spec = more ? *more : (struct node_spec){0};
    spec.op = op;
    spec.attrs = attrs;
    /* All ops of the clock have these attributes; one that may wait for others has a timeout. */
    int n = 0;
    attrs[n++] = (struct attr){"clock", attr_string(r->entry->name)};
    attrs[n++] =
        (struct attr){"policy", attr_string(arena_strdup(&r->to->arena, r->options->policy))};
    attrs[n++] = (struct attr){"workers", attr_int(r->options->workers)};
    if (op_find_attr(declared, "timeout") >= 0)
        attrs[n++] = (struct attr){"timeout", attr_float(r->options->timeout)};
    spec.n_attrs = n;
    return replicate_add(r, CLOCK_DEVICE, name, &spec);
}

/* "loc:@NAME" */
static struct attr with(struct replicator *r, const char *variable, const char **group)
{
    *group = arena_printf(&r->to->arena, "loc:@%s", variable);
    return (struct attr){"_class", {.kind = ATTR_LIST_STRING, .n = 1, .strings = group}};
}

/* ---- a worker joins ---- */

static int set_version(struct replicator *r, const char *name, struct edge value)
{
    struct edge inputs[] = {{r->version, 0}, value};
    struct node_spec spec = {.op = "Assign", .inputs = inputs, .n_inputs = 2};
    return replicate_add(r, WORKER_DEVICE, name, &spec);
}

static int add_join(struct replicator *r)
{
    struct edge heads = replicate_journal_heads(r);
    struct node_spec spec = {.inputs = &heads, .n_inputs = edge_exists(heads)};
    r->leave = add_clock(r, "ClockLeave", "clock/leave", NULL);
    r->join = add_clock(r, "ClockJoin", "clock/join", &spec);
    if (r->leave < 0 || r->join < 0)
        return r->err->code;
    /* The version that a worker computes from is a variable of its own. */
    struct attr attrs[] = {{"dtype", attr_type(INT64)},
                           {"shape", attr_shape(&SHAPE_SCALAR)},
                           {WORKER_LOCAL, attr_bool(true)},
                           {"_trainable", attr_bool(false)}};
    struct node_spec version = {.op = "Variable", .attrs = attrs, .n_attrs = 4};
    r->version = replicate_add(r, WORKER_DEVICE, WORKER_VERSION, &version);
    if (r->version < 0)
        return r->err->code;
    int set = set_version(r, "clock/join/version", (struct edge){r->join, 0});
    if (set < 0)
        return r->err->code;
    vec_push(&r->joined, set);
    graph_add_entry(r->to, "leave", &(struct edge){r->leave, CONTROL_SLOT}, 1);
    return 0;
}

/* ---- a worker pushes ---- */

/* The push of the step waits for those of its gradients. It checks the token of the first; the
 * others are control edges, of which one message tells for all that are on one shard. */
int replicate_add_pushes(struct replicator *r)
{
    int *waits = arena_array(&r->arena, r->pushes.n + 1, sizeof *waits);
    int *checks = arena_array(&r->arena, r->from->nodes.n + 1, sizeof *checks), n_checks = 0;
    struct edge inputs[2];
    int n = 0, n_waits = 0;
    if (replicate_sum_rows(r) || replicate_list_pushed(r) || add_join(r) || replicate_add_dues(r))
        return r->err->code;
    inputs[n++] = (struct edge){r->version, 0};
    /* The check of the loss, say, has to be over before anything is pushed. The update waits for
     * what is its own. */
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, (int)i, FACT_CONTROLS) && r->copy[i] >= 0)
            checks[n_checks++] = r->copy[i];
    for (size_t i = 0; i < r->pushes.n; i++) {
        struct edge *edges = arena_array(&r->arena, r->pushes.items[i].values.n, sizeof *edges);
        for (size_t j = 0; j < r->pushes.items[i].values.n; j++)
            edges[j] =
                replicate_pushed(r, &r->pushes.items[i], &r->pushes.items[i].values.items[j]);
        int priority = r->err->code ? 0 : replicate_priority(r, r->pushes.items[i].variable);
        for (size_t j = 0; j < r->pushes.items[i].values.n && !r->err->code; j++)
            if (!replicate_narrow(r, edges[j].node))
                replicate_hurry(r, edges[j].node, priority);
        if (r->err->code)
            return r->err->code;
        const char *group;
        struct attr attrs[] = {{"aggregator", attr_string(r->pushes.items[i].variable)},
                               with(r, r->pushes.items[i].variable, &group)};
        struct node_spec push_spec = {.op = "AggregatorPush",
                                      .inputs = edges,
                                      .n_inputs = (int)r->pushes.items[i].values.n,
                                      .attrs = attrs,
                                      .n_attrs = 2};
        int node = replicate_add(
            r, SHARD_DEVICE, arena_printf(&r->to->arena, "%s/push", r->pushes.items[i].variable),
            &push_spec);
        if (node < 0)
            return r->err->code;
        for (int j = 0; j < n_checks; j++)
            graph_add_control(r->to, graph_node(r->to, node), checks[j]);
        r->pushes.items[i].token = (struct edge){node, 0};

        if (!replicate_is_steady(r, &r->pushes.items[i]))
            continue;
        struct edge token = r->pushes.items[i].token;
        if (n == 1)
            inputs[n++] = token;
        else
            waits[n_waits++] = token.node;
    }
    struct node_spec spec = {
        .inputs = inputs, .n_inputs = n, .controls = waits, .n_controls = n_waits};
    int push = add_clock(r, "ClockPush", "clock/push", &spec);
    int set = push < 0 ? -1 : set_version(r, "clock/push/version", (struct edge){push, 0});
    if (set < 0)
        return r->err->code;
    vec_push(&r->ends, set);
    if (replicate_end_local(r) || replicate_end_intervals(r, push) ||
        replicate_keep_lost_pushes(r, (struct edge){push, 1}) || replicate_write_journal(r, push) ||
        replicate_keep_states(r, push))
        return r->err->code;
    /* Steps that do not push are over, too: a NoOp would be dead. */
    struct node_spec done = {
        .op = "ControlTrigger", .controls = r->ends.items, .n_controls = (int)r->ends.n};
    r->done = replicate_add(r, WORKER_DEVICE, "clock/done", &done);
    return r->err->code;
}

int replicate_add_rest(struct replicator *r, const struct edge *tokens, int n, struct edge set)
{
    struct node_spec spec = {.inputs = tokens, .n_inputs = n};
    int rest = r->err->code ? -1 : add_clock(r, "ClockRest", "clock/rest", &spec);
    int version = rest < 0 ? -1 : set_version(r, "clock/rest/version", (struct edge){rest, 0});
    if (version < 0)
        return r->err->code;
    const struct edge edges[] = {{version, CONTROL_SLOT}, {set.node, CONTROL_SLOT}};
    graph_add_entry(r->to, "rest", edges, 2);
    return 0;
}

/* ---- the update ---- */

struct take_lists {
    enum dtype *types;
    struct shape *shapes;
    const char **reductions;
};

int replicate_add_update(struct replicator *r)
{
    r->round = add_clock(r, "ClockRound", "clock/round", NULL);
    if (r->round < 0)
        return r->err->code;
    for (int pass = 0; pass < 2; pass++) /* a steady one says whether there are others */
        for (size_t i = 0; i < r->pushes.n; i++) {
            if (replicate_is_steady(r, &r->pushes.items[i]) != !pass)
                continue;
            struct push *push = &r->pushes.items[i];
            int n = (int)push->values.n;
            struct arena *arena = &r->to->arena;
            struct take_lists lists = {arena_array(arena, (size_t)n, sizeof *lists.types),
                                       arena_array(arena, (size_t)n, sizeof *lists.shapes),
                                       arena_array(arena, (size_t)n, sizeof *lists.reductions)};
            for (size_t j = 0; j < push->values.n; j++) {
                const struct pushed_value *value = &push->values.items[j];
                struct edge edge = value->as == PUSHED_CODE
                                       ? replicate_find_coded(r, value->edge)->own.code
                                   : value->as == PUSHED_CODING ? r->coding
                                                                : value->edge;
                bool is_old = value->as == PUSHED_WHOLE || value->as == PUSHED_FACTOR ||
                              value->as == PUSHED_FIRST;
                const struct node_output *output =
                    &graph_node(is_old ? r->from : r->to, edge.node)->outputs[edge.slot];
                lists.types[j] = output->type;
                lists.shapes[j] = output->shape;
                lists.reductions[j] = value->reduction;
                bool varies = strstr(lists.reductions[j], "rows") || value->as == PUSHED_FIRST;
                if (varies && output->shape.rank > 0)
                    lists.shapes[j].dims[0] = -1;
            }
            const char *group;
            struct edge inputs[] = {replicate_members(r, push), {r->round, 2}};
            struct attr attrs[] = {
                {"T", {.kind = ATTR_LIST_TYPE, .n = n, .types = lists.types}},
                {"shapes", {.kind = ATTR_LIST_SHAPE, .n = n, .shapes = lists.shapes}},
                {"reductions", {.kind = ATTR_LIST_STRING, .n = n, .strings = lists.reductions}},
                {"aggregator", attr_string(push->variable)},
                with(r, push->variable, &group)};
            struct node_spec spec = {.op = "AggregatorTake",
                                     .inputs = inputs,
                                     .n_inputs = 2,
                                     .attrs = attrs,
                                     .n_attrs = 5};
            push->take = r->err->code
                             ? -1
                             : replicate_add(r, SHARD_DEVICE,
                                             arena_printf(arena, "%s/take", push->variable), &spec);
            if (r->err->code || replicate_add_products(r, push))
                return r->err->code;
            if (replicate_add_decoded(r, push))
                return r->err->code;
        }
    return 0;
}

static int wait_for_updates(struct replicator *r, int advance)
{
    VEC(int) over = VEC_INIT;
    for (size_t i = 0; i < r->from->nodes.n; i++)
        if (has(r, (int)i, FACT_WRITER) ||
            (has(r, (int)i, FACT_UPDATE) && !graph_node(r->from, (int)i)->n_outputs))
            vec_push(&over, r->updated[i]);
    if (replicate_may_leave_out(r) ||
        r->has_intervals) { /* they are dead then, and the clock goes on */
        struct node_spec spec = {
            .op = "ControlTrigger", .controls = over.items, .n_controls = (int)over.n};
        int all = replicate_add(r, CLOCK_DEVICE, "clock/updated", &spec);
        over.n = 0;
        vec_push(&over, all);
    }
    for (size_t i = 0; !r->err->code && i < over.n; i++)
        graph_add_control(r->to, graph_node(r->to, advance), over.items[i]);
    vec_release(&over);
    return r->err->code;
}

int replicate_end_update(struct replicator *r)
{
    struct edge round = {r->round, 0};
    struct node_spec spec = {.inputs = &round, .n_inputs = 1};
    int advance = add_clock(r, "ClockAdvance", "clock/advance", &spec);
    if (advance < 0 || wait_for_updates(r, advance))
        return r->err->code;
    graph_add_entry(r->to, "update", &(struct edge){advance, CONTROL_SLOT}, 1);
    /* What a worker begins with from its journal is dead in one that begins with what shards have.
     */
    struct node_spec joined = {
        .op = "ControlTrigger", .controls = r->joined.items, .n_controls = (int)r->joined.n};
    int over = replicate_add(r, WORKER_DEVICE, "clock/join/over", &joined);
    const struct edge edges[] = {{r->join, 0}, {r->join, 1}, {over, CONTROL_SLOT}};
    if (over >= 0)
        graph_add_entry(r->to, "join", edges, 3);
    return r->err->code ? r->err->code : replicate_tell_clocks(r);
}
