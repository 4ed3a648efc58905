/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/replicate/replicate.h"

#include <stdio.h>
#include <string.h>

#include "graph/device_name.h"
#include "pass/replicate/replicate_plan.h"

#define WORKER_JOB "worker"

/* ---- replicas of several tasks ----
 *
 * A worker is a group of consecutive tasks: the first drives its steps, the others serve it. The
 * script's /job:worker/task:1 is the second task of each group. Nodes without a task may be on
 * any, except the driver's: feeds, and nodes of replication (the worker's version, pushes to the
 * clock). */

static int find_members(struct replicator *r)
{
    int size = r->options->replica_tasks;
    for (size_t i = 0; size > 1 && i < r->to->nodes.n && !r->err->code; i++) {
        struct node *node = graph_node(r->to, (int)i);
        struct device_name name;
        struct error ignored = ERROR_INIT;
        if (!*node->device || device_name_parse(&name, node->device, &ignored) ||
            strcmp(name.job, WORKER_JOB) != 0)
            continue;
        const struct node *source = graph_find(r->from, node->name);
        int task = name.task; /* within the group; DEVICE_OPEN: any */
        if (device_task_is_many(task) || task == DEVICE_OPEN)
            task = !source || node_has(source, OP_FED) ? 0 : DEVICE_OPEN; /* 0: the driver's */
        else if (task >= size)
            error_set(r->err, ERR_DATA, "%s: it asks for task %d, but a replica has %d tasks",
                      node_text(node), task, size);
        name.task = device_group_task(size, task);
        node->device = device_name_text(&r->to->arena, &name);
    }
    return r->err->code;
}

/* ---- names ---- */

/* Returns the version outside of the update if there is one; else that of the update, for
 * aliases. */
static struct edge name_edge(struct replicator *r, struct edge edge)
{
    if (r->towers)
        return towers_whole(r->towers, edge);
    if (has(r, edge.node, FACT_WRITER) || r->copy[edge.node] >= 0)
        return replicate_edge(r, edge);
    return (struct edge){r->updated[edge.node], edge.slot};
}

static int copy_entries(struct replicator *r)
{
    const struct graph *from = r->from;
    vec_each(entry, &from->entries) {
        bool ends = entry == r->entry && !replicate_pushes(r),
             begins = !strcmp(entry->name, "init");
        VEC(struct edge) edges = VEC_INIT;
        for (int i = 0; i < entry->n_edges; i++)
            vec_push_in(&r->arena, &edges, name_edge(r, entry->edges[i]));
        for (size_t i = 0; ends && i < r->ends.n; i++)
            vec_push_in(&r->arena, &edges, ((struct edge){r->ends.items[i], CONTROL_SLOT}));
        for (size_t i = 0; begins && i < r->inits.n; i++)
            vec_push_in(&r->arena, &edges, ((struct edge){r->inits.items[i], CONTROL_SLOT}));
        if (graph_entry(r->to, entry->name))
            return error_set(r->err, ERR_DATA,
                             "there is an entry '%s', which a replicated graph has for itself",
                             entry->name);
        graph_add_entry(r->to, entry->name, edges.items, (int)edges.n);
    }
    vec_each(alias, &from->aliases) {
        if (graph_add_alias(r->to, alias->name, name_edge(r, alias->edge), r->err))
            return r->err->code;
    }
    graph_add_history(r->to, from);
    return 0;
}

/* ---- the graph: planned, then built ---- */

/* Plans the graph; `mode` is NULL unless several are compared. The caller closes the replicator,
 * also after a failure. */
static int open_replicator(struct replicator *r, const struct graph *from,
                           const struct replicate_options *options, const char *mode,
                           struct error *err)
{
    size_t n = from->nodes.n;
    *r = (struct replicator){.from = from, .options = options, .mode = mode, .err = err};
    r->round = -1;
    r->steps = 1;
    r->own = arena_alloc(&r->arena, sizeof *r->own);
    r->own->fetches = r->own->fires = r->rank = r->coding = EDGE_NONE;
    r->order = arena_array(&r->arena, n + 1, sizeof *r->order);
    r->facts = arena_array(&r->arena, n + 1, sizeof *r->facts);
    r->copy = arena_array(&r->arena, n + 1, sizeof *r->copy);
    r->updated = arena_array(&r->arena, n + 1, sizeof *r->updated);
    r->interval = arena_array(&r->arena, n + 1, sizeof *r->interval);
    memset(r->copy, -1, n * sizeof *r->copy);
    memset(r->updated, -1, n * sizeof *r->updated);
    r->to = graph_new(from->registry);
    if (graph_order(from, r->order, err) || replicate_find_rates(r))
        return err->code;
    return options->towers ? 0 : replicate_plan(r);
}

static int build(struct replicator *r)
{
    bool failed = r->options->towers     ? replicate_towers(r)
                  : !replicate_pushes(r) ? replicate_allreduce(r)
                                         : replicate_shards(r) || find_members(r);
    return failed || copy_entries(r) ? r->err->code : graph_check(r->to, r->err);
}

/* Releases the replicator; returns the graph, if nothing has failed. */
static struct graph *close_replicator(struct replicator *r, int code)
{
    if (code)
        graph_free(r->to);
    map_release(&r->push_at);
    edge_map_release(&r->exchange_at);
    edge_map_release(&r->initial_at);
    if (r->towers)
        towers_release(r->towers);
    arena_release(&r->arena);
    return code ? NULL : r->to;
}

/* ---- the mode that takes less time ----
 *
 * Candidates are the modes in which every worker counts in every step: shards, all-reduce, or
 * all-reduce by shards that only add, each with the cost model's choice for each gradient. All are
 * planned, and the times of a step's exchanges are compared; updates are left out. */

static const char *const modes[] = {"sync", "allreduce", "sync,update=worker"};
enum { ALLREDUCE = 1, MODES = sizeof modes / sizeof *modes };

#define MODE_MAX (REPLICATE_POLICY_MAX + 64)

struct candidate {
    struct replicate_options options;
    char mode[MODE_MAX];
    struct replicator r;
    struct error why; /* the mode is impossible */
};

static int choose_mode(const struct graph *from, const struct replicate_options *options,
                       struct graph **to, struct error *err)
{
    struct candidate candidates[MODES] = {{.mode = ""}}, *best = NULL;
    const char *code = options->policy;
    *to = NULL;
    if (!options->cluster)
        return error_set(err, ERR_USAGE, "--mode auto depends on the cluster: give -c");
    for (int i = 0; i < MODES && !err->code; i++) {
        struct candidate *c = &candidates[i];
        snprintf(c->mode, MODE_MAX, "%s,factors=auto%s%s", modes[i], *code ? "," : "", code);
        c->options = *options;
        if (replicate_parse(&c->options, c->mode, err))
            continue;
        c->options.may_code = true;
        if (c->options.mode == REPLICATE_POLICY && !cluster_count(options->cluster, SHARD_JOB))
            error_set(&c->why, ERR_USAGE, "the cluster has no task of the job %s", SHARD_JOB);
        else
            open_replicator(&c->r, from, &c->options, c->mode, &c->why);
    }
    /* Some failures show only when the graph is built. */
    do {
        best = NULL;
        for (int i = 0; i < MODES && !err->code; i++)
            if (!candidates[i].why.code &&
                (!best || candidates[i].r.exchange_ns < best->r.exchange_ns))
                best = &candidates[i];
    } while (best && build(&best->r));
    if (!best && !err->code)
        error_set(err, candidates[ALLREDUCE].why.code, "%s", candidates[ALLREDUCE].why.text);
    for (int i = 0; i < MODES; i++) {
        struct candidate *c = &candidates[i];
        if (best && c->why.code)
            replicate_explain(options, "%-40s %9s     %s", c->mode, "-", c->why.text);
        else if (best)
            replicate_explain(options, "%-40s %9.3f ms%s", c->mode, c->r.exchange_ns / 1e6,
                              c == best ? "  taken" : "");
        struct graph *built = close_replicator(&c->r, c == best ? 0 : ERR_DATA);
        *to = c == best ? built : *to;
    }
    return err->code;
}

int replicate_graph(const struct graph *from, const struct replicate_options *options,
                    struct graph **to, struct error *err)
{
    struct replicator r;
    if (options->mode == REPLICATE_AUTO)
        return choose_mode(from, options, to, err);
    if (!open_replicator(&r, from, options, NULL, err))
        build(&r);
    *to = close_replicator(&r, err->code);
    return err->code;
}
