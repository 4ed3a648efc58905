/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/replicate/replicate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/device_name.h"
#include "pass/replicate/replicate_private.h"
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_tower.h"

#define WORKER_JOB "worker"

/* ---- replicas of several tasks ----
 *
 * A worker is a group of tasks that follow each other, of which the first drives its steps and the
 * others serve it. The script says what is where: /job:worker/task:1 is the second task of each
 * group. What it leaves open may be on any of them, but for what belongs to the driver: what is
 * fed, and what replication added, the worker's version and its pushes to the clock. */

/* The task within the group; DEVICE_OPEN: any. */
static int member_of(struct replicator *r, const struct node *node, int task)
{
    int size = r->options->replica_tasks;
    if (device_task_is_many(task) || task == DEVICE_OPEN) {
        const struct node *source = graph_find(r->from, node->name);
        return !source || node_has(source, OP_FED) ? 0 : DEVICE_OPEN; /* the driver's */
    }
    if (task >= size)
        error_set(r->err, ERR_DATA, "%s: it asks for task %d, but a replica has %d tasks",
                  node_text(node), task, size);
    return task;
}

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
        name.task = device_group_task(size, member_of(r, node, name.task));
        node->device = device_name_text(&r->to->arena, &name);
    }
    return r->err->code;
}

/* ---- names ---- */

/* The outside version of what has one; else that of the update, for aliases. */
static struct edge name_edge(struct replicator *r, struct edge edge)
{
    if (r->towers)
        return towers_whole(r->towers, edge);
    if (has(r, edge.node, FACT_WRITER) || r->copy[edge.node] >= 0)
        return replicate_edge(r, edge);
    return (struct edge){r->updated[edge.node], edge.slot};
}

/* Adds the nodes that an entry runs besides. */
static void add_nodes(struct edge *edges, int *n, const int *nodes, size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++)
        edges[(*n)++] = (struct edge){nodes[i], CONTROL_SLOT};
}

static int copy_entries(struct replicator *r)
{
    const struct graph *from = r->from;
    vec_each(entry, &from->entries) {
        size_t most = (size_t)entry->n_edges + r->ends.n + r->inits.n;
        struct edge *edges = arena_array(&r->arena, most + 1, sizeof *edges);
        int n = 0;
        while (n < entry->n_edges) {
            edges[n] = name_edge(r, entry->edges[n]);
            n++;
        }
        if (r->options->mode == REPLICATE_ALLREDUCE && entry == r->entry)
            add_nodes(edges, &n, r->ends.items, r->ends.n);
        if (!strcmp(entry->name, "init"))
            add_nodes(edges, &n, r->inits.items, r->inits.n);
        if (graph_entry(r->to, entry->name))
            return error_set(r->err, ERR_DATA,
                             "there is an entry '%s', which a replicated graph has for itself",
                             entry->name);
        graph_add_entry(r->to, entry->name, edges, n);
    }
    for (size_t i = 0; i < from->aliases.n; i++)
        if (graph_add_alias(r->to, from->aliases.items[i].name,
                            name_edge(r, from->aliases.items[i].edge), r->err))
            return r->err->code;
    graph_add_history(r->to, from);
    return 0;
}

/* ---- the mode that takes less time ----
 *
 * Among those with which every worker counts in every step: shards, all-reduce, or all-reduce by
 * shards that only add, each with the way of each gradient that the model of costs prefers. All are
 * built, and how long a step's exchange takes is added up; updates are left out of it. */

static const char *const modes[] = {"sync", "allreduce", "sync,update=worker"};
enum { ALLREDUCE = 1, MODES = sizeof modes / sizeof *modes };

#define MODE_MAX (REPLICATE_POLICY_MAX + 64)

/* Latencies of a step besides what crosses: variables are read, gradients pushed, and the push
 * answered; or gradients go to who sums them, and sums back. */
#define SYNC_LATENCIES 3
#define ALLREDUCE_LATENCIES 2

struct tally {
    const struct replicate_options *asked; /* who is told of each gradient */
    struct replicate_options options;      /* of the mode */
    char mode[MODE_MAX];
    struct replicate_total total;
    double ns;
    struct error why; /* it cannot be */
};

void replicate_total_add(struct replicate_total *total, const struct replicate_choice *choice)
{
    total->ns += choice->taken.ns - choice->latency + choice->read.ns;
    total->latency = fmax(total->latency, choice->latency);
    total->has_parts = total->has_parts || choice->is_part;
}

double replicate_total_ns(const struct replicate_total *total, enum replicate_mode mode)
{
    int latencies = mode == REPLICATE_POLICY ? SYNC_LATENCIES : ALLREDUCE_LATENCIES;
    return total->ns + total->latency * latencies;
}

static void add_up(void *context, const struct replicate_choice *choice)
{
    struct tally *tally = context;
    struct replicate_choice named = *choice;
    named.mode = tally->mode;
    replicate_total_add(&tally->total, choice);
    if (tally->asked->explain)
        tally->asked->explain(tally->asked->context, &named);
}

static int begin(struct tally *tally, const struct replicate_options *asked, const char *mode,
                 struct error *err)
{
    const char *code = asked->policy;
    *tally = (struct tally){.asked = asked, .options = *asked};
    snprintf(tally->mode, sizeof tally->mode, "%s,factors=auto%s%s", mode, *code ? "," : "", code);
    if (replicate_parse(&tally->options, tally->mode, err))
        return err->code;
    tally->options.may_code = true;
    tally->options.explain = add_up;
    tally->options.note = NULL;
    tally->options.context = tally;
    return 0;
}

static int choose_mode(const struct graph *from, const struct replicate_options *options,
                       struct graph **to, struct error *err)
{
    struct tally tallies[MODES], *best = NULL;
    *to = NULL;
    if (!options->cluster)
        return error_set(err, ERR_USAGE, "--mode auto depends on the cluster: give -c");
    for (int i = 0; i < MODES; i++)
        if (begin(&tallies[i], options, modes[i], err))
            return err->code;
    for (int i = 0; i < MODES; i++) {
        struct tally *tally = &tallies[i];
        struct graph *tried = NULL;
        if (tally->options.mode == REPLICATE_POLICY && !cluster_count(options->cluster, SHARD_JOB))
            error_set(&tally->why, ERR_USAGE, "the cluster has no task of the job %s", SHARD_JOB);
        else
            replicate_graph(from, &tally->options, &tried, &tally->why);
        graph_free(tried);
        tally->ns = replicate_total_ns(&tally->total, tally->options.mode);
        if (!tally->why.code && (!best || tally->ns < best->ns))
            best = tally;
    }
    if (!best)
        return error_set(err, tallies[ALLREDUCE].why.code, "%s", tallies[ALLREDUCE].why.text);
    for (int i = 0; i < MODES && options->compare; i++) {
        const struct tally *tally = &tallies[i];
        const struct replicate_mode_choice choice = {
            tally->mode, tally->ns, tally->why.code ? tally->why.text : NULL, tally == best};
        options->compare(options->context, &choice);
    }
    best->options.explain = NULL;
    best->options.explain_schedule = NULL;
    best->options.note = options->note;
    best->options.context = options->context;
    return replicate_graph(from, &best->options, to, err);
}

/* ---- the graph ---- */

static int by_allreduce(struct replicator *r)
{
    if (r->options->accumulate > 1 || r->options->wire != DTYPE_INVALID)
        return error_set(
            r->err, ERR_USAGE, "--%s is for what is pushed to shards; with --mode %s %s",
            r->options->accumulate > 1 ? "accumulate" : "compress", replicate_mode_name(r->options),
            r->options->by_servers ? "nothing is" : "there are none");
    return replicate_allreduce(r);
}

int replicate_graph(const struct graph *from, const struct replicate_options *options,
                    struct graph **to, struct error *err)
{
    if (options->mode == REPLICATE_AUTO)
        return choose_mode(from, options, to, err);
    size_t n = from->nodes.n;
    struct replicator r = {.from = from, .options = options, .err = err, .round = -1, .steps = 1};
    r.fetches = r.fires = r.rank = r.coding = EDGE_NONE;
    r.order = arena_array(&r.arena, n + 1, sizeof *r.order);
    r.facts = arena_array(&r.arena, n + 1, sizeof *r.facts);
    r.copy = arena_array(&r.arena, n + 1, sizeof *r.copy);
    r.updated = arena_array(&r.arena, n + 1, sizeof *r.updated);
    r.interval = arena_array(&r.arena, n + 1, sizeof *r.interval);
    r.variable_of = arena_array(&r.arena, n + 1, sizeof *r.variable_of);
    r.update_names = arena_array(&r.arena, n + 1, sizeof *r.update_names);
    memset(r.copy, -1, n * sizeof *r.copy);
    memset(r.updated, -1, n * sizeof *r.updated);
    r.to = graph_new(from->registry);
    int code = graph_order(from, r.order, err);
    if (!code)
        code = replicate_find_rates(&r);
    if (!code) {
        bool failed = options->towers ? replicate_towers(&r)
                      : !replicate_pushes(&r)
                          ? by_allreduce(&r)
                          : replicate_find(&r) || replicate_add_local(&r) ||
                                replicate_copy_before(&r) || replicate_add_pushes(&r) ||
                                replicate_add_update(&r) || replicate_copy_update(&r) ||
                                replicate_end_update(&r) || replicate_copy_after(&r) ||
                                find_members(&r);
        code = failed || copy_entries(&r) ? err->code : graph_check(r.to, err);
    }
    if (code)
        graph_free(r.to);
    *to = code ? NULL : r.to;
    map_release(&r.push_at);
    for (int i = 0; i < N_BY_EDGE; i++)
        edge_map_release(&r.by_edge[i]);
    if (r.towers)
        frames_free(r.towers->frames);
    arena_release(&r.arena);
    return code;
}
