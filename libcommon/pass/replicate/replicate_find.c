/* SPDX-License-Identifier: Apache-2.0
 *
 * Analysis of the source: which entry trains, which nodes belong to the update, and which values
 * must be pushed to it.
 */
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/walk.h"
#include "graph/worker_attr.h"
#include "pass/place/place.h"
#include "pass/replicate/replicate_plan.h"

/* ---- what cannot be replicated ---- */

int replicate_check_late(struct replicator *r, const char *what)
{
    vec_each(push, &r->pushes) {
        vec_each(x, &push->exchanges) {
            if (!has(r, (*x)->node->id, FACT_AFTER))
                continue;
            return node_refuse((*x)->node, r->w.err, "an update needs it, but it comes after %s",
                               what);
        }
    }
    return 0;
}

static int check_nodes(struct replicator *r)
{
    graph_each(node, r->w.from) {
        if (node_is(node, "Send") || node_is(node, "Recv"))
            return node_refuse(node, r->w.err, "the graph was cut before; it is replicated first");
        bool routes = node_round(node) == ROUND_ROUTE ||
                      (node_round(node) == ROUND_REDUCE &&
                       strncmp(node->name, ALLREDUCE_SCOPE, strlen(ALLREDUCE_SCOPE)) != 0);
        if (routes && r->options->mode != REPLICATE_ALLREDUCE)
            return node_refuse(node, r->w.err,
                               "only with --mode allreduce do all workers run it in one step");
        if (node_round(node) && !routes)
            return node_refuse(node, r->w.err, "the graph was replicated before");
        if (node_attr(node, "_gradient"))
            r->facts[node->id] |= FACT_MARKED;
    }
    return 0;
}

/* ---- facts ---- */

int replicate_find_entry(struct replicator *r, const char *what)
{
    vec_each(entry, &r->w.from->entries) {
        const bool *needed = graph_entry_needs(&r->w.arena, r->w.from, entry);
        bool trains = false;
        graph_each(node, r->w.from)
            trains |= needed[node->id] && node_attr(node, "_gradient");
        if (!trains || (r->options->entry && strcmp(r->options->entry, entry->name) != 0))
            continue;
        if (r->entry)
            return error_set(r->w.err, ERR_DATA,
                             "both '%s' and '%s' train: say with --entry which one %s",
                             r->entry->name, entry->name, what);
        r->entry = entry;
        graph_each(node, r->w.from)
            r->facts[node->id] |= needed[node->id] ? FACT_NEEDED : 0;
    }
    return 0;
}

/* ---- dependences ---- */

/* A worker's part of a variable changes within its step. It is no update that workers share, so
 * nodes that wait for it are not affected. */
static bool changes_part(const struct graph *graph, const struct node *writer)
{
    const struct node *variable = access_written(graph, writer);
    return variable && node_attr(variable, WORKER_PART_SHAPE);
}

static bool is_of_all(const struct graph *graph, struct edge edge)
{
    return !changes_part(graph, graph_node(graph, edge.node));
}

static bool is_stateless_writer(const struct replicator *r, const struct node *node)
{
    return has(r, node->id, FACT_NEEDED) && access_written(r->w.from, node) &&
           !has(r, node->id, FACT_INITIAL);
}

/* ---- the update, and the values pushed ---- */

static struct push *push_of(const struct replicator *r, const char *variable)
{
    int64_t at;
    return map_get(&r->push_at, variable, &at) ? &r->pushes.items[at] : NULL;
}

struct exchange *replicate_exchange(const struct replicator *r, struct edge edge)
{
    int at = edge_exists(edge) ? edge_map_get(&r->exchange_at, edge) : -1;
    return at < 0 ? NULL : r->exchanges.items[at];
}

struct exchange *replicate_new_exchange(struct replicator *r, struct edge edge)
{
    const struct node *node = graph_node(r->w.from, edge.node);
    const struct exchange x = {.edge = edge,
                               .node = node,
                               .output = &node->outputs[edge.slot],
                               .kept = EDGE_NONE,
                               .brought = EDGE_NONE,
                               .got = EDGE_NONE};
    return arena_copy(&r->w.arena, &x, sizeof x);
}

/* Adds a value to the push of the variable whose gradient it is, else to that of `variable`. */
static void add_exchange(struct replicator *r, struct edge edge, const char *variable)
{
    const struct node *node = graph_node(r->w.from, edge.node);
    const char *own = replicate_gradient_of(node), *of = own ? own : variable;
    if (replicate_exchange(r, edge))
        return;
    struct exchange *x = replicate_new_exchange(r, edge);
    x->variable = replicate_variable_of(r, node);
    x->is_gradient = has(r, edge.node, FACT_MARKED);
    x->is_of_rows = *replicate_role(node);
    x->reduction = replicate_reduction(node, x->output->type);
    edge_map_add(&r->exchange_at, edge, (int)r->exchanges.n);
    vec_push_in(&r->w.arena, &r->exchanges, x);
    if (!push_of(r, of)) {
        map_put(&r->push_at, of, (int64_t)r->pushes.n);
        vec_push_in(&r->w.arena, &r->pushes, ((struct push){.variable = of}));
    }
    vec_push_in(&r->w.arena, &push_of(r, of)->exchanges, x);
    push_of(r, of)->has_gradient |= x->is_gradient;
}

static void add_to_update(struct replicator *r, node_list *todo, int node)
{
    if (!has(r, node, FACT_UPDATE)) {
        r->facts[node] |= FACT_UPDATE;
        vec_push_in(&r->w.arena, todo, node);
    }
}

/* Walks from a writer up to the values that the worker has to push. */
static void find_update_of(struct replicator *r, int writer, const char *variable)
{
    node_list todo = VEC_INIT;
    add_to_update(r, &todo, writer);
    while (todo.n) {
        const struct node *node = graph_node(r->w.from, vec_pop(&todo));
        for (int i = 0; i < node->n_inputs; i++) {
            if (has(r, node->inputs[i].node, FACT_MARKED) ||
                (has(r, node->inputs[i].node, FACT_OUTSIDE) &&
                 !has(r, node->inputs[i].node, FACT_DOWN | FACT_WRITTEN)))
                add_exchange(r, node->inputs[i], variable);
            else if (!access_is_variable(r->w.from, node->inputs[i]))
                add_to_update(r, &todo, node->inputs[i].node);
        }
        for (int i = 0; i < node->n_controls; i++) {
            if (node_is(graph_node(r->w.from, node->controls[i]), "Variable"))
                continue;
            /* A worker makes such checks, of the loss for example, before it pushes: on shards they
             * would need the whole computation of the loss. */
            if (has(r, node->controls[i], FACT_MARKED) ||
                !has(r, node->controls[i], FACT_DOWN | FACT_WRITTEN))
                r->facts[node->controls[i]] |= FACT_CONTROLS;
            else
                add_to_update(r, &todo, node->controls[i]);
        }
    }
}

/* ---- versions outside of the update ---- */

static void keep_node(struct replicator *r, int node)
{
    r->facts[node] |= has(r, node, FACT_WRITER) ? 0 : FACT_KEPT;
}

bool replicate_is_lookup(const struct replicator *r, const struct node *node)
{
    bool is_put = *node->device && r->options->replica_tasks < 2;
    bool may = node_rows(node) == ROWS_LOOKUP || node->op->def->identity.when == SAME_TYPE;
    return may && !is_put && r->options->fetch <= 1 && place_table_of(r->w.from, node);
}

/* Returns whether the node goes beside a variable: it takes the variable itself, looks up its rows,
 * or is grouped with such a node by the script. */
static bool is_beside(const struct replicator *r, const struct node *node)
{
    if (node_is(node, "Variable") || replicate_is_lookup(r, node))
        return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (node_takes_ref(node, i) && graph_output(r->w.from, node->inputs[i])->is_ref)
            return true;
    const struct attr_value *groups = node_attr(node, "_class");
    for (int i = 0; groups && i < groups->n; i++) {
        const struct node *leader = group_leader(r->w.from, groups->strings[i]);
        if (leader && has(r, leader->id, FACT_SHARD))
            return true;
    }
    return false;
}

/* ---- the order in which a step uses variables ----
 *
 * Values of the variable that is used first are the most urgent, whoever sends them (ByteScheduler,
 * Peng et al. 2019; P3, Jayarajan et al. 2019). Gradients become known in the opposite order, so on
 * a slow link those of the first layers overtake the others. */

/* Fills r->priority, for the entry that was found. */
static void find_priorities(struct replicator *r)
{
    size_t n = r->w.from->nodes.n;
    /* By node: its value is of a batch, which comes from outside or is drawn at random; the
     * variable that it has, or passes on without any of a batch; -1: none. */
    bool *fed = arena_array(&r->w.arena, n + 1, sizeof *fed);
    int *variable = arena_array(&r->w.arena, n + 1, sizeof *variable), next = 0;
    r->priority = arena_array(&r->w.arena, n + 1, sizeof *r->priority);
    graph_each_ordered(node, r->w.from, r->w.order) {
        int id = node->id;
        fed[id] = has(r, id, FACT_OUTSIDE) || node_has(node, OP_RANDOM);
        variable[id] = node_is(node, "Variable") ? id : -1;
        for (int k = 0; k < node->n_inputs; k++)
            fed[id] |= fed[node->inputs[k].node];
        for (int k = 0; k < node->n_inputs && variable[id] < 0 && !fed[id]; k++)
            variable[id] = variable[node->inputs[k].node];
        bool uses = fed[id] && has(r, id, FACT_NEEDED) && !has(r, id, FACT_DOWN | FACT_MARKED);
        for (int k = 0; uses && k < node->n_inputs; k++) {
            int used = variable[node->inputs[k].node];
            if (used >= 0 && !r->priority[used])
                r->priority[used] = ++next;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (variable[i] >= 0)
            r->priority[i] = r->priority[variable[i]];
}

/* ---- intervals of gradients ---- */

/* Returns whether the pattern matches the name, or a scope that it is in. */
static bool matches(const char *pattern, const char *end, const char *name)
{
    if (pattern == end)
        return !*name || *name == '/';
    if (*pattern == '*')
        return matches(pattern + 1, end, name) || (*name && matches(pattern, end, name + 1));
    return *name == *pattern && matches(pattern + 1, end, name + 1);
}

bool replicate_may_leave_out(const struct replicator *r)
{
    graph_each(node, r->w.from) {
        if (has(r, node->id, FACT_UPDATE) && node_has(node, OP_CONTROL_FLOW))
            return true;
    }
    return false;
}

int replicate_refuse_leaving_out(struct replicator *r, const char *why)
{
    return replicate_may_leave_out(r)
               ? error_set(r->w.err, ERR_DATA,
                           "the graph leaves out updates now and then, as a dynamic loss scale "
                           "does, which %s",
                           why)
               : 0;
}

/* A node of the update is in the rounds that have all of its inputs. */
static int find_interval(struct replicator *r, const struct node *node)
{
    int *steps = &r->interval[node->id];
    *steps = r->steps;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct exchange *x = replicate_exchange(r, node->inputs[i]);
        bool in_update = has(r, node->inputs[i].node, FACT_UPDATE);
        int from = in_update ? r->interval[node->inputs[i].node] : x ? x->steps : r->steps;
        if (from != r->steps && *steps != r->steps && from != *steps)
            return error_set(r->w.err, ERR_DATA,
                             "%s: needs gradients that are pushed every %d and every %d steps",
                             node_text(node), *steps, from);
        *steps = from == r->steps ? *steps : from;
    }
    const struct node *written =
        has(r, node->id, FACT_WRITER) ? access_written(r->w.from, node) : NULL;
    const struct push *push = written ? push_of(r, written->name) : NULL;
    if (push && push->has_gradient && *steps != r->steps && *steps != push->steps)
        return error_set(r->w.err, ERR_DATA,
                         "%s: the update of '%s', whose gradient is pushed every %d steps, needs "
                         "one that is pushed every %d",
                         node_text(node), push->variable, push->steps, *steps);
    return 0;
}

static int find_intervals(struct replicator *r)
{
    const struct replicate_options *options = r->options;
    int general = options->accumulate > 1 ? options->accumulate
                  : options->push > 1     ? options->push
                                          : 1;
    vec_each(push, &r->pushes)
        push->steps = general;
    for (int i = 0; i < options->n_intervals; i++) {
        const struct replicate_interval *interval = &options->intervals[i];
        const char *end = interval->pattern + interval->n;
        bool found = false;
        vec_each(push, &r->pushes) {
            bool is_meant = push->has_gradient && matches(interval->pattern, end, push->variable);
            push->steps = is_meant ? interval->steps : push->steps;
            found |= is_meant;
        }
        if (!found)
            return error_set(
                r->w.err, ERR_DATA,
                "push.%.*s=%d: no variable that is trained has this name, or is in a scope of this "
                "name",
                interval->n, interval->pattern, interval->steps);
    }
    /* The smallest is the interval of pushes to the clock. */
    int least = INT32_MAX;
    bool all_steady = true;
    vec_each(push, &r->pushes)
        least = push->has_gradient && push->steps < least ? push->steps : least;
    r->steps = least < INT32_MAX ? least : general;
    vec_each(push, &r->pushes) {
        push->steps = push->has_gradient ? push->steps : r->steps;
        if (push->steps % r->steps)
            return error_set(r->w.err, ERR_DATA,
                             "'%s' is pushed every %d steps, which is no multiple of %d, the "
                             "smallest interval",
                             push->variable, push->steps, r->steps);
        all_steady &= replicate_is_steady(r, push);
        if (replicate_is_steady(r, push) && push->has_gradient && !r->steady)
            r->steady = push;
    }
    r->steady = all_steady ? NULL : r->steady;
    if (r->steady &&
        replicate_refuse_leaving_out(r, "goes by all gradients: they have one interval"))
        return r->w.err->code;
    /* A value that is no gradient (a fed rate) belongs to the step, and other updates may also need
     * it. */
    vec_each(push, &r->pushes) {
        exchange_list all = push->exchanges;
        for (size_t k = 0; k < all.n; k++)
            all.items[k]->steps = all.items[k]->is_gradient ? push->steps : r->steps;
        if (replicate_is_steady(r, push))
            continue;
        push->exchanges.n = 0;
        for (size_t k = 0; k < all.n; k++)
            vec_push_in(&r->w.arena,
                        all.items[k]->is_gradient ? &push->exchanges : &r->steady->exchanges,
                        all.items[k]);
    }
    graph_each_ordered(node, r->w.from, r->w.order) {
        if (r->steady && has(r, node->id, FACT_UPDATE) && find_interval(r, node))
            return r->w.err->code;
    }
    return 0;
}

/* ---- the whole analysis ---- */

int replicate_find(struct replicator *r)
{
    if (check_nodes(r) || replicate_find_entry(r, "is replicated"))
        return r->w.err->code;
    if (!r->entry)
        return error_set(r->w.err, ERR_DATA,
                         "%s%s%s trains: entry.train = minimize(...) makes one that does",
                         r->options->entry ? "the entry '" : "no entry",
                         r->options->entry ? r->options->entry : "",
                         r->options->entry ? "' does not exist or nothing of it" : "");

    const struct spread outside = {.fact = FACT_OUTSIDE, .controls = true};
    const struct spread down = {FACT_MARKED, FACT_DOWN, .controls = true, .follows = is_of_all};
    graph_each(node, r->w.from)
        if (node_has(node, OP_FED | OP_CONTROL_FLOW) || node_makes_resource(node))
            r->facts[node->id] |= FACT_OUTSIDE;
    spread_facts(r->w.from, r->w.order, r->facts, outside);
    spread_facts(r->w.from, r->w.order, r->facts, down);
    /* Nodes that only initial values need go to the shards, so that their values do not cross. */
    const struct entry *entry = graph_entry(r->w.from, "init");
    const bool *needed = entry ? graph_entry_needs(&r->w.arena, r->w.from, entry) : NULL;
    graph_each(node, r->w.from)
        r->facts[node->id] |= needed && needed[node->id] ? FACT_INITIAL : 0;
    for (int i = 0; entry && i < entry->n_edges; i++)
        if (node_has(graph_node(r->w.from, entry->edges[i].node), OP_OVERWRITES))
            r->facts[entry->edges[i].node] |= FACT_FIRST;
    for (size_t i = r->w.from->nodes.n; i-- > 0;) {
        const struct node *node = graph_node(r->w.from, r->w.order[i]);
        if (has(r, node->id, FACT_INITIAL) && !has(r, node->id, FACT_OUTSIDE))
            continue;
        r->facts[node->id] &= ~(unsigned)FACT_INITIAL;
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            r->facts[node_dependency(node, k).node] &= ~(unsigned)FACT_INITIAL;
    }
    /* A node after a write is never a worker's, whatever else it depends on: writes are the
     * update. */
    const struct spread written = {.fact = FACT_WRITTEN, .controls = true};
    graph_each(node, r->w.from) {
        if (is_stateless_writer(r, node) && !changes_part(r->w.from, node))
            r->facts[node->id] |= FACT_WRITTEN | FACT_SHARED;
    }
    spread_facts(r->w.from, r->w.order, r->facts, written);
    graph_each_ordered(node, r->w.from, r->w.order) {
        if (!is_stateless_writer(r, node))
            continue;
        r->facts[node->id] |= FACT_WRITER;
        find_update_of(r, node->id, access_written(r->w.from, node)->name);
    }
    /* Nodes of the update that a worker also needs, or that may be fetched, have two versions. */
    graph_each_named(at, r->w.from)
        keep_node(r, at.edge.node);
    graph_each(node, r->w.from) {
        if (!has(r, node->id, FACT_UPDATE))
            keep_node(r, node->id);
    }
    const struct spread kept = {FACT_KEPT,        FACT_KEPT,  FACT_WRITER,
                                .controls = true, .up = true, .loops = true};
    const struct spread after = {FACT_SHARED, FACT_AFTER, FACT_WRITER, .controls = true,
                                 .loops = true};
    spread_facts(r->w.from, r->w.order, r->facts, kept);
    spread_facts(r->w.from, r->w.order, r->facts, after);
    for (bool found = true; found;) { /* until no group grows any more */
        found = false;
        graph_each(node, r->w.from) {
            if (has(r, node->id, FACT_SHARD) || !is_beside(r, node))
                continue;
            r->facts[node->id] |= FACT_SHARD;
            found = true;
        }
    }
    graph_each(node, r->w.from) {
        if (has(r, node->id, FACT_CONTROLS))
            vec_push_in(&r->w.arena, &r->checks, node->id);
    }
    find_priorities(r);
    if (!r->pushes.n)
        return error_set(r->w.err, ERR_DATA, "the entry '%s' changes no variable by a gradient",
                         r->entry->name);
    return replicate_check_late(r, "an update") ? r->w.err->code : find_intervals(r);
}
