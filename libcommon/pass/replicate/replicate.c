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
    for (size_t i = 0; size > 1 && i < r->w.to->nodes.n && !r->w.err->code; i++) {
        struct node *node = graph_node(r->w.to, (int)i);
        struct device_name name;
        struct error ignored = ERROR_INIT;
        if (!*node->device || device_name_parse(&name, node->device, &ignored) ||
            strcmp(name.job, WORKER_JOB) != 0)
            continue;
        const struct node *source = graph_find(r->w.from, node->name);
        int task = name.task; /* within the group; DEVICE_OPEN: any */
        if (device_task_is_many(task) || task == DEVICE_OPEN)
            task = !source || node_has(source, OP_FED) ? 0 : DEVICE_OPEN; /* 0: the driver's */
        else if (task >= size)
            error_set(r->w.err, ERR_DATA, "%s: it asks for task %d, but a replica has %d tasks",
                      node_text(node), task, size);
        name.task = device_group_task(size, task);
        node->device = device_name_text(&r->w.to->arena, &name);
    }
    return r->w.err->code;
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

static int name_all(struct replicator *r)
{
    graph_each_named(at, r->w.from) {
        const struct edge edge = at.edge, made = name_edge(r, edge);
        if (edge.slot == CONTROL_SLOT)
            rewrite_await_parts(&r->w, graph_node(r->w.from, edge.node), &made, 1);
        else
            r->w.edges[r->w.first[edge.node] + edge.slot] = made;
    }
    vec_each(entry, &r->w.from->entries) {
        if (graph_entry(r->w.to, entry->name))
            return error_set(r->w.err, ERR_DATA,
                             "there is an entry '%s', which a replicated graph has for itself",
                             entry->name);
    }
    for (size_t i = 0; !replicate_pushes(r) && i < r->ends.n; i++)
        rewrite_extend_entry(&r->w, r->entry->name, (struct edge){r->ends.items[i], CONTROL_SLOT});
    vec_each(node, &r->inits)
        rewrite_extend_entry(&r->w, "init", (struct edge){*node, CONTROL_SLOT});
    return r->w.err->code;
}

/* ---- the graph: planned, then built ---- */

/* Plans the graph; `mode` is NULL unless several are compared. The caller builds it or, also after
 * a failure, closes the replicator. */
static int open_replicator(struct replicator *r, const struct graph *from,
                           const struct replicate_options *options, const char *mode,
                           struct error *err)
{
    size_t n = from->nodes.n;
    *r = (struct replicator){.options = options, .mode = mode};
    if (rewrite_open(&r->w, from, options->pass, err))
        return err->code;
    r->w.rules.context = r;
    r->w.n_changes = 1;
    r->round = -1;
    r->steps = 1;
    r->own = arena_alloc(&r->w.arena, sizeof *r->own);
    r->own->fetches = r->own->fires = r->rank = r->coding = EDGE_NONE;
    r->facts = arena_array(&r->w.arena, n + 1, sizeof *r->facts);
    r->copy = arena_array(&r->w.arena, n + 1, sizeof *r->copy);
    r->updated = arena_array(&r->w.arena, n + 1, sizeof *r->updated);
    r->interval = arena_array(&r->w.arena, n + 1, sizeof *r->interval);
    memset(r->copy, -1, n * sizeof *r->copy);
    memset(r->updated, -1, n * sizeof *r->updated);
    if (replicate_find_rates(r))
        return err->code;
    return options->towers ? 0 : replicate_plan(r);
}

/* Releases what the replicator has, if anything; hands the graph over, if nothing has failed. */
static int close_replicator(struct replicator *r, int code, struct graph **to)
{
    code = rewrite_finish(&r->w, code, to);
    map_release(&r->push_at);
    edge_map_release(&r->exchange_at);
    edge_map_release(&r->initial_at);
    return code;
}

/* Builds what is planned, and closes the replicator. */
static int build(struct replicator *r, struct graph **to)
{
    bool failed = r->options->towers     ? replicate_towers(r)
                  : !replicate_pushes(r) ? replicate_allreduce(r)
                                         : replicate_shards(r) || find_members(r);
    return close_replicator(r, failed || name_all(r) ? r->w.err->code : 0, to);
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
    } while (best && build(&best->r, to));
    if (!best && !err->code)
        error_set(err, candidates[ALLREDUCE].why.code, "%s", candidates[ALLREDUCE].why.text);
    for (int i = 0; i < MODES; i++) {
        struct candidate *c = &candidates[i];
        if (best && c->why.code)
            replicate_explain(options, "%-40s %9s     %s", c->mode, "-", c->why.text);
        else if (best)
            replicate_explain(options, "%-40s %9.3f ms%s", c->mode, c->r.exchange_ns / 1e6,
                              c == best ? "  taken" : "");
        struct graph *none;
        close_replicator(&c->r, ERR_DATA, &none); /* the best one is closed */
    }
    return err->code;
}

int replicate_graph(const struct graph *from, const struct replicate_options *options,
                    struct graph **to, struct error *err)
{
    struct replicator r;
    if (options->mode == REPLICATE_AUTO)
        return choose_mode(from, options, to, err);
    return open_replicator(&r, from, options, NULL, err) ? close_replicator(&r, err->code, to)
                                                         : build(&r, to);
}
